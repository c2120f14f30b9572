//! Batches of stored files through the real server: their results, their faults, and where one goes on.
#![allow(clippy::unwrap_used)] // a test

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::files::stored;
use crate::fixture::Fixture;

/// An answer has a few tokens.
const MAX_BATCH_TIME: Duration = Duration::from_secs(60);

fn line(name: &str, body: &Value) -> String {
    json!({ "custom_id": name, "method": "POST", "url": "/v1/chat/completions", "body": body }).to_string()
}

fn chat(text: &str) -> Value {
    json!({ "model": "starter", "max_tokens": 4, "messages": [{ "role": "user", "content": text }] })
}

fn create(server: &Fixture, file: &str) -> Value {
    let body = json!({
        "input_file_id": file, "endpoint": "/v1/chat/completions", "completion_window": "24h",
        "metadata": { "for": "test" },
    });
    let answer = server.ask("POST", "/v1/batches", &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

fn ended(server: &Fixture, id: &str) -> Value {
    let start = Instant::now();
    while start.elapsed() < MAX_BATCH_TIME {
        let batch = server.ask("GET", &format!("/v1/batches/{id}"), &Value::Null).json();
        if !matches!(batch["status"].as_str(), Some("in_progress" | "cancelling")) {
            return batch;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("the batch {id} does not end");
}

fn lines_of(server: &Fixture, file: &Value) -> Vec<Value> {
    let path = format!("/v1/files/{}/content", file.as_str().unwrap());
    let content = server.ask("GET", &path, &Value::Null).body;
    content.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_batch_answers_its_file() {
    let server = Fixture::new("batch");
    let wrong = json!({ "model": "starter", "messages": [] });
    let input = [line("one", &chat("Hello")), line("two", &chat("Good day")), line("bad", &wrong)].join("\n");
    let batch = create(&server, &stored(&server, "batch", "in.jsonl", &input));
    assert_eq!((&batch["object"], &batch["metadata"]["for"]), (&json!("batch"), &json!("test")));
    let batch = ended(&server, batch["id"].as_str().unwrap());
    assert_eq!(batch["status"], "completed", "{batch}");
    assert_eq!(batch["request_counts"], json!({ "total": 3, "completed": 2, "failed": 1 }));
    let results = lines_of(&server, &batch["output_file_id"]);
    let mut names: Vec<&str> = results.iter().map(|it| it["custom_id"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["one", "two"]);
    let tokens: u64 =
        results.iter().map(|it| it["response"]["body"]["usage"]["total_tokens"].as_u64().unwrap()).sum();
    assert_eq!(batch["usage"]["total_tokens"], tokens);
    assert!(results.iter().all(|it| it["response"]["status_code"] == 200), "{results:?}");
    let failed = lines_of(&server, &batch["error_file_id"]);
    assert_eq!(
        (&failed[0]["custom_id"], &failed[0]["response"]["status_code"]),
        (&json!("bad"), &json!(400))
    );
    let list = server.ask("GET", "/v1/batches", &Value::Null).json();
    assert_eq!(list["data"][0]["id"], batch["id"]);
    let path = format!("/v1/batches/{}/cancel", batch["id"].as_str().unwrap());
    assert_eq!(server.ask("POST", &path, &Value::Null).json()["status"], "completed", "it stays as it is");
}

#[test]
fn a_file_that_is_no_batch_says_why() {
    let server = Fixture::new("batch-faults");
    let body = |file: &str, endpoint: &str| json!({ "input_file_id": file, "endpoint": endpoint, "completion_window": "24h" });
    let good = stored(&server, "batch", "in.jsonl", &line("a", &chat("Hi")));
    let other = stored(&server, "user_data", "in.jsonl", "x");
    for (body, status, param) in [
        (body("file-none", "/v1/chat/completions"), 404, None),
        (body(&other, "/v1/chat/completions"), 400, Some("input_file_id")),
        (body(&good, "/v1/moderations"), 400, Some("endpoint")),
        (json!({ "input_file_id": good, "endpoint": "/v1/embeddings" }), 400, Some("completion_window")),
        (json!({}), 400, Some("input_file_id")),
    ] {
        let answer = server.ask("POST", "/v1/batches", &body);
        assert_eq!((answer.status, answer.json()["error"]["param"].as_str()), (status, param), "{answer:?}");
    }
    let doubled = [line("a", &chat("Hi")), line("a", &chat("Hi")), "{".into()].join("\n");
    let batch = create(&server, &stored(&server, "batch", "in.jsonl", &doubled));
    assert_eq!(batch["status"], "failed");
    let faults = batch["errors"]["data"].as_array().unwrap();
    let at: Vec<(&str, u64)> =
        faults.iter().map(|it| (it["code"].as_str().unwrap(), it["line"].as_u64().unwrap())).collect();
    assert_eq!(at, [("duplicate_custom_id", 2), ("invalid_request", 3)]);
    assert_eq!(server.ask("GET", "/v1/batches/batch_x", &Value::Null).status, 404);
}

#[test]
fn a_batch_that_was_interrupted_goes_on() {
    let server = Fixture::new("batch-again");
    let input: Vec<String> = (0..3).map(|n| line(&format!("n{n}"), &chat("Hello"))).collect();
    let file = stored(&server, "batch", "in.jsonl", &input.join("\n"));
    // As a killed server leaves it: one result is whole, the next one half written.
    let whole = json!({ "custom_id": "n1", "response": { "status_code": 200, "body": { "usage": {} } } });
    let half = r#"{"custom_id":"n2","respo"#;
    server.app.file_contents().put("batch_1.output", format!("{whole}\n{half}").as_bytes()).unwrap();
    let body = json!({
        "endpoint": "/v1/chat/completions", "input_file_id": file, "metadata": {}, "status": "in_progress",
        "total": 3, "in_progress_at": 0,
    });
    let (kind, owner) = (app::ApiObjectKind::Batch, String::new());
    let batch = app::ApiObject { id: "batch_1".into(), kind, owner, parent: None, body, created_ms: 0 };
    server.app.put_api_objects(vec![batch]).unwrap();
    let batch = ended(&server, "batch_1");
    assert_eq!(batch["request_counts"], json!({ "total": 3, "completed": 3, "failed": 0 }), "{batch}");
    let results = lines_of(&server, &batch["output_file_id"]);
    let mut names: Vec<&str> = results.iter().map(|it| it["custom_id"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["n0", "n1", "n2"]);
}

#[test]
fn a_cancelled_batch_begins_no_more() {
    let server = Fixture::new("batch-cancel");
    let file = stored(&server, "batch", "in.jsonl", &line("a", &chat("Hello")));
    let body = json!({
        "endpoint": "/v1/chat/completions", "input_file_id": file, "metadata": {}, "status": "cancelling",
        "total": 1, "in_progress_at": 0, "cancelling_at": 0,
    });
    let (kind, owner) = (app::ApiObjectKind::Batch, String::new());
    let batch = app::ApiObject { id: "batch_2".into(), kind, owner, parent: None, body, created_ms: 0 };
    server.app.put_api_objects(vec![batch]).unwrap();
    let batch = ended(&server, "batch_2");
    assert_eq!((&batch["status"], &batch["output_file_id"]), (&json!("cancelled"), &Value::Null));
    assert_eq!(batch["request_counts"], json!({ "total": 1, "completed": 0, "failed": 0 }));
}
