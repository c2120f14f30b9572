//! Habits of servers: answers as real ones send them, chunk by chunk, and what comes of each.

use contract::protocol::ChatOptions;
use contract::types::{EndpointAddArgs, EndpointHealth, EndpointUpdateArgs, MessageState};
use serde_json::{Value, json};

use super::fake::{Fake, Say, answer, models, status, with_type};
use super::home::{Home, Outcome};

/// The recorded answers.
const STREAMS: &str = include_str!("data/endpoint-streams.json");

/// What the server of a case says.
fn say(case: &Value) -> Say {
    let body = match (&case["chunks"], &case["body"]) {
        (Value::Array(chunks), _) => chunks.iter().filter_map(Value::as_str).collect(),
        (_, Value::String(text)) => text.clone(),
        (_, body) => body.to_string(),
    };
    with_type(case["status"].as_u64().unwrap() as u16, case["content_type"].as_str().unwrap(), &body)
}

fn check(case: &Value, outcome: &Outcome, error: &str, fake: &Fake) {
    let (name, expected) = (&case["id"], &case["expected"]);
    let text = |key: &str| expected[key].as_str();
    if let Some(text) = text("text") {
        assert_eq!(outcome.text.trim_end(), text, "{name}");
    }
    if let Some(text) = text("text_starts") {
        assert!(outcome.text.starts_with(text) && outcome.text.ends_with("world"), "{name}: {outcome:?}");
    }
    if let Some(reasoning) = text("reasoning") {
        assert_eq!(outcome.reasoning, reasoning, "{name}");
    }
    if let Some(calls) = expected["tool_calls"].as_array() {
        let of = |(_, name, arguments): &(String, String, String)| json!({ "name": name, "arguments": serde_json::from_str::<Value>(arguments).unwrap() });
        assert_eq!(outcome.calls.iter().map(of).collect::<Vec<_>>(), *calls, "{name}");
    }
    if let Some(words) = text("error_contains").or(text("or_error_contains")) {
        assert!(error.contains(words), "{name}: {error}");
    }
    if let Some(n) = expected["asked_times"].as_u64() {
        assert_eq!(fake.n_asked() as u64, n, "{name}");
    }
    if let Some(field) = text("asked_again_without") {
        assert_eq!((fake.n_asked(), fake.last().body.get(field)), (2, None), "{name}");
    }
    let is_failure = expected.get("error_contains").is_some()
        || expected.get("or_error_contains").is_some()
        || expected.get("finish").is_some();
    assert_eq!(outcome.error.is_some(), is_failure, "{name}: {outcome:?} {error}");
}

#[test]
fn answers_of_real_servers_are_read() {
    let cases: Vec<Value> = serde_json::from_str(STREAMS).unwrap();
    let home = Home::new("habits");
    home.app.settings_set("temperature", &json!(0.8)).unwrap();
    for case in &cases {
        let id = case["id"].as_str().unwrap();
        let said = say(case);
        let fake = Fake::new(move |request| match request.path() {
            "/v1/models" => models(&[json!({ "id": "m" })]),
            _ => said.clone(),
        });
        home.add(id, &fake);
        let (conversation, outcome) = home.send(&format!("{id}/m"), "Hi");
        let kept = home.app.conversation_get(&conversation).unwrap();
        let message = &kept.messages[1];
        let error = message.error.as_ref().map_or_else(String::new, |error| error.message.clone());
        check(case, &outcome, &error, &fake);
        assert_eq!(
            (&message.text, &message.reasoning),
            (&outcome.text, &outcome.reasoning),
            "{id}: as it is kept"
        );
        if outcome.error.is_none() && outcome.calls.is_empty() {
            assert_eq!(message.state, MessageState::Complete, "{id}");
        }
    }
}

