//! Failures of servers: each with its error code, and which server is asked next.

use contract::types::{EndpointHealth, MessageState, ModelState};
use serde_json::json;

use super::fake::{Fake, Say, answer, gone, json_body, models, status};
use super::home::Home;

#[test]
fn failures_are_told_apart_and_keep_the_question() {
    type Case = (&'static str, fn() -> Say, &'static str);
    let cases: [Case; 11] = [
        ("key", || status(401, "", &json!({ "error": { "message": "no" } })), "remote.key"),
        (
            "model",
            || status(404, "", &json!({ "error": { "message": "model m not found" } })),
            "remote.model_gone",
        ),
        ("route", || status(404, "", &json!({ "detail": "Not Found" })), "remote.no_route"),
        ("busy", || status(429, "retry-after: 90\r\n", &json!({})), "remote.busy"),
        (
            "full",
            || status(400, "", &json!({ "error": { "message": "maximum context length" } })),
            "request.context_full",
        ),
        ("refused", || status(422, "", &json!({ "message": "bad" })), "remote.refused"),
        ("moved", || status(307, "location: http://elsewhere.example/\r\n", &json!({})), "remote.moved"),
        ("failing", || status(500, "x-should-retry: false\r\n", &json!({})), "remote.failing"),
        ("words", || Say::events(&["{\"error\":{\"message\":\"out of memory\"}}"]), "remote.failing"),
        ("no json", || Say::events(&["hello"]), "remote.malformed"),
        ("no reply", || json_body("[1, 2]"), "remote.malformed"),
    ];
    for (name, say, expected) in cases {
        let home = Home::new(&format!("fails-{}", name.replace(' ', "-")));
        let fake = Fake::new(move |request| match request.path() {
            "/v1/models" => models(&[json!({ "id": "m" })]),
            _ => say(),
        });
        home.add("lab", &fake);
        let (id, outcome) = home.send("lab/m", "Well?");
        assert_eq!(outcome.error.as_deref(), Some(expected), "{name}");
        let kept = home.app.conversation_get(&id).unwrap();
        assert_eq!((kept.messages[0].text.as_str(), kept.messages[1].state), ("Well?", MessageState::Failed));
        let error = kept.messages[1].error.clone().unwrap();
        assert!(!error.remedy.is_empty() && !error.message.contains("http"), "{error:?}");
    }
}

#[test]
fn silence_and_floods_end() {
    let home = Home::new("bounds");
    home.app.settings_set("endpoint_silence", &json!(1)).unwrap();
    let fake = Fake::new(|request| match (request.path(), request.body["messages"][0]["content"].as_str()) {
        ("/v1/models", _) => models(&[json!({ "id": "m" })]),
        (_, Some("silent")) => Say::Wait(Box::new(Say::begin())),
        (_, Some("stalls")) => Say::Wait(Box::new(Say::piece(&json!({ "content": "A" })))),
        _ => Say::Flood,
    });
    home.add("lab", &fake);
    let (_, outcome) = home.send("lab/m", "stalls");
    assert_eq!((outcome.text.as_str(), outcome.error.as_deref()), ("A", Some("remote.broken")));
    let (_, outcome) = home.send("lab/m", "flood");
    assert_eq!(outcome.error.as_deref(), Some("remote.too_large"));
    let (_, outcome) = home.send("lab/m", "silent");
    assert_eq!(outcome.error.as_deref(), Some("remote.silent"));
    drop(fake);
    let (_, outcome) = home.send("lab/m", "gone");
    assert_eq!(outcome.error.as_deref(), Some("remote.unreachable"));
    let health = &home.app.endpoint_list().unwrap()[0].health;
    assert!(matches!(health, EndpointHealth::Down { error } if error.code == "remote.unreachable"));
}

#[test]
fn what_fails_before_its_first_word_is_asked_of_the_next() {
    let home = Home::new("next");
    let faults: [fn() -> Say; 4] = [
        || status(503, "", &json!({})),
        gone,
        || Say::events(&["{\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}"]),
        || status(401, "", &json!({})),
    ];
    let bad = Fake::new(move |request| match request.path() {
        "/v1/models" => models(&[json!({ "id": "m" })]),
        _ => faults[(request.n - 1) % faults.len()](),
    });
    let good = Fake::new(|request| match request.path() {
        "/v1/models" => models(&[json!({ "id": "m" })]),
        _ => answer(&[json!({ "content": "one " }), json!({ "content": "two" })], "stop", Some((3, 2))),
    });
    let info = home.add("lab", &bad);
    home.add("lab", &good);
    for _ in 0..8 {
        // Its rest is over as soon as it shows that it is there.
        home.app.endpoint_test(&info.id).unwrap();
        let (id, outcome) = home.send("lab/m", "Count");
        assert_eq!((outcome.text.as_str(), outcome.error), ("one two", None));
        let kept = home.app.conversation_get(&id).unwrap();
        assert_eq!((kept.messages.len(), kept.messages[1].versions), (2, 1), "nothing is doubled");
        assert_eq!(outcome.stats.unwrap().answered_by.as_deref(), Some(good.place()));
    }
    assert_eq!(bad.n_asked(), faults.len(), "it had every second turn");
    let entry = home.app.model_get("lab/m").unwrap();
    assert_eq!(entry.state, ModelState::Ready, "one of them is enough");
}
