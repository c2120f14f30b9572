//! Keys of other programs and the audit log, from the terminal.

use serde_json::json;

use crate::cli::Home;

#[test]
fn keys_are_shown_once_and_answers_are_in_the_audit_log() {
    let home = Home::new();
    let added = home.json(&["keys", "add", "lab", "--scope", "models", "--requests-per-day", "9"]);
    assert_eq!((&added["scopes"], &added["limits"]), (&json!(["models"]), &json!({ "requests_per_day": 9 })));
    let key = added["key"].as_str().expect("a key");
    let listed = home.json(&["keys", "list"]);
    assert_eq!((&listed[0]["name"], listed[0].get("key")), (&json!("lab"), None));
    let file = std::fs::read_to_string(home.0.join("keys/api_keys.json")).expect("the keys");
    assert!(!file.contains(key), "only the hash is kept");
    assert_eq!(home.error(&["keys", "add", "lab"]).1["code"], "keys.there");
    assert_eq!(home.json(&["keys", "revoke", "lab"])["name"], "lab");
    assert_eq!(home.error(&["keys", "revoke", "lab"]).1["code"], "keys.unknown");

    home.json(&["run", "--model", "starter", "--prompt", "Hello", "--max-tokens", "2"]);
    let checked = home.json(&["audit", "verify"]);
    assert_eq!((&checked["intact"], &checked["lines"]), (&json!(true), &json!(1)), "{checked}");
    let log = home.0.join("audit/audit.jsonl");
    let text = std::fs::read_to_string(&log).expect("the log");
    assert!(text.contains("\"interface\":\"terminal\"") && !text.contains("Hello"), "{text}");
    std::fs::write(&log, text.replacen("starter", "another", 1)).expect("it can be written");
    let (code, error) = home.error(&["audit", "verify"]);
    assert_eq!((code, &error["code"]), (3, &json!("audit.broken")));
    assert!(error["message"].as_str().is_some_and(|message| message.contains("audit.jsonl:1")), "{error}");
}
