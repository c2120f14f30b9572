//! Keys of other programs, and the audit log: who may do what, how much, and what is recorded of it.
#![allow(clippy::unwrap_used)] // a test

use app::{ApiKeyArgs, KeyLimits, KeyScope};
use serde_json::{Value, json};

use crate::fixture::{Answer, Fixture};

fn ask(server: &Fixture, key: &str, method: &str, path: &str, body: &Value) -> Answer {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    server.raw(method, path, &[("authorization", &format!("Bearer {key}"))], &body)
}

fn add(server: &Fixture, name: &str, scopes: &[KeyScope], limits: KeyLimits) -> String {
    let args = ApiKeyArgs { name: name.into(), key: None, scopes: scopes.to_vec(), limits };
    server.app.api_key_add(args).unwrap().key
}

fn hello() -> Value {
    json!({ "model": "starter", "max_tokens": 3, "messages": [{ "role": "user", "content": "My secret is Birch" }] })
}

#[test]
fn keys_reach_what_their_scopes_permit_until_they_are_revoked() {
    let server = Fixture::new("scopes");
    let chat = add(&server, "chat", &[KeyScope::Chat], KeyLimits::default());
    let models = add(&server, "models", &[KeyScope::Models], KeyLimits::default());
    let admin = add(&server, "admin", &[KeyScope::Admin], KeyLimits::default());
    let delete = json!({ "model": "nobody" });
    for (key, statuses) in [(&chat, [200, 403, 403]), (&models, [403, 404, 403]), (&admin, [200, 404, 200])] {
        let listed = ask(&server, key, "GET", "/v1/models", &Value::Null).status;
        let deleted = ask(&server, key, "DELETE", "/api/delete", &delete).status;
        let own = ask(&server, key, "POST", "/api/conversations_list", &json!({})).status;
        assert_eq!([listed, deleted, own], statuses);
    }
    let refused = ask(&server, &chat, "POST", "/api/conversations_list", &json!({})).json();
    assert_eq!(refused["error"]["code"], "insufficient_scope");
    server.app.api_key_revoke("chat").unwrap();
    assert_eq!(ask(&server, &chat, "GET", "/v1/models", &Value::Null).status, 401);
}

#[test]
fn turns_of_a_key_are_invisible_to_others() {
    let server = Fixture::new("turns");
    let chat = add(&server, "chat", &[KeyScope::Chat], KeyLimits::default());
    let sent = server.ask("POST", "/api/send", &json!({ "text": "Hello" })).json();
    let path = format!("/api/turns/{}/events", sent["turn"].as_str().unwrap());
    assert_eq!(ask(&server, &chat, "GET", &path, &Value::Null).status, 403);
    assert_eq!(server.ask("GET", &path, &Value::Null).status, 200);
}

#[test]
fn a_key_that_is_used_up_says_when_to_come_back() {
    let server = Fixture::new("limits");
    let limits = KeyLimits { requests_per_day: Some(2), ..KeyLimits::default() };
    let few = add(&server, "few", &[KeyScope::Chat], limits);
    let tokens = add(
        &server,
        "tokens",
        &[KeyScope::Chat],
        KeyLimits { tokens_per_day: Some(1), ..KeyLimits::default() },
    );
    let status = |key: &str| ask(&server, key, "GET", "/v1/models", &Value::Null).status;
    assert_eq!([status(&few), status(&few)], [200, 200]);
    let refused = ask(&server, &few, "GET", "/v1/models", &Value::Null);
    assert_eq!(refused.status, 429);
    let wait_s = refused.headers.split("retry-after: ").nth(1).unwrap().split("\r\n").next().unwrap();
    assert!((1..=86_400).contains(&wait_s.parse::<u64>().unwrap()), "{wait_s}");
    assert_eq!(ask(&server, &tokens, "POST", "/v1/messages", &hello()).status, 200);
    assert_eq!(status(&tokens), 429, "the first answer used its tokens");
}

#[test]
fn every_answer_is_in_the_audit_log_without_its_text() {
    let server = Fixture::new("audit");
    let key = add(&server, "lab", &[KeyScope::Chat], KeyLimits::default());
    assert_eq!(ask(&server, &key, "POST", "/v1/messages", &hello()).status, 200);
    assert_eq!(
        server.ask("POST", "/api/generate", &json!({ "model": "starter", "prompt": "Hi" })).status,
        200
    );
    let read = || std::fs::read_to_string(server.home.join("audit/audit.jsonl")).unwrap();
    let lines: Vec<Value> = read().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    let first = &lines[0];
    assert_eq!((&first["interface"], &first["key"]), (&json!("http"), &json!("lab")));
    assert_eq!((&first["route"], &first["model"]), (&json!("POST /v1/messages"), &json!("starter")));
    assert!(
        first["tokens"]["prompt"].as_u64().unwrap() > 0 && first["tokens"]["answer"].as_u64().unwrap() > 0
    );
    assert_eq!((&lines[1]["key"], &lines[1]["route"]), (&Value::Null, &json!("POST /api/generate")));
    assert!(!read().contains("Birch") && !read().contains("\"text\""));
    assert!(server.app.audit_verify().unwrap().intact);
    let changed = read().replacen("\"lab\"", "\"lib\"", 1);
    std::fs::write(server.home.join("audit/audit.jsonl"), changed).unwrap();
    assert_eq!(server.app.audit_verify().unwrap().broken.map(|it| it.line), Some(1));
    server.app.settings_set("audit_text", &json!(true)).unwrap();
    assert_eq!(server.ask("POST", "/v1/messages", &hello()).status, 200);
    assert!(read().lines().last().unwrap().contains("\"text\":"));
    server.app.settings_set("audit_log", &json!(false)).unwrap();
    let n_before = read().lines().count();
    assert_eq!(server.ask("POST", "/v1/messages", &hello()).status, 200);
    assert_eq!(read().lines().count(), n_before);
}
