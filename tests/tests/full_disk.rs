//! A disk that is full: a small one in memory (tmpfs), in a mount namespace that this test's programs alone see. What was
//! acknowledged stays, what does not fit is refused by name, and with room again everything goes on.

use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use serde_json::{Value, json};
use test_support::{Missing, TempDir, skip};

use super::kill9::NookServer;
use super::kill9_writes::write_export;

const DISK: &str = "64m";
/// Taken by another file until there is to be room again.
const BALLAST_BYTES: usize = 24 << 20;
/// More than fit: each import takes some megabytes.
const MAX_IMPORTS: usize = 60;
/// Chats of one import.
const CHATS: usize = 100;

/// A small disk, gone with the process that holds its namespace.
struct SmallDisk {
    holder: Child,
    _stdin: ChildStdin,
    folder: PathBuf,
}

impl SmallDisk {
    /// None where this user may not mount anything even in a namespace.
    fn mount(folder: &Path) -> Option<Self> {
        let script = format!("mount -t tmpfs -o size={DISK} tmpfs \"$0\" && echo mounted && exec cat");
        let mut holder = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut line = String::new();
        let stdout = holder.stdout.take().expect("it is piped");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).expect("a line or none");
        let stdin = holder.stdin.take().expect("it is piped");
        let disk = Self { holder, _stdin: stdin, folder: folder.to_owned() };
        (line == "mounted\n").then_some(disk)
    }

    /// What begins a command that sees the disk.
    fn enter(&self) -> Vec<String> {
        let words = ["nsenter", "--preserve-credentials", "--user", "--mount", "--target"];
        words.map(str::to_owned).into_iter().chain([self.holder.id().to_string()]).collect()
    }

    fn run(&self, script: &str) {
        let enter = self.enter();
        let status = Command::new(&enter[0])
            .args(&enter[1..])
            .args(["sh", "-c", script])
            .arg(&self.folder)
            .status()
            .expect("nsenter runs");
        assert!(status.success(), "{script}");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

fn texts(serving: &NookServer, conversation: &str) -> Vec<String> {
    let got = serving.call("conversation_get", &json!({ "id": conversation }));
    let messages = got["messages"].as_array().unwrap_or_else(|| panic!("no messages: {got}"));
    messages.iter().map(|it| it["text"].as_str().expect("a text").to_owned()).collect()
}

fn n_chats(serving: &NookServer) -> usize {
    serving.call("conversations_list", &json!({})).as_array().expect("a list").len()
}

/// Chats that were taken in, and the error that ended it, if any.
fn imported(summary: &Value) -> (usize, Option<String>) {
    let n = summary["conversations"].as_array().map_or(0, Vec::len);
    let of_call = summary["error"]["code"].as_str();
    let code = of_call.or_else(|| summary["failures"][0]["code"].as_str());
    (n, code.map(str::to_owned))
}

#[test]
fn f38_a_real_full_disk_loses_nothing_and_everything_goes_on_with_room() {
    let outside = TempDir::new();
    let export = outside.path().join("conversations.json");
    write_export(&export, CHATS);
    let import = json!({ "path": export.display().to_string() });
    let place = outside.path().join("disk");
    std::fs::create_dir(&place).expect("a temporary folder");
    let Some(disk) = SmallDisk::mount(&place) else {
        skip!(Missing::Platform, "no file system may be mounted in a namespace");
    };
    disk.run(&format!("head -c {BALLAST_BYTES} /dev/zero > \"$0/ballast\""));

    let home = place.join("data");
    let serving = NookServer::start_by(&disk.enter(), &home);
    for (key, value) in [("max_tokens", json!(8)), ("titles", json!(false)), ("guide_answers", json!(false))]
    {
        serving.call("settings_set", &json!({ "key": key, "value": value }));
    }
    let (first, answer) = serving.ask(None, "How are you?");
    assert!(!answer.is_empty());

    let (mut n_acknowledged, mut refused) = (1, None);
    for _ in 0..MAX_IMPORTS {
        let (n, code) = imported(&serving.call("import_file", &import));
        n_acknowledged += n;
        if code.is_some() {
            refused = code;
            break;
        }
    }
    assert_eq!(refused.as_deref(), Some("session.disk_full"), "after {n_acknowledged} chats");
    println!("{n_acknowledged} chats fit on {DISK}");
    assert!(n_chats(&serving) >= n_acknowledged, "each chat that was acknowledged is listed");
    assert_eq!(texts(&serving, &first), ["How are you?", &answer]);

    // What is refused now is refused by name, and what is read is read. Small things may still fit.
    let long = "too much ".repeat(200_000);
    let sent = serving.call("send", &json!({ "conversation": first, "text": long }));
    assert_eq!(sent["error"]["code"], "session.disk_full", "{sent}");
    assert_eq!(texts(&serving, &first), ["How are you?", &answer], "half a turn is none");
    let found = serving.call("search", &json!({ "query": "harbours" }));
    assert!(found.get("error").is_none(), "the history can be searched: {found}");

    // A start on the full disk.
    serving.kill();
    let serving = NookServer::start_by(&disk.enter(), &home);
    assert!(n_chats(&serving) >= n_acknowledged, "after a restart on the full disk");
    assert_eq!(texts(&serving, &first), ["How are you?", &answer]);

    disk.run("rm \"$0/ballast\"");
    let (_, second) = serving.ask(Some(&first), "And now?");
    assert!(!second.is_empty());
    let (n, code) = imported(&serving.call("import_file", &import));
    assert_eq!((n, code), (CHATS, None), "there is room again");
    serving.kill();

    let serving = NookServer::start_by(&disk.enter(), &home);
    assert!(n_chats(&serving) >= n_acknowledged + CHATS);
    assert_eq!(texts(&serving, &first), ["How are you?", &answer, "And now?", &second]);
    serving.kill();
}
