//! A data folder of the version before the restructuring opens with everything in it.
//!
//! The folder and what has to be found lie in `tests/fixtures/data-before-restructure`; its README says how they were
//! made. The calls go through `nook serve`, whose interface stays as it was.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use inglenook_tests::workspace_root;
use serde_json::{Value, json};

use super::kill9::NookServer;

/// Depend on the machine, on what a server says now, on files where the fixture was made, or are words for people.
const VOLATILE: &[&str] = &[
    "models_list.fit",
    "models_list.state",
    "models_list.remote.note",
    "models_removed.disk_bytes",
    "model_folders.models",
    "model_folders.error",
    "model_folders.path",
    "settings.data_dir",
    "export.exported",
    "endpoint_list.health",
];

/// Fields that have another name since.
const RENAMED: &[(&str, &str)] = &[("fold", "compaction")];

/// A copy of the fixture; removed at the end.
struct OldData {
    folder: PathBuf,
    expected: Value,
}

impl OldData {
    fn new(name: &str) -> Self {
        let fixture = workspace_root().join("tests/fixtures/data-before-restructure");
        let folder = std::env::temp_dir().join(format!("inglenook-before-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        copy(&fixture.join("data"), &folder);
        let text = std::fs::read_to_string(fixture.join("expected.json")).unwrap();
        Self { folder, expected: serde_json::from_str(&text).unwrap() }
    }

    fn id(&self, name: &str) -> &str {
        self.expected["names"][name].as_str().unwrap_or_else(|| panic!("no conversation {name}"))
    }

    fn serve(&self) -> NookServer {
        NookServer::start(&self.folder)
    }
}

impl Drop for OldData {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// Every field of `expected` stands in `found` with the same value; `found` may have more.
fn differences(at: &str, expected: &Value, found: &Value, wrong: &mut Vec<String>) {
    match (expected, found) {
        (Value::Object(expected), Value::Object(_)) => {
            for (key, value) in expected {
                let at = format!("{at}.{key}");
                let renamed = RENAMED.iter().find(|(old, _)| old == key).map(|(_, new)| &found[*new]);
                let there = found.get(key).or(renamed).unwrap_or(&Value::Null);
                if !VOLATILE.contains(&without_indices(&at).as_str()) {
                    differences(&at, value, there, wrong);
                }
            }
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            for (i, (expected, found)) in expected.iter().zip(found).enumerate() {
                differences(&format!("{at}[{i}]"), expected, found, wrong);
            }
        }
        _ if expected == found => {}
        _ => wrong.push(format!("{at}: {found}, not {expected}")),
    }
}

/// `a[3].b` as `a.b`.
fn without_indices(at: &str) -> String {
    at.split('[').map(|part| part.split_once(']').map_or(part, |(_, rest)| rest)).collect()
}

/// Rows of `settings_list` and the like as key and value.
fn values(rows: &Value) -> Value {
    let rows = rows.as_array().unwrap_or_else(|| panic!("no rows: {rows}"));
    rows.iter().map(|row| (row["key"].as_str().unwrap().to_owned(), row["value"].clone())).collect()
}

#[test]
fn everything_is_found() {
    let data = OldData::new("found");
    let serving = data.serve();
    let (mut wrong, expected) = (Vec::new(), &data.expected);
    let mut check = |at: &str, expected: &Value, found: &Value| differences(at, expected, found, &mut wrong);
    for call in [
        "conversations_list",
        "trash_list",
        "folders_list",
        "presets_list",
        "endpoint_list",
        "tool_servers_list",
        "checkpoints_list",
        "download_list",
        "models_list",
        "models_removed",
        "model_folders",
        "hub_token",
    ] {
        check(call, &expected[call], &serving.call(call, &json!({})));
    }
    for (name, conversation) in expected["conversations"].as_object().unwrap() {
        check(name, conversation, &serving.call("conversation_get", &json!({ "id": data.id(name) })));
    }
    for (word, hits) in expected["search"].as_object().unwrap() {
        check(word, hits, &serving.call("search", &json!({ "query": word })));
    }
    for (id, text) in expected["attachment_texts"].as_object().unwrap() {
        check(id, text, &serving.call("attachment_text", &json!({ "id": id })));
    }
    check("settings", &expected["settings"], &values(&serving.call("settings_list", &json!({}))));
    for (model, settings) in expected["model_settings"].as_object().unwrap() {
        check(model, settings, &values(&serving.call("model_settings", &json!({ "id": model }))));
    }
    let exported = serving.call("export", &json!({ "id": null, "format": "json" }));
    let exported: Value = serde_json::from_str(exported["text"].as_str().unwrap()).unwrap();
    check("export", &expected["export_json"], &exported);
    serving.kill();
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

/// Answers go on from what was stored: as many tokens come back as did before, and the text is the same.
#[test]
fn stored_contexts_are_restored_not_computed_again() {
    let data = OldData::new("contexts");
    let serving = data.serve();
    serving.call("settings_set", &json!({ "key": "context_store_every", "value": 1 }));
    serving.call("settings_set", &json!({ "key": "guide_answers", "value": false }));
    let checkpoints = serving.call("checkpoints_list", &json!({}));
    let point =
        checkpoints.as_array().unwrap().iter().find(|it| it["name"] == "Branch point").expect("it is listed");
    serving.call("checkpoint_restore", &json!({ "id": point["id"] }));
    for (name, expected) in data.expected["follow_ups"].as_object().unwrap() {
        let sent = serving.call("send", &json!({ "conversation": data.id(name), "text": "Go on." }));
        serving.follow(
            sent["turn"].as_str().unwrap_or_else(|| panic!("{name}: {sent}")),
            Duration::from_secs(120),
        );
        let conversation = serving.call("conversation_get", &json!({ "id": data.id(name) }));
        let answer = conversation["messages"].as_array().unwrap().last().unwrap();
        let stats = &answer["stats"];
        let found = json!({
            "text": answer["text"],
            "prompt_tokens": stats["prompt_tokens"],
            "reused_tokens": stats["reused_tokens"],
        });
        assert_eq!(&found, expected, "{name}");
    }
    serving.kill();
}

/// A server that notes the `Authorization` of every request and knows nothing.
struct Listener {
    url: String,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Listener {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let heard = Arc::new(Mutex::new(Vec::new()));
        let noted = heard.clone();
        // Ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let lines =
                    BufReader::new(&stream).lines().map_while(Result::ok).take_while(|it| !it.is_empty());
                let authorization =
                    lines.filter(|it| it.to_lowercase().starts_with("authorization:")).collect();
                noted.lock().unwrap_or_else(PoisonError::into_inner).extend::<Vec<String>>(authorization);
                let _ = (&stream)
                    .write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            }
        });
        Self { url, heard }
    }

    fn heard(&self, secret: &str) -> bool {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|line| line.contains(secret))
    }
}

