//! Answers of each kind of server, complete, broken and cancelled.

use contract::protocol::ChatOptions;
use contract::types::{
    AppEvent, EndpointHealth, Finish, MessageState, ModelSource, SendArgs, ServerKind, TurnEvent,
    TurnEventKind,
};
use serde_json::{Value, json};

use super::fake::{Fake, Say, answer, models};
use super::home::Home;

/// What a server lists, how it answers, and what follows: its kind, its context, a field that it is sent.
type Kind = (Value, Vec<Value>, (ServerKind, u32, &'static str));

fn kinds() -> [Kind; 5] {
    [
        (
            json!({ "id": "m", "owned_by": "vllm", "max_model_len": 4096 }),
            vec![json!({ "reasoning": "Hm" }), json!({ "content": "Yes" })],
            (ServerKind::Vllm, 4096, "top_k"),
        ),
        (
            json!({ "id": "m", "owned_by": "sglang", "max_model_len": 512 }),
            vec![json!({ "reasoning_content": "Hm", "content": null }), json!({ "content": "Yes" })],
            (ServerKind::Sglang, 512, "repetition_penalty"),
        ),
        (
            json!({ "id": "m", "owned_by": "llamacpp", "meta": { "n_ctx": 2048, "n_ctx_train": 9999 } }),
            vec![
                json!({ "role": "assistant", "content": null }),
                json!({ "reasoning_content": "Hm" }),
                json!({ "content": "Yes" }),
            ],
            (ServerKind::LlamaCpp, 2048, "repeat_penalty"),
        ),
        (
            json!({ "id": "m", "owned_by": "library" }),
            vec![
                json!({ "role": "assistant", "content": "", "reasoning": "Hm" }),
                json!({ "content": "Yes" }),
            ],
            (ServerKind::Ollama, 0, "seed"),
        ),
        (
            json!({ "id": "m", "owned_by": "nobody" }),
            vec![
                json!({ "content": "<think>H" }),
                json!({ "content": "m</thi" }),
                json!({ "content": "nk>\n\nYes" }),
            ],
            (ServerKind::Other, 0, "max_tokens"),
        ),
    ]
}

#[test]
fn servers_of_every_kind_answer() {
    for (listed, deltas, (kind, context, field)) in kinds() {
        let home = Home::new(&format!("{kind:?}"));
        home.app.settings_set("seed", &json!(5)).unwrap();
        let list = models(&[listed]);
        let fragment = |call: Value| json!({ "tool_calls": [call] });
        let begins = json!({ "index": 0, "id": "c", "function": { "name": "f", "arguments": "{\"x\"" } });
        let ends = json!({ "index": 0, "function": { "arguments": ":1}" } });
        let calls = [fragment(begins), fragment(ends)];
        let fake = Fake::new(move |request| match request.path() {
            "/v1/models" => list.clone(),
            _ if request.body.get("tools").is_some() => answer(&calls, "tool_calls", Some((7, 3))),
            _ => answer(&deltas, "stop", Some((11, 2))),
        });
        let info = home.add("lab", &fake);
        assert_eq!(
            (info.server, info.health.clone(), info.models[0].context_length),
            (kind, EndpointHealth::Up, context)
        );
        assert!(!info.leaves_machine, "it is here");
        let entry = home.app.model_get("lab/m").unwrap();
        assert_eq!((entry.source, entry.context_length), (ModelSource::Remote, context));
        assert!(entry.remote.unwrap().note.contains("on this computer"));
        assert_eq!(home.app.default_model().unwrap(), "starter", "it is never chosen by itself");

        let (id, outcome) = home.send("lab/m", "Well?");
        assert_eq!(
            (outcome.text.as_str(), outcome.reasoning.as_str()),
            ("Yes", "Hm"),
            "{kind:?} {outcome:?}"
        );
        let stats = outcome.stats.unwrap();
        assert_eq!((stats.finish, stats.prompt_tokens, stats.generated_tokens), (Finish::Stop, 11, 2));
        assert_eq!(
            (stats.is_about, stats.answered_by, stats.context_limit),
            (false, Some(info.host), context)
        );
        let asked = fake.last().body;
        assert_eq!((&asked["model"], &asked["stream"]), (&json!("m"), &json!(true)));
        assert!(asked.get(field).is_some() || field == "max_tokens", "{kind:?} {asked}");
        let kept = home.app.conversation_get(&id).unwrap();
        assert_eq!((kept.messages[1].state, kept.messages[1].text.as_str()), (MessageState::Complete, "Yes"));
        assert_eq!(kept.messages[1].model.as_deref(), Some("lab/m"));

        let tools = json!([{ "type": "function", "function": { "name": "f" } }]);
        let outcome = home.generate("lab/m", ChatOptions { tools, ..ChatOptions::default() });
        let expected: (String, String, String) = ["c", "f", "{\"x\":1}"].map(str::to_owned).into();
        assert_eq!((outcome.calls, outcome.stats.unwrap().finish), (vec![expected], Finish::ToolCalls));
    }
}

#[test]
fn a_broken_answer_is_kept_and_goes_on() {
    let home = Home::new("broken");
    let fake = Fake::new(|request| {
        let last =
            request.body["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
        match (request.path(), last["role"].as_str()) {
            ("/v1/models", _) => models(&[json!({ "id": "m", "owned_by": "vllm" })]),
            (_, Some("assistant")) => {
                assert_eq!(last["content"], "The fox ");
                assert_eq!(request.body["continue_final_message"], true);
                assert_eq!(request.body["add_generation_prompt"], false);
                answer(&[json!({ "content": "sleeps." })], "stop", None)
            }
            _ => Say::piece(&json!({ "content": "The fox " })),
        }
    });
    home.add("lab", &fake);
    let (id, outcome) = home.send("lab/m", "Tell");
    assert_eq!((outcome.text.as_str(), outcome.error.as_deref()), ("The fox ", Some("remote.broken")));
    assert_eq!(fake.n_asked(), 1, "after the first word nothing is asked again by itself");
    let kept = home.app.conversation_get(&id).unwrap();
    assert_eq!((kept.messages[1].state, kept.messages[1].text.as_str()), (MessageState::Failed, "The fox "));
    let started = home.app.message_continue(&kept.messages[1].id).unwrap();
    let outcome = home.follow(&started.turn);
    assert_eq!((outcome.text.as_str(), outcome.error), ("The fox sleeps.", None));
    let kept = home.app.conversation_get(&id).unwrap();
    assert_eq!((kept.messages.len(), kept.messages[1].text.as_str()), (2, "The fox sleeps."));
    let stats = kept.messages[1].stats.clone().unwrap();
    assert!(stats.is_about && stats.prompt_tokens > 0, "nobody counted");
}

#[test]
fn cancelling_closes_the_connection() {
    let home = Home::new("cancel");
    let fake = Fake::new(|request| match request.path() {
        "/v1/models" => models(&[json!({ "id": "m" })]),
        _ => Say::Wait(Box::new(Say::piece(&json!({ "content": "A" })))),
    });
    home.add("lab", &fake);
    let args = SendArgs { text: "Go".into(), model: Some("lab/m".into()), ..SendArgs::default() };
    let started = home.app.send(args).unwrap();
    let watch = home.app.watch_turn(&started.turn, 0).unwrap();
    let is_text =
        |events: &Vec<TurnEvent>| events.iter().any(|event| matches!(event.kind, TurnEventKind::Text { .. }));
    for events in watch {
        if is_text(&events) {
            home.app.turn_cancel(&started.turn).unwrap();
        }
    }
    fake.wait_until_left();
    let kept = home.app.conversation_get(&started.conversation).unwrap();
    assert_eq!((kept.messages[1].state, kept.messages[1].text.as_str()), (MessageState::Stopped, "A"));
    let stats = kept.messages[1].stats.clone().unwrap();
    assert_eq!((stats.finish, stats.is_about), (Finish::Cancelled, true));
}

#[test]
fn the_model_names_the_conversation_there_too() {
    let home = Home::new("titles");
    home.app.settings_set("titles", &json!(true)).unwrap();
    let fake =
        Fake::new(|request| match (request.path(), request.body["messages"].as_array().map(Vec::len)) {
            ("/v1/models", _) => models(&[json!({ "id": "m" })]),
            (_, Some(3)) => answer(&[json!({ "content": "Foxes in winter" })], "stop", Some((3, 1))),
            _ => answer(&[json!({ "content": "They sleep." })], "stop", Some((3, 1))),
        });
    home.add("lab", &fake);
    let events = home.app.watch_app();
    let (id, _) = home.send("lab/m", "What do foxes do in winter?");
    let is_named = |event: &AppEvent| match event {
        AppEvent::ConversationChanged { conversation } => conversation.title == "Foxes in winter",
        _ => false,
    };
    assert!(events.flatten().any(|event| is_named(&event)));
    assert_eq!(home.app.conversation_get(&id).unwrap().summary.title, "Foxes in winter");
}
