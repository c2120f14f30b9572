//! Rules that hold for remote servers as for this machine: keys, the offline switch, the record,
//! limits, long chats.

use std::path::PathBuf;

use app::GenerateArgs;
use app::SamplingArgs;
use contract::ErrorKind;
use contract::protocol::{ChatOptions, Prompt};
use contract::types::{
    CheckpointArgs, CompactionStrategy, DraftArgs, EndpointAddArgs, EndpointHealth, EndpointUpdateArgs,
    ExportFormat, Finish, SendArgs,
};
use serde_json::{Value, json};

use super::fake::{Fake, Say, answer, json_body, models, status};
use super::home::Home;
use crate::common::found_in;

#[test]
fn keys_go_where_they_belong_and_nowhere_else() {
    let home = Home::new("keys");
    let fake = Fake::new(|request| match request.path() {
        "/v1/models" if request.header("authorization").is_none() => status(401, "", &json!({})),
        "/v1/models" => models(&[json!({ "id": "m" })]),
        _ => status(400, "", &json!({ "error": { "message": "the key sk-canary-0123 is odd" } })),
    });
    let info = home.add("lab", &fake);
    assert!(matches!(info.health, EndpointHealth::Down { error } if error.code == "remote.key"));
    let update = |key: Option<&str>, variable: Option<&str>| {
        let args = EndpointUpdateArgs {
            id: info.id.clone(),
            key: key.map(Into::into),
            key_variable: variable.map(Into::into),
            ..EndpointUpdateArgs::default()
        };
        home.app.endpoint_update(args)
    };
    let sent = || fake.last().header("authorization").map(str::to_owned);
    assert_eq!(update(None, Some("LAB_KEY")).unwrap().health, EndpointHealth::Up);
    assert_eq!(sent().as_deref(), Some("Bearer sk-from-environment"));
    let health = update(None, Some("NOT_SET")).unwrap().health;
    assert!(matches!(health, EndpointHealth::Down { error } if error.message.contains("NOT_SET")));
    assert_eq!(update(Some("sk-canary-0123"), None).unwrap().health, EndpointHealth::Up);
    assert_eq!(sent().as_deref(), Some("Bearer sk-canary-0123"));
    let (id, outcome) = home.send("lab/m", "Hi");
    assert_eq!(outcome.error.as_deref(), Some("remote.refused"));
    let export = home.app.export(Some(&id), ExportFormat::Json).unwrap().text;
    let backup = home.folder.join("all.db");
    home.app.data_backup(backup.to_str().unwrap()).unwrap();
    assert!(!export.contains("canary"), "{export}");
    let listed = serde_json::to_string(&home.app.endpoint_list().unwrap()).unwrap();
    assert!(!listed.contains("canary"));
    assert_eq!(found_in(&home.folder, b"sk-canary"), Vec::<PathBuf>::new());
    home.app.endpoint_remove(&info.id).unwrap();
    assert!(home.app.model_get("lab/m").is_err());
    let error = home.app.retry(&id).unwrap_err();
    assert_eq!((error.code(), error.kind), ("model.unknown", ErrorKind::NotFound));
}

#[test]
fn offline_nothing_goes_out_and_everything_that_did_is_on_record() {
    let home = Home::new("offline");
    let fake = Fake::new(|request| match request.path() {
        "/v1/models" => models(&[json!({ "id": "m" })]),
        _ => answer(&[json!({ "content": "Yes" })], "stop", Some((3, 1))),
    });
    home.add("lab", &fake);
    home.send("lab/m", "A secret question");
    let record = home.app.connections_list(None).unwrap();
    let purposes: Vec<Value> = record.iter().map(|it| serde_json::to_value(it.purpose).unwrap()).collect();
    assert_eq!(purposes, ["answer", "model_list"]);
    assert!(record.iter().all(|it| it.host == fake.place() && it.received > 0));
    assert!(record[0].sent > 100 && !serde_json::to_string(&record).unwrap().contains("secret"));
    home.app.settings_set("offline", &json!(true)).unwrap();
    let n_before = fake.n_requests();
    let (_, outcome) = home.send("lab/m", "Again");
    assert_eq!(outcome.error.as_deref(), Some("network.offline"));
    let info = home.app.endpoint_list().unwrap().remove(0);
    assert_eq!(home.app.endpoint_test(&info.id).unwrap_err().code(), "network.offline");
    assert_eq!((fake.n_requests(), home.app.connections_list(None).unwrap().len()), (n_before, 2));
    assert_eq!(info.health, EndpointHealth::Up, "being offline says nothing of the server");
}

