//! Tool servers: added, pasted, listed, changed, removed; over a pipe and over HTTP.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use contract::types::{
    ToolDecision, ToolPermitArgs, ToolRunState, ToolServerAddArgs, ToolServerSpec, ToolServerState,
    ToolServerUpdateArgs,
};
use serde_json::json;

use super::home::{Home, calling, results, script, spec, states};

#[test]
fn a_list_comes_in_pages_and_grows() {
    let home = Home::new("list");
    let info = home.add("t", &["--page", "3"]);
    assert_eq!(info.state, ToolServerState::Ready);
    assert_eq!(info.tools.len(), 11);
    assert!(info.tools[1].read_only && info.tools[0].title == "Echo");
    home.allow(&info);
    let fake = calling(&[("grow", json!({}))]);
    let (_, message) = home.send(&fake, "Grow");
    home.answered(&message);
    let grown = || home.app().tool_servers_list().unwrap()[0].tools.len() == 12;
    let soon = (0..500).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        grown()
    });
    assert!(soon, "the new tool is not listed");
}

#[test]
fn f72_what_cannot_start_says_why() {
    let home = Home::new("broken");
    let cases = [
        (spec(&["--broken"]), "cannot find the settings"),
        (spec(&["--revision", "1999-01-01"]), "1999-01-01"),
        (
            ToolServerSpec { command: Some("/no/such/program".into()), ..Default::default() },
            "could not be started",
        ),
        (
            ToolServerSpec { url: Some("http://127.0.0.1:9/mcp".into()), ..Default::default() },
            "can't be reached",
        ),
    ];
    for (at, (spec, words)) in cases.into_iter().enumerate() {
        let args = ToolServerAddArgs { name: format!("t{at}"), spec };
        let info = home.app().tool_server_add(args).unwrap();
        let ToolServerState::Failed { error } = info.state else { panic!("{:?}", info.state) };
        assert!(error.message.contains(words), "{}", error.message);
        assert!(!error.remedy.is_empty() && info.tools.is_empty());
        assert_eq!(home.app().tool_server_test(&info.id).unwrap_err().code(), error.code);
    }
    let twice = ToolServerAddArgs { name: "T0".into(), spec: spec(&[]) };
    assert_eq!(home.app().tool_server_add(twice).unwrap_err().code(), "tools.there");
}

#[test]
fn f75_servers_of_each_revision_work_and_an_unknown_one_is_named() {
    let home = Home::new("revisions");
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let info = home.add(revision, &["--revision", revision]);
        assert_eq!(info.state, ToolServerState::Ready, "{revision}");
        assert_eq!(info.tools.len(), 11, "{revision}");
    }
    for flags in [&["--revision", "1999-01-01"][..], &["--stateless", "2026-07-28", "--speaks", "1999-01-01"]]
    {
        let info = home.add(&format!("another {}", flags.len()), flags);
        let ToolServerState::Failed { error } = info.state else { panic!("{:?}", info.state) };
        assert!(error.message.contains("1999-01-01"), "{error:?}");
        assert!(!error.remedy.is_empty());
    }
}

#[test]
fn f75_a_server_without_sessions_is_called_over_either_transport() {
    let behind = Behind::new(&["--stateless", "2026-07-28"]);
    let here = spec(&["--stateless", "2026-07-28"]);
    let there = ToolServerSpec { url: Some(behind.url.clone()), ..Default::default() };
    for (name, spec) in [("stateless-here", here), ("stateless-there", there)] {
        let home = Home::new(name);
        let info = home.app().tool_server_add(ToolServerAddArgs { name: "t".into(), spec }).unwrap();
        assert_eq!((info.state.clone(), info.tools.len()), (ToolServerState::Ready, 11), "{name}");
        home.allow(&info);
        let fake = calling(&[("echo", json!({ "text": "each for itself" }))]);
        let (_, message) = home.send(&fake, "Say it");
        assert!(results(&home.answered(&message).0)[0].contains("each for itself"), "{name}");
    }
}

