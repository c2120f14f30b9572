//! `nook batch`: every line is answered, and a killed batch goes on where it stopped.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cli::Home;

/// Results by line; a line with two results fails.
fn results(path: &Path) -> BTreeMap<u64, Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut all = BTreeMap::new();
    for line in text.lines() {
        let value: Value = serde_json::from_str(line).unwrap();
        let number = value["line"].as_u64().unwrap();
        assert!(all.insert(number, value).is_none(), "line {number} was answered twice");
    }
    all
}

#[test]
fn bad_lines_leave_the_others_alone() {
    let home = Home::new();
    let requests = home.0.join("requests.jsonl");
    let chat = json!({ "messages": [{ "role": "user", "content": "Hello" }], "max_tokens": 2 });
    let lines = [
        json!({ "id": "first", "prompt": "Hello", "max_tokens": 3, "temperature": 0 }).to_string(),
        "{\"prompt\": ".to_owned(),
        json!({ "custom_id": "b", "method": "POST", "url": "/v1/chat/completions", "body": chat })
            .to_string(),
        json!({ "custom_id": "c", "method": "POST", "url": "/v1/files", "body": {} }).to_string(),
        json!({ "prompt": "Hi", "temperature": "hot" }).to_string(),
        json!({ "custom_id": "m", "method": "POST", "url": "/v1/chat/completions",
            "body": { "model": "nobody", "messages": chat["messages"] } })
        .to_string(),
    ];
    std::fs::write(&requests, lines.join("\n")).unwrap();
    let file = requests.to_str().unwrap();
    let report = home.json(&["batch", "--jsonl", file]);
    assert_eq!((&report["answered"], &report["failed"], &report["kept"]), (&json!(2), &json!(4), &json!(0)));
    let out = home.0.join("requests.out.jsonl");
    let all = results(&out);
    assert_eq!(all.len(), 6);
    assert_eq!((&all[&1]["custom_id"], &all[&1]["finish"]), (&json!("first"), &json!("length")));
    assert!(!all[&1]["text"].as_str().unwrap().is_empty() && all[&1]["usage"]["completion_tokens"] == 3);
    assert_eq!(all[&2]["error"]["code"], "batch.line");
    assert_eq!((&all[&3]["custom_id"], &all[&3]["response"]["status_code"]), (&json!("b"), &json!(200)));
    assert_eq!(all[&3]["response"]["body"]["object"], "chat.completion");
    assert!(all[&4]["error"]["message"].as_str().unwrap().contains("`url`"));
    assert_eq!((&all[&5]["status"], all[&5]["error"]["message"].is_string()), (&json!(400), true));
    assert_eq!(all[&6]["response"]["status_code"], 404);
    // nothing is answered again, and --model answers for every line
    let again = home.json(&["batch", "--jsonl", file]);
    assert_eq!((&again["answered"], &again["kept"]), (&json!(0), &json!(6)));
    let other = home.0.join("other.jsonl");
    let named =
        home.json(&["batch", "--jsonl", file, "--out", other.to_str().unwrap(), "--model", "starter"]);
    assert_eq!(named["answered"], 3, "{named}");
    // another file of requests does not take over the results
    std::fs::write(&requests, json!({ "prompt": "Something else" }).to_string()).unwrap();
    let (exit, error) = home.error(&["batch", "--jsonl", file]);
    assert_eq!((exit, &error["code"]), (3, &json!("batch.other_requests")));
    assert_eq!(home.error(&["batch", "--jsonl", "/no/such"]).0, 3);
    assert_eq!(home.error(&["batch", "--jsonl", "-"]).0, 2);
}

#[test]
fn a_killed_batch_goes_on() {
    const N_LINES: usize = 60;
    let home = Home::new();
    let requests = home.0.join("many.jsonl");
    let line = |n: usize| json!({ "id": n, "prompt": format!("Number {n}"), "max_tokens": 12 }).to_string();
    std::fs::write(&requests, (0..N_LINES).map(line).collect::<Vec<_>>().join("\n")).unwrap();
    let out = home.0.join("many.out.jsonl");
    let arguments = ["batch", "--jsonl", requests.to_str().unwrap(), "--json"];
    let mut command = home.command(&arguments);
    let mut first = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let n_written = || std::fs::read_to_string(&out).map_or(0, |text| text.lines().count());
    let patience = Instant::now() + Duration::from_secs(120);
    while n_written() < 3 {
        assert!(Instant::now() < patience, "no result came");
        std::thread::sleep(Duration::from_millis(5));
    }
    first.kill().unwrap();
    first.wait().unwrap();
    let n_before = n_written();
    let report = home.json(&arguments[..3]);
    let kept = usize::try_from(report["kept"].as_u64().unwrap()).unwrap();
    assert!(kept >= 3 && kept <= n_before, "{report}, {n_before} lines before");
    assert_eq!(report["answered"], json!(N_LINES - kept));
    assert_eq!(results(&out).len(), N_LINES);
}
