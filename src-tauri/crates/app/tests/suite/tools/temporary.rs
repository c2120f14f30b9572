//! Calls in temporary chats: the same approvals, limits and stops, and nothing on disk.

use std::path::Path;

use contract::types::{
    ConversationOptions, Role, TemporaryArgs, TemporaryMessage, ToolCall, ToolDecideArgs, ToolDecision,
    ToolRunState as S,
};
use serde_json::{Value, json};

use super::home::{Home, call, calling, has_result, model, results, states};
use crate::remote::fake::Fake;

const MARKER: &str = "zebraquartzite";

fn user(text: &str) -> TemporaryMessage {
    TemporaryMessage { role: Role::User, text: text.into(), attachments: Vec::new(), tool_calls: Vec::new() }
}

fn answer(text: &str, calls: &[ToolCall]) -> TemporaryMessage {
    TemporaryMessage { role: Role::Assistant, tool_calls: calls.to_vec(), ..user(text) }
}

/// A first turn, which has ended.
fn send(
    home: &Home,
    fake: &Fake,
    messages: Vec<TemporaryMessage>,
    options: Option<ConversationOptions>,
) -> String {
    home.endpoint(fake);
    let args = TemporaryArgs { messages, model: Some("lab/m".into()), options };
    let turn = home.app().temporary_send(args).unwrap().turn;
    home.follow(&turn);
    turn
}

/// Files that hold these bytes.
fn found_in(folder: &Path, needle: &[u8]) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(found_in(&path, needle));
        } else if std::fs::read(&path).unwrap().windows(needle.len()).any(|at| at == needle) {
            found.push(path);
        }
    }
    found
}