#[test]
fn an_answer_that_goes_on_in_another_stream_is_heard() {
    let behind = Behind::new(&["--polled", "200"]);
    let home = Home::new("polled");
    let spec = ToolServerSpec { url: Some(behind.url.clone()), ..Default::default() };
    let info = home.app().tool_server_add(ToolServerAddArgs { name: "t".into(), spec }).unwrap();
    home.allow(&info);
    let fake = calling(&[("echo", json!({ "text": "in its own time" }))]);
    let (_, message) = home.send(&fake, "Say it");
    assert!(results(&home.answered(&message).0)[0].contains("in its own time"));
}

#[test]
fn a_pasted_configuration_is_added_and_its_secrets_are_sealed() {
    let mut home = Home::new("pasted");
    let good = json!({ "command": "python3", "args": [script()], "env": { "TOKEN": "s3cret-value" } });
    let text = json!({ "mcpServers": { "good": good, "wrong": {} } }).to_string();
    let imported = home.app().tool_servers_import(&text).unwrap();
    assert_eq!((imported.added.len(), imported.refused.len()), (1, 1));
    let info = imported.added[0].clone();
    assert_eq!((info.state.clone(), info.spec.env["TOKEN"].as_str()), (ToolServerState::Ready, ""));
    let again = home.app().tool_servers_import(&text).unwrap();
    assert_eq!(again.added[0].name, "good 2");
    home.app().tool_server_remove(&again.added[0].id).unwrap();

    home.allow(&info);
    let fake = calling(&[("environment", json!({}))]);
    let seen = |home: &Home| {
        let (_, message) = home.send(&fake, "Show");
        results(&home.answered(&message).0)[0].to_owned()
    };
    let environment = seen(&home);
    assert!(environment.contains("s3cret-value") && environment.contains("PATH"), "{environment}");
    assert!(!environment.contains("CARGO_MANIFEST_DIR"), "only what programs need is passed on");

    home.reopen();
    // What stays empty stays as it was.
    let spec = ToolServerSpec {
        env: [("TOKEN".into(), String::new()), ("MORE".into(), "m0re".into())].into(),
        ..info.spec.clone()
    };
    let args = ToolServerUpdateArgs {
        id: info.id.clone(),
        name: Some("better".into()),
        spec: Some(spec),
        ..Default::default()
    };
    let changed = home.app().tool_server_update(args).unwrap();
    assert_eq!((changed.name.as_str(), changed.allowed), ("better", true), "the same program stays allowed");
    let environment = seen(&home);
    assert!(environment.contains("s3cret-value") && environment.contains("m0re"));

    home.app().tool_server_remove(&info.id).unwrap();
    assert!(home.app().tool_servers_list().unwrap().is_empty());
    home.app().tool_server_restore(&info.id).unwrap();
    assert!(seen(&home).contains("s3cret-value"));
    home.app().tool_server_remove(&info.id).unwrap();

    home.close();
    for entry in std::fs::read_dir(&home.folder).unwrap().flatten().filter(|it| it.path().is_file()) {
        let bytes = std::fs::read(entry.path()).unwrap();
        // What the tool said of its environment stands in the conversation; nothing else may.
        let text = String::from_utf8_lossy(&bytes);
        assert!(
            !text.contains("\"TOKEN\":\"s3cret-value\"") && !text.contains("TOKEN=s3cret"),
            "{:?}",
            entry.path()
        );
    }
}

#[test]
fn what_is_offered_is_chosen() {
    let home = Home::new("chosen");
    let info = home.add("t", &[]);
    let offered = |options| home.app().tools_offer(options).unwrap().tools.len();
    assert_eq!(offered(None), 11);
    let off =
        ToolPermitArgs { id: info.id.clone(), tool: Some("die".into()), enabled: Some(false), allowed: None };
    assert!(!home.app().tool_permit(&off).unwrap().tools.iter().find(|it| it.name == "die").unwrap().enabled);
    assert_eq!(offered(None), 10);
    let none = contract::types::ConversationOptions { tools: Some(Vec::new()), ..Default::default() };
    let this =
        contract::types::ConversationOptions { tools: Some(vec![info.id.clone()]), ..Default::default() };
    assert_eq!(offered(Some(&none)), 0);
    home.app().settings_set("tools", &json!(false)).unwrap();
    assert_eq!((offered(None), offered(Some(&this))), (0, 10));
    let args = ToolServerUpdateArgs { id: info.id, enabled: Some(false), ..Default::default() };
    assert_eq!(home.app().tool_server_update(args).unwrap().state, ToolServerState::Idle);
    assert_eq!(offered(Some(&this)), 0);
}

