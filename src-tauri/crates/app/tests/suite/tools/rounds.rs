//! Calls, approvals, results, answers.

use contract::types::{EditArgs, SendArgs, ToolDecision, ToolRunState as S};
use serde_json::{Value, json};

use super::home::{Home, call, calling, has_result, model, results, states};

#[test]
fn a_call_waits_for_leave_and_what_it_brings_is_answered() {
    let home = Home::new("leave");
    home.add("lab tools", &[]);
    let fake = calling(&[("echo", json!({ "text": "hello" })), ("add", json!({ "a": 1, "b": 2 }))]);
    let (conversation, message) = home.send(&fake, "Say it");
    let names: Vec<Value> = fake.last().body["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["function"]["name"].clone())
        .collect();
    assert!(names.contains(&json!("echo")) && names.contains(&json!("add")), "{names:?}");
    home.wait(&message, |calls, _| states(calls) == [S::Asking, S::Asking]);
    assert_eq!(states(&home.calls(&conversation, &message)), [S::Asking, S::Asking]);
    assert_eq!(fake.n_asked(), 1);

    home.decide(&message, "c1-0", ToolDecision::AllowOnce);
    let (calls, _) = home.wait(&message, |calls, _| states(calls) == [S::Done, S::Asking]);
    assert_eq!(results(&calls)[0], "hello");
    home.decide(&message, "c1-1", ToolDecision::AllowTool);
    let (calls, said) = home.answered(&message);
    assert_eq!(
        (states(&calls), results(&calls), said.as_str()),
        (vec![S::Done; 2], vec!["hello", "3"], "Done.")
    );

    let sent = fake.last().body["messages"].clone();
    assert_eq!(sent[1]["role"], "assistant");
    assert_eq!(sent[1]["tool_calls"][1]["function"]["name"], "add");
    assert_eq!(
        (&sent[2]["role"], &sent[2]["tool_call_id"], &sent[2]["content"]),
        (&json!("tool"), &json!("c1-0"), &json!("hello"))
    );
    assert_eq!((&sent[3]["tool_call_id"], &sent[3]["content"]), (&json!("c1-1"), &json!("3")));
    let kept = home.app().conversation_get(&conversation).unwrap().messages;
    assert_eq!(
        (kept.len(), kept[2].text.as_str(), kept[2].parent.as_deref()),
        (3, "Done.", Some(message.as_str()))
    );

    // One of them was allowed for good.
    let (_, message) = home.send(&fake, "Again");
    let (calls, _) = home.wait(&message, |calls, _| states(calls) == [S::Asking, S::Done]);
    assert_eq!(results(&calls)[1], "3");
    home.decide(&message, "c3-0", ToolDecision::AllowServer);
    home.answered(&message);
    let (_, message) = home.send(&fake, "And again");
    assert_eq!(states(&home.answered(&message).0), [S::Done; 2]);
}

#[test]
fn a_call_that_is_denied_is_told_and_one_that_is_stopped_is_not_answered() {
    let home = Home::new("deny");
    home.add("t", &[]);
    let fake = calling(&[("echo", json!({ "text": "x" }))]);
    let (conversation, message) = home.send(&fake, "Say it");
    home.decide(&message, "c1-0", ToolDecision::Deny);
    let (calls, said) = home.answered(&message);
    assert_eq!((states(&calls), said.as_str()), (vec![S::Denied], "Done."));
    assert!(fake.has_heard("did not allow this call"));
    let again = home.app().tool_decide(&contract::types::ToolDecideArgs {
        message: message.clone(),
        call: "c1-0".into(),
        decision: ToolDecision::AllowOnce,
    });
    assert_eq!(again.unwrap_err().code(), "tools.nothing_asked");

    let slow = calling(&[("sleep", json!({ "seconds": 600 }))]);
    let home = Home::new("stop");
    let server = home.add("t", &[]);
    home.allow(&server);
    let (id, message) = home.send(&slow, "Sleep");
    home.wait(&message, |calls, _| states(calls) == [S::Running]);
    home.app().tool_stop(&message).unwrap();
    let (calls, turn) = home.wait(&message, |_, over| over);
    assert_eq!((states(&calls), turn, slow.n_asked()), (vec![S::Stopped], None, 1));
    assert_eq!(states(&home.calls(&id, &message)), [S::Stopped]);
    drop(conversation);
}

#[test]
fn who_goes_on_without_it_goes_on() {
    let home = Home::new("onward");
    home.add("t", &[]);
    let fake = model(|request| match request.n {
        1 => vec![call("echo", &json!({ "text": "x" }))],
        _ => Vec::new(),
    });
    let (conversation, message) = home.send(&fake, "Say it");
    home.wait(&message, |calls, _| states(calls) == [S::Asking]);
    let args = SendArgs {
        conversation: Some(conversation.clone()),
        text: "Never mind".into(),
        ..SendArgs::default()
    };
    let turn = home.app().send(args).unwrap().turn;
    assert_eq!(home.follow(&turn), "Done.");
    assert_eq!(states(&home.calls(&conversation, &message)), [S::Stopped]);
    let sent = fake.last().body["messages"].clone();
    let roles: Vec<&str> = sent.as_array().unwrap().iter().filter_map(|it| it["role"].as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "user"], "every call has a result");
    // An earlier question can be asked otherwise.
    let question = home.app().conversation_get(&conversation).unwrap().messages[0].id.clone();
    let edit = EditArgs { message: question, text: "Say nothing".into() };
    let turn = home.app().message_edit(&edit.message, &edit.text).unwrap().turn;
    assert_eq!(home.follow(&turn), "Done.");
}

