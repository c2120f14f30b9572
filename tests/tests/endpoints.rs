//! `nook endpoints` and `nook connections` against another Inglenook; and how its `/tokenize` makes counts exact.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use app::App;
use app::AppConfig;
use contract::types::{ConnectionPurpose, DraftArgs, EndpointAddArgs, SendArgs, TurnEventKind};
use inglenook_tests::nook;
use serde_json::{Value, json};

use super::kill9::{KEY, NookServer};

/// Removed at the end.
struct EndpointsHome(PathBuf);

impl EndpointsHome {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("inglenook-endpoints-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn desk(&self) -> PathBuf {
        self.0.join("desk")
    }

    /// `nook …`: what it printed, or its error. `key`: over standard input.
    fn nook(&self, args: &[&str], key: &str) -> Result<Value, Value> {
        let mut command = Command::new(nook());
        command.env_clear().env("HOME", &self.0).env("LAB_KEY", KEY);
        command.arg("--data-dir").arg(self.desk()).arg("--json").args(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("nook runs");
        // One that reads nothing may have ended.
        let _ = child.stdin.take().expect("it is piped").write_all(key.as_bytes());
        let output = child.wait_with_output().expect("it ends");
        let last = |bytes: &[u8]| {
            let line = bytes.split(|&byte| byte == b'\n').rfind(|line| !line.is_empty());
            serde_json::from_slice::<Value>(line.unwrap_or_default()).unwrap_or(Value::Null)
        };
        match output.status.success() {
            true => Ok(last(&output.stdout)),
            false => Err(last(&output.stderr)["error"].clone()),
        }
    }
}

impl Drop for EndpointsHome {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn holds(folder: &Path, text: &str) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.into_iter().any(|path| match path.is_dir() {
        true => holds(&path, text),
        false => {
            std::fs::read(&path).is_ok_and(|bytes| bytes.windows(text.len()).any(|it| it == text.as_bytes()))
        }
    })
}

#[test]
fn endpoints_come_are_changed_and_go_by_the_terminal() {
    let home = EndpointsHome::new("verbs");
    let server = NookServer::start(&home.0.join("server"));
    let url = format!("http://{}", server.address());
    let added = home.nook(&["endpoints", "add", "lab", &url, "--key-stdin"], KEY).unwrap();
    assert_eq!((&added["health"]["state"], &added["server"]), (&json!("up"), &json!("inglenook")), "{added}");
    assert_eq!((&added["key"]["type"], &added["models"][0]["id"]), (&json!("kept"), &json!("starter")));
    assert!(!holds(&home.desk(), KEY), "no file has the key in clear");
    assert_eq!(added["leaves_machine"], false);
    let id = added["id"].as_str().unwrap();
    let again = home.nook(&["endpoints", "add", "lab", &url], "").unwrap_err();
    assert_eq!(again["code"], "endpoint.there");

    let other = home.nook(&["endpoints", "add", "other", &url, "--key-stdin"], "sk-wrong").unwrap();
    assert_eq!(other["health"]["error"]["code"], "remote.key", "{other}");
    let tested = home.nook(&["endpoints", "test"], "").unwrap();
    let states: Vec<&Value> =
        tested["endpoints"].as_array().unwrap().iter().map(|it| &it["health"]["state"]).collect();
    assert_eq!(states, ["up", "down"]);
    let mended = home.nook(&["endpoints", "update", "other", "--key-env", "LAB_KEY", "--name", "third"], "");
    let mended = mended.unwrap();
    assert_eq!((&mended["name"], &mended["health"]["state"]), (&json!("third"), &json!("up")));
    assert_eq!(mended["key"], json!({"type": "environment", "variable": "LAB_KEY"}));
    let unkeyed = home.nook(&["endpoints", "update", "third", "--no-key"], "").unwrap();
    assert_eq!(unkeyed["health"]["error"]["code"], "remote.key");

    let ask = ["run", "--model", "lab/starter", "--prompt", "What is a token?", "--max-tokens", "4"];
    home.nook(&ask, "").unwrap();
    assert_eq!(home.nook(&["endpoints", "off", "lab"], "").unwrap()["enabled"], false);
    assert_eq!(home.nook(&ask, "").unwrap_err()["code"], "remote.disabled");
    assert_eq!(home.nook(&["endpoints", "on", id], "").unwrap()["enabled"], true);
    assert_eq!(home.nook(&["endpoints", "rm", "third"], "").unwrap()["removed"], "third");
    let listed = home.nook(&["endpoints", "list"], "").unwrap();
    assert_eq!(listed["endpoints"].as_array().unwrap().len(), 1);
    assert_eq!(home.nook(&["endpoints", "rm", "third"], "").unwrap_err()["code"], "endpoint.unknown");
    server.kill();
}

#[test]
fn connections_are_listed_newest_first_and_none_is_made_offline() {
    let home = EndpointsHome::new("record");
    let server = NookServer::start(&home.0.join("server"));
    let url = format!("http://{}", server.address());
    home.nook(&["endpoints", "add", "lab", &url, "--key-stdin"], KEY).unwrap();
    let ask = ["run", "--model", "lab/starter", "--prompt", "What is a token?", "--max-tokens", "4"];
    home.nook(&ask, "").unwrap();
    let listed = |args: &[&str]| {
        let listed = home.nook(&[&["connections"], args].concat(), "").unwrap();
        listed["connections"].as_array().unwrap().clone()
    };
    let all = listed(&[]);
    assert!(all.iter().all(|it| it["host"] == server.address()), "{all:?}");
    assert_eq!(
        (&all[0]["purpose"], &all[all.len() - 1]["purpose"]),
        (&json!("answer"), &json!("model_list"))
    );
    assert!(all[0]["sent"].as_u64() > Some(50) && all[0]["received"].as_u64() > Some(50), "{}", all[0]);
    assert!(!all[0].to_string().contains("token?"), "never what was said");
    assert_eq!(listed(&["--limit", "1"]), all[..1]);

    home.nook(&["settings", "set", "offline", "true"], "").unwrap();
    for args in [&ask[..], &["endpoints", "test", "lab"], &["models", "pull", "smollm3-3b"]] {
        let error = home.nook(args, "").unwrap_err();
        assert_eq!(error["code"], "network.offline", "{args:?}: {error}");
        assert!(error["remedy"].as_str().unwrap().contains("settings set offline false"), "{error}");
    }
    let found = home.nook(&["models", "search", "smollm3"], "").unwrap();
    assert_eq!(found["offline"]["code"], "network.offline");
    assert_eq!(listed(&[]), all);
    server.kill();
}

#[test]
fn a_long_prompt_is_counted_by_the_server_and_later_estimates_follow_it() {
    let home = EndpointsHome::new("count");
    let server = NookServer::start(&home.0.join("server"));
    let app = App::open(AppConfig { data_dir: Some(home.desk()), ..AppConfig::default() }).unwrap();
    app.settings_set("titles", &json!(false)).unwrap();
    app.settings_set("max_tokens", &json!(4)).unwrap();
    let args = EndpointAddArgs {
        name: "lab".into(),
        url: format!("http://{}", server.address()),
        key: Some(KEY.into()),
        ..EndpointAddArgs::default()
    };
    let context = app.endpoint_add(args).unwrap().models[0].context_length as usize;
    assert!(context > 0, "the server says how much it holds");
    let counted = || {
        let all = app.connections_list(None).unwrap();
        all.iter().filter(|it| it.purpose == Some(ConnectionPurpose::Count)).count()
    };
    let ask = |text: &str| {
        let args = SendArgs { text: text.into(), model: Some("lab/starter".into()), ..SendArgs::default() };
        let turn = app.send(args).unwrap().turn;
        let told = app.watch_turn(&turn, 0).unwrap().flatten();
        let stats = told.filter_map(|event| match event.kind {
            TurnEventKind::Done { stats } => Some(stats),
            TurnEventKind::Failed { error } => panic!("{error:?}"),
            _ => None,
        });
        stats.last().expect("it ends")
    };
    assert!(ask("Hello").prompt_tokens > 0);
    assert_eq!(counted(), 0, "a short prompt is not worth a request");
    // about half of the context by its bytes
    let text = "How do I add a model to the library? ".repeat(context * 2 / 37);
    let stats = ask(&text);
    assert_eq!(counted(), 1);
    assert!(!stats.is_about, "the server's own count");
    let draft =
        app.draft_count(&DraftArgs { text, model: Some("lab/starter".into()), ..DraftArgs::default() });
    let draft = draft.unwrap();
    assert!(draft.is_about);
    let off = f64::from(draft.tokens) / f64::from(stats.prompt_tokens);
    assert!((0.9..1.1).contains(&off), "{} estimated, {} counted", draft.tokens, stats.prompt_tokens);
    assert_eq!(counted(), 1, "a draft is never sent to be counted");
    server.kill();
}