/// The script behind an address.
pub struct Behind {
    child: Child,
    pub url: String,
}

impl Behind {
    pub fn new(flags: &[&str]) -> Self {
        let mut command = Command::new("python3");
        command.arg(script()).arg("--http").args(flags).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { child, url: format!("http://127.0.0.1:{}/mcp", port.trim()) }
    }
}

impl Drop for Behind {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_server_behind_an_address() {
    for flags in [&["--key", "k3y"][..], &["--key", "k3y", "--stream"], &["--key", "k3y", "--forget"]] {
        let behind = Behind::new(flags);
        let home = Home::new(&format!("http{}", flags.join("")));
        let add = |name: &str, headers: &[(&str, &str)]| {
            let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
            let spec = ToolServerSpec { url: Some(behind.url.clone()), headers, ..Default::default() };
            home.app().tool_server_add(ToolServerAddArgs { name: name.into(), spec }).unwrap()
        };
        let strange = add("keyless", &[]);
        let ToolServerState::Failed { error } = strange.state else { panic!("it let us in") };
        assert_eq!(error.code, "tools.key", "{error:?}");
        home.app().tool_server_remove(&strange.id).unwrap();

        let info = add("far", &[("Authorization", "Bearer k3y")]);
        assert_eq!(
            (info.state, info.tools.len(), info.leaves_machine),
            (ToolServerState::Ready, 11, false),
            "{flags:?}"
        );
        let fake = calling(&[("add", json!({ "a": 20, "b": 22 }))]);
        let (_, message) = home.send(&fake, "Add");
        home.decide(&message, "c1-0", ToolDecision::AllowServer);
        let (calls, _) = home.answered(&message);
        if flags.contains(&"--forget") {
            assert_eq!(states(&calls), [ToolRunState::Failed], "{calls:?}");
            assert!(results(&calls)[0].contains("no longer knows"));
            let (_, message) = home.send(&fake, "Add again");
            assert_eq!(results(&home.answered(&message).0), ["42"], "it is greeted anew");
        } else {
            assert_eq!(results(&calls), ["42"]);
        }
        let record = home.app().connections_list(None).unwrap();
        let of_tools = |it: &&contract::types::ConnectionInfo| {
            it.purpose == Some(contract::types::ConnectionPurpose::Tool)
        };
        assert!(record.iter().filter(of_tools).count() >= 4, "{record:?}");
        assert!(record.iter().find(of_tools).unwrap().host.starts_with("127.0.0.1:"));

        home.app().settings_set("offline", &json!(true)).unwrap();
        let n = record.len();
        assert_eq!(home.app().tool_server_test(&info.id).unwrap_err().code(), "network.offline");
        assert_eq!(home.app().connections_list(None).unwrap().len(), n);
    }
}

/// Far below the time limit of a call.
const AT_ONCE: Duration = Duration::from_secs(20);

#[test]
fn habits_of_servers_are_understood() {
    let habits = [
        ("null-error", "hello"),
        ("string-id", "hello"),
        ("one-part", "hello"),
        ("bare-text", "hello"),
        ("nan", "hello"),
        ("surrogate", "\u{fffd}hello"),
        ("words-before", "hello"),
        ("cut", "is not an MCP message"),
    ];
    for (habit, expected) in habits {
        for over in [&[][..], &["--stream"]] {
            let home = Home::new(&format!("habit-{habit}-{}", over.len()));
            let behind = (!over.is_empty() && habit != "words-before")
                .then(|| Behind::new(&[&["--habit", habit], over].concat()));
            let spec = match &behind {
                Some(behind) => ToolServerSpec { url: Some(behind.url.clone()), ..Default::default() },
                None => spec(&["--habit", habit]),
            };
            let info = home.app().tool_server_add(ToolServerAddArgs { name: "t".into(), spec }).unwrap();
            assert_eq!(info.state, ToolServerState::Ready, "{habit}");
            home.allow(&info);
            let fake = calling(&[("echo", json!({ "text": "hello" }))]);
            let start = Instant::now();
            let (_, message) = home.send(&fake, "Say it");
            let (calls, _) = home.answered(&message);
            assert!(results(&calls)[0].contains(expected), "{habit}: {calls:?}");
            assert!(start.elapsed() < AT_ONCE, "{habit}");
        }
    }
}

#[test]
fn redirects_are_followed_within_the_server_only() {
    let other = Behind::new(&[]);
    for (to, status, is_fine) in [
        ("/mcp/", "307", true),
        ("/mcp/", "308", true),
        ("/mcp/", "301", true),
        ("/mcp/", "303", false),
        ("/mcp", "307", false),
        (other.url.as_str(), "307", false),
    ] {
        let behind = Behind::new(&["--key", "k3y", "--redirect", to, "--redirect-status", status]);
        let home = Home::new(&format!("redirect{}{status}", to.len()));
        let headers = [("Authorization".to_owned(), "Bearer k3y".to_owned())].into();
        let spec = ToolServerSpec { url: Some(behind.url.clone()), headers, ..Default::default() };
        let info = home.app().tool_server_add(ToolServerAddArgs { name: "t".into(), spec }).unwrap();
        match info.state {
            ToolServerState::Ready => assert!(is_fine, "{to} {status}"),
            ToolServerState::Failed { error } => {
                assert!(!is_fine && error.code == "tools.moved", "{to} {status}: {error:?}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_stream_of_the_servers_own_is_listened_to_and_opened_again() {
    let behind = Behind::new(&["--events"]);
    let home = Home::new("events");
    let spec = ToolServerSpec { url: Some(behind.url.clone()), ..Default::default() };
    let info = home.app().tool_server_add(ToolServerAddArgs { name: "t".into(), spec }).unwrap();
    assert_eq!((info.state, info.tools.len()), (ToolServerState::Ready, 11));
    let soon = (0..1000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        home.app().tool_servers_list().unwrap()[0].tools.len() == 12
    });
    assert!(soon, "the new tool is not listed");
}

#[test]
fn progress_extends_the_time_of_a_call() {
    for (flags, expected) in [(&["--progress"][..], ToolRunState::Done), (&[], ToolRunState::Failed)] {
        let home = Home::new(&format!("progress{}", flags.len()));
        home.app().settings_set("tool_seconds", &json!(1)).unwrap();
        let info = home.add("t", flags);
        home.allow(&info);
        let fake = calling(&[("sleep", json!({ "seconds": 2.5 }))]);
        let (_, message) = home.send(&fake, "Wait");
        let (calls, _) = home.answered(&message);
        assert_eq!(states(&calls), [expected], "{calls:?}");
    }
}

#[test]
fn a_server_that_is_switched_off_in_a_configuration_stays_off() {
    let home = Home::new("off");
    let server = |disabled| json!({ "command": "python3", "args": [script()], "disabled": disabled, "env": { "N": 3 } });
    let text = json!({ "mcpServers": { "off": server(true), "on": server(false) } }).to_string();
    let imported = home.app().tool_servers_import(&text).unwrap();
    let states: Vec<_> =
        imported.added.iter().map(|it| (it.name.as_str(), it.enabled, it.state.clone())).collect();
    assert_eq!(states, [("off", false, ToolServerState::Idle), ("on", true, ToolServerState::Ready)]);
}

#[cfg(target_os = "linux")]
#[test]
fn servers_end_with_the_application() {
    let mut home = Home::new("end");
    let marker = format!("marker-{}", std::process::id());
    home.add("t", &["--stubborn", "--key", &marker]);
    let running = || {
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok()).any(|line| {
            let line = String::from_utf8_lossy(&line).into_owned();
            line.contains(&marker) && line.contains("--stubborn")
        })
    };
    assert!(running());
    home.close();
    let soon = (0..250).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        !running()
    });
    assert!(soon, "it still runs");
}