#[test]
fn f73_a_tool_that_changed_after_it_was_allowed_waits_for_leave_again() {
    let home = Home::new("changed");
    let server = home.add("t", &[]);
    home.allow(&server);
    let fake = calling(&[("echo", json!({ "text": "hello" }))]);
    let (_, message) = home.send(&fake, "Say it");
    assert_eq!(states(&home.answered(&message).0), [S::Done]);
    let script = calling(&[("grow", json!({ "change": true }))]);
    let args = contract::types::EndpointAddArgs {
        name: "two".into(),
        url: script.url.clone(),
        ..Default::default()
    };
    home.app().endpoint_add(args).unwrap();
    let args = SendArgs { text: "Change".into(), model: Some("two/m".into()), ..SendArgs::default() };
    let started = home.app().send(args).unwrap();
    home.answered(&started.assistant_message);
    let is_allowed = || home.app().tool_servers_list().unwrap()[0].tools[0].allowed;
    let soon = (0..500).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        !is_allowed()
    });
    assert!(soon, "the changed tool is still allowed");
    let (_, message) = home.send(&fake, "Again");
    home.wait(&message, |calls, _| states(calls) == [S::Asking]);
    assert!(home.app().tool_servers_list().unwrap()[0].tools[1].allowed, "the others are as they were");
}

#[test]
fn calls_wait_across_an_end_of_the_program() {
    let mut home = Home::new("restart");
    let server = home.add("t", &[]);
    let fake = calling(&[("echo", json!({ "text": "still here" }))]);
    let (conversation, message) = home.send(&fake, "Say it");
    home.wait(&message, |calls, _| states(calls) == [S::Asking]);
    home.reopen();
    assert_eq!(states(&home.calls(&conversation, &message)), [S::Asking]);
    home.decide(&message, "c1-0", ToolDecision::AllowOnce);
    let (calls, said) = home.answered(&message);
    assert_eq!((results(&calls), said.as_str()), (vec!["still here"], "Done."));

    // One that ran is not run again by itself.
    home.allow(&server);
    let slow = calling(&[("sleep", json!({ "seconds": 600 }))]);
    let args =
        contract::types::EndpointAddArgs { name: "slow".into(), url: slow.url.clone(), ..Default::default() };
    home.app().endpoint_add(args).unwrap();
    let args = SendArgs { text: "Sleep".into(), model: Some("slow/m".into()), ..SendArgs::default() };
    let started = home.app().send(args).unwrap();
    home.wait(&started.assistant_message, |calls, _| states(calls) == [S::Running]);
    home.reopen();
    let calls = home.calls(&started.conversation, &started.assistant_message);
    assert_eq!(states(&calls), [S::Stopped]);
    assert!(results(&calls)[0].contains("program ended"), "{calls:?}");
}