#[test]
fn a_refused_field_is_left_out_from_then_on() {
    let home = Home::new("fields");
    home.app.settings_set("temperature", &json!(0.8)).unwrap();
    home.app.settings_set("top_p", &json!(0.5)).unwrap();
    let fake = Fake::new(|request| match request.path() {
        "/v1/models" => models(&[json!({ "id": "m" })]),
        _ if request.body.get("top_p").is_some() && request.body.get("temperature").is_some() => {
            let words = "`temperature` and `top_p` cannot both be specified for this model.";
            status(400, "", &json!({ "error": { "message": words } }))
        }
        _ if request.body.get("stream_options").is_some() => {
            let detail =
                json!([{ "loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted" }]);
            status(422, "", &json!({ "detail": detail }))
        }
        _ => answer(&[json!({ "content": "Yes" })], "stop", None),
    });
    let info = home.add("lab", &fake);
    let outcome = home.send("lab/m", "Hi").1;
    assert_eq!((outcome.text.as_str(), outcome.error, fake.n_asked()), ("Yes", None, 3));
    assert_eq!(outcome.notices, ["remote.field_omitted", "remote.field_omitted"]);
    let outcome = home.send("lab/m", "Again").1;
    assert_eq!((outcome.text.as_str(), outcome.notices.len(), fake.n_asked()), ("Yes", 0, 4));
    let body = fake.last().body;
    assert!(body["temperature"].is_number() && body.get("top_p").is_none(), "{body}");
    let args = EndpointUpdateArgs { id: info.id, enabled: Some(true), ..EndpointUpdateArgs::default() };
    home.app.endpoint_update(args).unwrap();
    home.send("lab/m", "Once more");
    assert_eq!(fake.n_asked(), 7, "a changed endpoint is asked anew");
}

#[test]
fn what_is_the_default_is_not_sent() {
    let home = Home::new("defaults");
    let fake = Fake::new(|request| match request.path() {
        "/v1/models" => models(&[json!({ "id": "m" })]),
        _ => answer(&[json!({ "content": "Yes" })], "stop", None),
    });
    home.add("lab", &fake);
    home.generate("lab/m", ChatOptions::default());
    let body = fake.last().body;
    assert_eq!((body.get("temperature"), body.get("top_p")), (None, None));
    home.app.settings_set("temperature", &json!(0.2)).unwrap();
    home.generate("lab/m", ChatOptions::default());
    let body = fake.last().body;
    assert_eq!((&body["temperature"], body.get("top_p")), (&json!(0.2), None));
}

#[test]
fn models_may_be_typed_where_a_server_lists_none() {
    type Case = (&'static str, fn() -> Say, Option<&'static str>);
    let cases: [Case; 6] = [
        ("array", || with_type(200, "application/json", r#"[{"id":"listed"}]"#), None),
        ("missing", || status(404, "", &json!({ "detail": "Not Found" })), Some("remote.no_list")),
        ("moved", || status(302, "location: /login\r\n", &json!({})), Some("remote.moved")),
        (
            "page",
            || with_type(200, "text/html", "<!doctype html><title>Sign in</title>"),
            Some("remote.web_page"),
        ),
        ("other", || with_type(200, "application/json", r#"{"status":"ok"}"#), Some("remote.no_list")),
        ("empty", || with_type(200, "application/json", ""), Some("remote.no_list")),
    ];
    let home = Home::new("typed");
    for (name, list, code) in cases {
        let fake = Fake::new(move |request| match request.path() {
            "/v1/models" => list(),
            _ => answer(&[json!({ "content": "Yes" })], "stop", None),
        });
        let info = home.add(name, &fake);
        let found = match &info.health {
            EndpointHealth::Down { error } => Some(error.code.as_str()),
            EndpointHealth::Up | EndpointHealth::Unknown => None,
        };
        assert_eq!(found, code, "{name}");
        let models = Some(vec![" typed ".into(), "typed".into(), String::new()]);
        let args = EndpointUpdateArgs { id: info.id.clone(), models, ..EndpointUpdateArgs::default() };
        let info = home.app.endpoint_update(args).unwrap();
        assert_eq!(
            (info.health, info.typed_models),
            (EndpointHealth::Up, vec!["typed".to_owned()]),
            "{name}"
        );
        assert!(info.models.iter().any(|model| model.id == "typed"));
        let model = format!("{name}/typed");
        assert!(home.app.model_get(&model).is_ok());
        assert_eq!(home.send(&model, "Hi").1.text, "Yes", "{name}");
        home.app.endpoint_test(&info.id).unwrap();
        assert_eq!(
            home.app.endpoint_list().unwrap().last().unwrap().typed_models,
            ["typed"],
            "a list keeps them"
        );
    }
    let args = EndpointAddArgs {
        name: "bad".into(),
        url: "http://127.0.0.1:9".into(),
        models: Some(vec!["a\nb".into()]),
        ..EndpointAddArgs::default()
    };
    assert_eq!(home.app.endpoint_add(args).unwrap_err().code(), "endpoint.model");
}