#[test]
fn long_conversations_are_folded_and_counted() {
    let home = Home::new("long");
    home.app.settings_set("max_tokens", &json!(10)).unwrap();
    let fake = Fake::new(|request| match request.path() {
        "/v1/models" => models(&[json!({ "id": "m", "owned_by": "vllm", "max_model_len": 120 })]),
        "/tokenize" => {
            let words = request.body["messages"].to_string().split_whitespace().count();
            json_body(&json!({ "count": words + 10, "max_model_len": 120 }).to_string())
        }
        _ => answer(&[json!({ "content": "word ".repeat(20) })], "stop", None),
    });
    home.add("lab", &fake);
    let (id, _) = home.send("lab/m", &"word ".repeat(30));
    let mut is_compacted = false;
    for _ in 0..4 {
        let args =
            SendArgs { conversation: Some(id.clone()), text: "word ".repeat(30), ..SendArgs::default() };
        let outcome = home.follow(&home.app.send(args).unwrap().turn);
        assert_eq!(outcome.error, None);
        is_compacted |= outcome.is_compacted;
    }
    assert!(is_compacted, "the oldest turns are left out");
    assert!(fake.last().body["messages"].as_array().unwrap().len() < 9);
    let draft = home.app.draft_count(&DraftArgs {
        conversation: Some(id.clone()),
        text: "a draft that nobody else reads".into(),
        ..DraftArgs::default()
    });
    let draft = draft.unwrap();
    assert!(draft.is_about && draft.context_limit == 120 && draft.tokens > 0);
    assert!(!fake.has_heard("a draft that nobody else reads"));
    let refused = home.app.conversation_set_compression(&id, Some(CompactionStrategy::Attention));
    assert_eq!(refused.unwrap_err().code(), "remote.no_attention");
    let named = CheckpointArgs { conversation: id, name: "here".into() };
    assert_eq!(home.app.checkpoint_save(&named).unwrap_err().code(), "remote.not_here");
}

#[test]
fn limits_and_turns_hold_for_other_servers_too() {
    let home = Home::new("limits");
    home.app.settings_set("limit_concurrent", &json!(1)).unwrap();
    home.app.settings_set("limit_seconds", &json!(2)).unwrap();
    let fake = Fake::new(|request| match (request.path(), request.body["messages"][0]["content"].as_str()) {
        ("/v1/models", _) => models(&[json!({ "id": "m" })]),
        (_, Some("slow")) => Say::Wait(Box::new(Say::piece(&json!({ "content": "A" })))),
        _ => answer(&[json!({ "content": "Yes" })], "stop", Some((3, 1))),
    });
    home.add("lab", &fake);
    let send = |text: &str| {
        let args = SendArgs { text: text.into(), model: Some("lab/m".into()), ..SendArgs::default() };
        home.app.send(args).unwrap().turn
    };
    let (slow, cancelled) = (send("slow"), send("waits"));
    home.app.turn_cancel(&cancelled).unwrap();
    let outcome = home.follow(&cancelled);
    assert_eq!(outcome.stats.map(|stats| stats.finish), Some(Finish::Cancelled), "it waited for its turn");
    let outcome = home.follow(&slow);
    assert_eq!((outcome.text.as_str(), outcome.stats.unwrap().finish), ("A", Finish::TimeUp));
    assert_eq!(home.follow(&send("quick")).text, "Yes");
    let raw = GenerateArgs {
        model: Some("lab/m".into()),
        prompt: Prompt::Raw("x".into()),
        sampling: SamplingArgs::default(),
        max_tokens: None,
        stop: Vec::new(),
        ignore_eos: false,
        chat: ChatOptions::default(),
        constraint: None,
        logprobs: None,
    };
    assert_eq!(home.follow(&home.app.generate(raw).unwrap()).error.as_deref(), Some("remote.only_chat"));
}

#[test]
fn a_chosen_proxy_is_asked_for_other_computers() {
    let home = Home::new("proxy");
    let proxy = Fake::new(|request| match request.path() {
        "http://lab.invalid/v1/models" => models(&[json!({ "id": "m" })]),
        _ => answer(&[json!({ "content": "Through" })], "stop", None),
    });
    let wrong = home.app.settings_set("proxy", &json!("ftp://proxy")).unwrap_err();
    assert_eq!(wrong.code(), "network.proxy");
    let lab = EndpointAddArgs { name: "lab".into(), url: "http://lab.invalid".into(), ..Default::default() };
    let lab = home.app.endpoint_add(lab).unwrap();
    // Only the proxy finds the address.
    assert_eq!(home.send("lab/m", "before").1.error.as_deref(), Some("remote.unreachable"));
    home.app.settings_set("proxy", &json!(proxy.url.trim_end_matches("/v1"))).unwrap();
    home.app.endpoint_test(&lab.id).unwrap();
    assert_eq!(home.send("lab/m", "Hello").1.text, "Through");
    // What runs on this computer is reached directly.
    let local = Fake::new(|request| match request.path() {
        "/v1/models" => models(&[json!({ "id": "m" })]),
        _ => answer(&[json!({ "content": "Directly" })], "stop", None),
    });
    home.add("here", &local);
    assert_eq!(home.send("here/m", "Hello").1.text, "Directly");
}