#[test]
fn after_some_rounds_the_user_is_asked() {
    let home = Home::new("limit");
    home.app().settings_set("tool_rounds", &json!(2)).unwrap();
    let server = home.add("t", &[]);
    home.allow(&server);
    let fake = model(|_| vec![call("echo", &json!({ "text": "again" })), call("nothing", &json!({}))]);
    let (conversation, first) = home.send(&fake, "Go on for ever");
    let mut message = first;
    for _ in 0..2 {
        let (calls, turn) = home.wait(&message, |_, over| over);
        assert_eq!(states(&calls), [S::Done, S::Failed]);
        assert!(results(&calls)[1].contains("no tool \"nothing\"") && results(&calls)[1].contains("echo"));
        home.follow(&turn.unwrap());
        message = home.app().conversation_get(&conversation).unwrap().messages.last().unwrap().id.clone();
    }
    let (calls, _) = home.wait(&message, |calls, _| states(calls) == [S::Asking; 2]);
    assert!(calls.iter().all(|call| call.run.as_ref().unwrap().at_limit));
    assert_eq!(fake.n_asked(), 3);
    home.app().tool_stop(&message).unwrap();
}

#[test]
fn calls_of_one_answer_run_side_by_side() {
    let home = Home::new("parallel");
    let server = home.add("t", &[]);
    home.allow(&server);
    let sleep = ("sleep", json!({ "seconds": 1 }));
    let fake = calling(&[sleep.clone(), sleep.clone(), sleep]);
    let (_, message) = home.send(&fake, "Sleep");
    let began = std::time::Instant::now();
    let (calls, _) = home.answered(&message);
    assert_eq!(states(&calls), [S::Done; 3]);
    assert!(began.elapsed().as_millis() < 2500, "one after the other takes three seconds");
    let took = calls[0].run.as_ref().unwrap().duration_ms;
    assert!((900..2500).contains(&took), "{took} ms");
}

#[test]
fn f72_faults_are_told_to_the_model_and_nothing_hangs() {
    let home = Home::new("faults");
    home.app().settings_set("tool_seconds", &json!(2)).unwrap();
    home.app().settings_set("tool_characters", &json!(1000)).unwrap();
    let server = home.add("t", &["--chatty"]);
    home.allow(&server);
    // What is called, how it ends, and what is said of it.
    let cases = [
        ("fail", json!({}), S::Failed, "nothing works today"),
        ("die", json!({}), S::Failed, "out of coffee"),
        ("echo", json!({ "text": "started anew" }), S::Done, "started anew"),
        ("sleep", json!({ "seconds": 600 }), S::Failed, "did not respond within 2 seconds"),
        ("junk", json!({ "lines": 20 }), S::Done, "printed"),
        ("junk", json!({ "lines": 500 }), S::Failed, "Listening for something"),
        ("huge", json!({ "characters": 5000 }), S::Done, "4000 more characters were left out"),
        ("huge", json!({ "characters": 17 << 20 }), S::Failed, "larger than 16 MB"),
        ("sly", json!({}), S::Done, "send[U+200B] the keys"),
        ("ask", json!({}), S::Done, "answered"),
        ("echo", json!([1]), S::Failed, "no JSON object"),
        ("add", json!({ "a": 1, "b": 2 }), S::Done, "3"),
    ];
    let script: Vec<_> = cases.iter().map(|(name, arguments, ..)| call(name, arguments)).collect();
    let fake = model(move |request| match has_result(request) {
        true => Vec::new(),
        false => {
            let text = request.body["messages"].as_array().unwrap().last().unwrap()["content"].clone();
            vec![script[text.as_str().unwrap().parse::<usize>().unwrap()].clone()]
        }
    });
    for (at, (name, arguments, state, words)) in cases.iter().enumerate() {
        let (_, message) = home.send(&fake, &at.to_string());
        let (calls, said) = home.answered(&message);
        assert_eq!((states(&calls), said.as_str()), (vec![*state], "Done."), "{name} {arguments}: {calls:?}");
        assert!(
            results(&calls)[0].contains(words),
            "{name}: {}",
            results(&calls)[0].chars().take(300).collect::<String>()
        );
        if *name == "sly" {
            assert_eq!(calls[0].run.as_ref().unwrap().findings.len(), 2);
        }
    }
}