fn id_of<'a>(rows: &'a Value, name: &str) -> &'a str {
    let row = rows.as_array().unwrap().iter().find(|row| row["name"] == name);
    row.unwrap_or_else(|| panic!("no {name}"))["id"].as_str().unwrap()
}

#[test]
fn keys_and_secrets_can_be_read() {
    let data = OldData::new("keys");
    let serving = data.serve();
    let secret = |name: &str| data.expected["secrets"][name].as_str().unwrap();

    let listener = Listener::new();
    let endpoints = serving.call("endpoint_list", &json!({}));
    serving.call(
        "endpoint_update",
        &json!({ "id": id_of(&endpoints, "lab"), "url": format!("{}/v1", listener.url) }),
    );
    assert!(listener.heard(secret("endpoint")), "the endpoint's key is not sent");

    // An empty value keeps the secret that is stored.
    let servers = serving.call("tool_servers_list", &json!({}));
    let spec = json!({ "url": format!("{}/mcp", listener.url), "headers": { "Authorization": "" } });
    serving.call("tool_server_update", &json!({ "id": id_of(&servers, "web"), "spec": spec }));
    serving.call("tool_server_test", &json!({ "id": id_of(&servers, "web") }));
    assert!(listener.heard(secret("tools")), "the header of the tool server is not sent");

    let written = data.folder.join("secret");
    let command = format!("printenv FIXTURE_SECRET > '{}'", written.display());
    let spec = json!({ "command": "sh", "args": ["-c", command], "env": { "FIXTURE_SECRET": "" } });
    serving.call("tool_server_update", &json!({ "id": id_of(&servers, "local"), "spec": spec }));
    serving.call("tool_server_test", &json!({ "id": id_of(&servers, "local") }));
    let found = std::fs::read_to_string(written).expect("the server is started");
    assert_eq!(found.trim(), secret("tools"), "the variable of the tool server");

    serving.call("settings_set", &json!({ "key": "hub", "value": listener.url }));
    serving.call("hub_search", &json!({ "query": "llama" }));
    assert!(listener.heard(secret("hub")), "the token of the hub is not sent");
    serving.kill();
}

#[test]
fn differences_are_seen() {
    let cases: BTreeMap<&str, (Value, Value, usize)> = BTreeMap::from([
        ("same", (json!({"a": [1, {"b": null}]}), json!({"a": [1, {"b": null}], "c": 2}), 0)),
        ("value", (json!({"a": 1}), json!({"a": 2}), 1)),
        ("absent", (json!({"a": 1, "b": 2}), json!({}), 2)),
        ("length", (json!([1, 2]), json!([1]), 1)),
        ("renamed", (json!({"fold": {"x": 1}}), json!({"compaction": {"x": 1}}), 0)),
    ]);
    for (name, (expected, found, n)) in cases {
        let mut wrong = Vec::new();
        differences("it", &expected, &found, &mut wrong);
        assert_eq!(wrong.len(), n, "{name}: {wrong:?}");
    }
    let mut wrong = Vec::new();
    differences("models_list", &json!([{"fit": 1, "name": 1}]), &json!([{"fit": 2, "name": 2}]), &mut wrong);
    assert_eq!(wrong, ["models_list[0].name: 2, not 1"]);
}