#[test]
fn a_call_waits_for_leave_is_answered_and_leaves_no_trace() {
    let mut home = Home::new("temporary");
    home.add("t", &[]);
    let fake = calling(&[("echo", json!({ "text": MARKER })), ("add", json!({ "a": 1, "b": 2 }))]);
    let turn = send(&home, &fake, vec![user(MARKER)], None);
    home.wait(&turn, |calls, _| states(calls) == [S::Asking, S::Asking]);
    assert_eq!(fake.n_asked(), 1);
    home.decide(&turn, "c1-0", ToolDecision::AllowOnce);
    home.wait(&turn, |calls, _| states(calls) == [S::Done, S::Asking]);
    home.decide(&turn, "c1-1", ToolDecision::AllowTool);
    let (calls, said) = home.answered(&turn);
    assert_eq!((results(&calls), said.as_str()), (vec![MARKER, "3"], "Done."));
    let sent = fake.last().body["messages"].clone();
    assert_eq!(sent[1]["tool_calls"][1]["function"]["name"], "add");
    assert_eq!((&sent[2]["tool_call_id"], &sent[2]["content"]), (&json!("c1-0"), &json!(MARKER)));
    let over = home.app().tool_decide(&ToolDecideArgs {
        message: turn,
        call: "c1-0".into(),
        decision: ToolDecision::AllowOnce,
    });
    assert_eq!(over.unwrap_err().code(), "tools.nothing_asked");

    // The client has all of it; the tool that was allowed for good runs, the other one asks again.
    let chat = vec![user(MARKER), answer("", &calls), answer("Done.", &[]), user("Again")];
    let turn = send(&home, &fake, chat, None);
    let sent = fake.last().body["messages"].clone();
    let roles: Vec<&str> = sent.as_array().unwrap().iter().filter_map(|it| it["role"].as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool", "assistant", "user"]);
    home.wait(&turn, |calls, _| states(calls) == [S::Asking, S::Done]);
    home.decide(&turn, "c3-0", ToolDecision::Deny);
    let (calls, said) = home.answered(&turn);
    assert_eq!((states(&calls), said.as_str()), (vec![S::Denied, S::Done], "Done."));

    assert!(home.app().conversations_list().unwrap().is_empty());
    home.close();
    assert_eq!(found_in(&home.folder, MARKER.as_bytes()), Vec::<std::path::PathBuf>::new());
}

#[test]
fn calls_are_stopped_by_hand_with_their_turn_and_when_something_else_is_said() {
    let home = Home::new("temporary-stop");
    let server = home.add("t", &[]);
    let fake = model(|request| {
        let is_first = request.body["messages"].as_array().is_some_and(|all| all.len() == 1);
        if is_first { vec![call("sleep", &json!({ "seconds": 600 }))] } else { Vec::new() }
    });
    // Who goes on without it goes on.
    let turn = send(&home, &fake, vec![user("Sleep")], None);
    let (calls, _) = home.wait(&turn, |calls, _| states(calls) == [S::Asking]);
    home.app().tool_stop(&turn).unwrap();
    let (stopped, next) = home.wait(&turn, |_, over| over);
    assert_eq!((states(&stopped), next, fake.n_asked()), (vec![S::Stopped], None, 1));
    send(&home, &fake, vec![user("Sleep"), answer("", &calls), user("Never mind")], None);
    let sent = fake.last().body["messages"].clone();
    assert_eq!(
        (&sent[2]["role"], &sent[2]["content"]),
        (&json!("tool"), &json!("The user stopped this call."))
    );

    home.allow(&server);
    for by_turn in [true, false] {
        let turn = send(&home, &fake, vec![user("Sleep")], None);
        home.wait(&turn, |calls, _| states(calls) == [S::Running]);
        match by_turn {
            true => home.app().turn_cancel(&turn).unwrap(),
            false => home.app().tool_stop(&turn).unwrap(),
        }
        let (calls, next) = home.wait(&turn, |_, over| over);
        assert_eq!((states(&calls), next), (vec![S::Stopped], None));
    }
}

#[test]
fn rounds_end_at_the_limit_and_begin_anew_once_somebody_is_there() {
    let home = Home::new("temporary-limit");
    home.app().settings_set("tool_rounds", &json!(2)).unwrap();
    let server = home.add("t", &[]);
    home.allow(&server);
    let fake = model(|_| vec![call("echo", &json!({ "text": "again" }))]);
    let mut turn = send(&home, &fake, vec![user("Go on for ever")], None);
    for _ in 0..2 {
        let (_, next) = home.wait(&turn, |_, over| over);
        turn = next.unwrap();
        home.follow(&turn);
    }
    let (calls, _) = home.wait(&turn, |calls, _| states(calls) == [S::Asking]);
    assert!(calls[0].run.as_ref().unwrap().at_limit);
    assert_eq!(fake.n_asked(), 3);
    home.decide(&turn, "c3-0", ToolDecision::AllowOnce);
    let (_, next) = home.wait(&turn, |_, over| over);
    let (calls, _) = home.wait(&next.unwrap(), |_, over| over);
    assert_eq!(states(&calls), [S::Done], "the count begins again");
}

#[test]
fn it_has_servers_and_options_of_its_own() {
    let home = Home::new("temporary-chosen");
    let server = home.add("t", &[]);
    let fake = model(|_| Vec::new());
    let own = |tools| ConversationOptions {
        tools: Some(tools),
        system_prompt: Some("Be brief.".into()),
        temperature: Some(0.25),
        ..ConversationOptions::default()
    };
    send(&home, &fake, vec![user("Hello")], Some(own(Vec::new())));
    let asked = fake.last().body;
    assert_eq!((&asked["tools"], &asked["temperature"]), (&Value::Null, &json!(0.25)));
    assert_eq!(asked["messages"][0], json!({ "role": "system", "content": "Be brief." }));
    send(&home, &fake, vec![user("Hello")], Some(own(vec![server.id])));
    assert_eq!(fake.last().body["tools"].as_array().map(Vec::len), Some(11));
    assert!(!has_result(&fake.last()));
}
