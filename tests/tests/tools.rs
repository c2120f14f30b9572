//! `nook tools` and `nook plugins`, with the real server of `tests/mcp`.

use inglenook_tests::{nook, workspace_root};
use serde_json::{Value, json};

use crate::cli::Home;

fn script() -> String {
    workspace_root().join("tests/mcp/server.py").display().to_string()
}

fn n_tools(server: &Value) -> Option<usize> {
    server["tools"].as_array().map(Vec::len)
}

#[test]
fn servers_are_kept_from_the_terminal() {
    let home = Home::new();
    let import = |name: &str, spec: Value| {
        let file = home.0.join("config.json");
        std::fs::write(&file, json!({ "mcpServers": { name: spec } }).to_string()).unwrap();
        home.json(&["tools", "import", file.to_str().unwrap()])["added"][0].clone()
    };
    let path = std::env::var("PATH").unwrap();
    let args = [script(), "--page".into(), "2".into()];
    let added = import("t", json!({ "command": "python3", "args": args, "env": { "PATH": path } }));
    assert_eq!((&added["state"]["state"], &added["spec"]["env"]["PATH"]), (&json!("ready"), &json!("")));
    assert_eq!(n_tools(&added), Some(11));
    // Another process knows what was listed, and starts nothing for it.
    let listed = home.json(&["tools", "list"]);
    assert_eq!((&listed[0]["name"], &listed[0]["state"]["state"]), (&json!("t"), &json!("idle")));
    assert_eq!(n_tools(&listed[0]), Some(11));

    let state = &import("u", json!({ "command": "python3", "args": [script(), "--broken"] }))["state"];
    assert_eq!(state["state"], "failed");
    assert!(state["error"]["message"].as_str().unwrap().contains("cannot find the settings"), "{state}");
    let (code, error) = home.error(&["tools", "test", "u"]);
    assert_eq!((code, &error["code"]), (5, &json!("tools.gone")), "{error}");
    assert_eq!(home.json(&["tools", "off", "u"])["enabled"], json!(false));
    home.json(&["tools", "rm", "u"]);
    home.json(&["tools", "rm", "t"]);
    assert_eq!(home.json(&["tools", "list"]), json!([]));
    let kept = home.json(&["tools", "add", "x", "--url", "http://127.0.0.1:9/mcp"]);
    assert_eq!(kept["state"]["state"], "failed", "kept all the same: {kept}");
    assert_eq!(
        home.error(&["tools", "add", "x", "--url", "http://127.0.0.1:9/mcp"]).1["code"],
        "tools.there"
    );
}

#[test]
fn what_servers_offer_is_listed_and_read() {
    let home = Home::new();
    let file = home.0.join("config.json");
    let config = json!({ "mcpServers": { "lab": { "command": "python3", "args": [script()] } } });
    std::fs::write(&file, config.to_string()).unwrap();
    home.json(&["tools", "import", file.to_str().unwrap()]);
    let offered = home.json(&["tools", "resources", "lab"]);
    assert_eq!(offered["resources"][0]["uri"], "note://today");
    assert_eq!(offered["templates"][0]["template"], "note://named/{name}");
    let read = |uri: &str| home.json(&["tools", "read", "lab", uri])["text"].clone();
    assert_eq!(read("note://today"), "# Today\n\nFeed the fox.\n");
    assert_eq!(read("note://named/ann"), "A note called ann.");
    let prompts = home.json(&["tools", "prompts", "lab"]);
    assert_eq!(
        (&prompts[0]["name"], &prompts[0]["arguments"][0]["required"]),
        (&json!("greet"), &json!(true))
    );
    let greeting = home.json(&["tools", "prompt", "lab", "greet", "who=Ada"]);
    assert_eq!(greeting["text"], "Greet Ada in a warm tone.");
    assert_eq!(home.error(&["tools", "prompt", "lab", "greet", "Ada"]).1["code"], "tools.argument");
    let (code, error) = home.error(&["tools", "read", "lab", "note://picture"]);
    assert_eq!((code, &error["code"]), (3, &json!("tools.binary")), "{error}");
}

#[test]
fn plugins_are_listed_with_what_is_wrong() {
    let home = Home::new();
    let folder = home.0.join("plugins/broken");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("plugin.toml"), "name = \"x\"\n\nversion = [").unwrap();
    let listed = home.json(&["plugins"]);
    let error = &listed[0]["error"];
    assert!(error["message"].as_str().unwrap().contains("plugin.toml, line 3"), "{error}");
    assert_eq!(home.error(&["plugins", "on", "broken"]).1["code"], "plugin.manifest");
    assert_eq!(home.error(&["plugins", "on", "../broken"]).1["code"], "plugin.unknown");
}

/// At a pseudo-terminal, with a scripted model: approvals, Ctrl+C, servers that die or hang, escape sequences.
#[cfg(target_os = "linux")]
#[test]
fn tools_at_a_terminal() {
    let script = workspace_root().join("tests/mcp/terminal.py");
    let played =
        std::process::Command::new("python3").arg(script).arg("--nook").arg(nook()).output().unwrap();
    let said = String::from_utf8_lossy(&played.stdout).into_owned();
    assert!(played.status.success(), "{said}{}", String::from_utf8_lossy(&played.stderr));
    assert!(said.trim_end().ends_with("10 passed"), "{said}");
}
