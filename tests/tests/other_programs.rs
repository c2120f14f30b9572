//! What `nook` does for other programs: agents it starts, figures it reports, files for shells and `man`.

use std::io::{BufRead, BufReader};
#[cfg(unix)]
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::cli::{Home, RunningNook};

#[test]
fn shells_and_man_get_their_files() {
    let home = Home::new();
    for (shell, part) in [("bash", "complete -F"), ("zsh", "#compdef nook"), ("fish", "complete -c nook")] {
        let script = home.json(&["completions", shell])["script"].as_str().unwrap().to_owned();
        assert!(script.contains(part) && script.contains("batch"), "{shell}");
    }
    assert_eq!(home.error(&["completions", "cmd"]).0, 2);
    let folder = home.0.join("man");
    let pages = home.json(&["man", folder.to_str().unwrap()])["pages"].as_array().unwrap().len();
    assert!(pages > 30 && folder.join("nook-models-pull.1").is_file(), "{pages}");
}

#[test]
fn stats_ask_the_servers_of_the_folder() {
    let home = Home::new();
    let alone = home.json(&["stats"]);
    assert_eq!((&alone["servers"], &alone["models"], &alone["chats"]), (&json!([]), &json!(1), &json!(0)));
    let mut command = home.command(&["serve", "--port", "0"]);
    let mut server = RunningNook(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let mut ready = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    let seen = home.json(&["stats"]);
    let figures = &seen["servers"][0];
    assert_eq!((&figures["running"], &figures["generated_tokens"]), (&json!(0), &json!(0)), "{seen}");
    assert!(ready.contains(&figures["port"].to_string()), "{ready} {seen}");
    let refused = home.json(&["stats", "--api-key", "another-key"]);
    assert_eq!(refused["servers"][0]["error"]["code"], "server.key_refused");
    let mut watching = home.command(&["stats", "--watch", "--json"]);
    let mut watching = RunningNook(watching.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let lines = BufReader::new(watching.0.stdout.take().unwrap()).lines().take(2);
    for line in lines {
        let seen: Value = serde_json::from_str(&line.unwrap()).unwrap();
        assert!(seen["servers"][0]["uptime_s"].is_number(), "{seen}");
    }
}

#[cfg(unix)]
#[test]
fn an_agent_finds_a_server_that_knows_its_key() {
    let home = Home::new();
    let (exit, error) = home.error_with_path(&["launch", "codex"], "/nonexistent");
    assert_eq!((exit, &error["code"]), (3, &json!("launch.no_program")));
    assert!(error["remedy"].as_str().unwrap().contains("@openai/codex"));
    // an agent that asks its server for the list of models and keeps the answer
    let folder = home.0.join("bin");
    std::fs::create_dir_all(&folder).unwrap();
    let agent = folder.join("claude");
    let script = "#!/usr/bin/env python3\n\
        import json, os, sys, urllib.request\n\
        headers = {'Authorization': 'Bearer ' + os.environ['ANTHROPIC_AUTH_TOKEN']}\n\
        ask = urllib.request.Request(os.environ['ANTHROPIC_BASE_URL'] + '/v1/models', headers=headers)\n\
        models = json.load(urllib.request.urlopen(ask))\n\
        seen = {'args': sys.argv[1:], 'model': os.environ['ANTHROPIC_MODEL'], 'models': models}\n\
        json.dump(seen, open(os.environ['AGENT_OUT'], 'w'))\n\
        sys.exit(7)\n";
    std::fs::write(&agent, script).unwrap();
    std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let seen_file = home.0.join("seen.json");
    let mut command = home.command(&["launch", "claude", "--model", "starter", "--", "-p", "hi"]);
    let ended = command.env("PATH", path).env("AGENT_OUT", &seen_file).output().unwrap();
    assert_eq!(ended.status.code(), Some(7), "{}", String::from_utf8_lossy(&ended.stderr));
    let seen: Value = serde_json::from_slice(&std::fs::read(&seen_file).unwrap()).unwrap();
    assert_eq!((&seen["args"], &seen["model"]), (&json!(["-p", "hi"]), &json!("starter")));
    assert_eq!(seen["models"]["data"][0]["id"], "starter");
    assert_eq!(home.json(&["keys", "list"]), json!([]), "its key is revoked");
    let plan = home.json(&["launch", "opencode", "--dry-run"]);
    assert_eq!(
        (&plan["program"], plan["env"]["OPENCODE_CONFIG_CONTENT"].is_string()),
        (&json!("opencode"), true)
    );
}
