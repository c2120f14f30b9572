//! The data folder belongs to the user alone, whatever the umask and however it was left.
#![allow(clippy::unwrap_used)] // a test
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use app::{App, AppConfig, LogTo};
use contract::types::SendArgs;

use crate::common::Home;

/// Set in the process that runs under the umask: the data folder to fill.
const FILL: &str = "INGLENOOK_TEST_FILL";

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

/// Entries below a folder that others may use, or the user may not.
fn wrong_modes(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut wrong = Vec::new();
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        if mode(&path) != expected {
            wrong.push((path.clone(), format!("{:o}", mode(&path))));
        }
        if path.is_dir() {
            wrong.extend(wrong_modes(&path));
        }
    }
    wrong
}

/// Talks, logs and backs up. Not a test by itself: `the_umask_does_not_matter` runs it in a process of that umask.
#[test]
fn fill() {
    if let Some(folder) = std::env::var_os(FILL) {
        talk_in(folder.into());
    }
}

fn talk_in(folder: PathBuf) {
    let config = AppConfig { data_dir: Some(folder), log: LogTo::StderrAndFile, ..AppConfig::default() };
    let app = App::open(config).unwrap();
    app.settings_set("max_tokens", &serde_json::json!(4)).unwrap();
    app.settings_set("guide_answers", &serde_json::json!(false)).unwrap();
    let sent = app.send(SendArgs { text: "Hello".into(), ..SendArgs::default() }).unwrap();
    let mut watch = app.watch_turn(&sent.turn, 0).unwrap();
    while watch.next_blocking().is_some() {}
}

#[test]
fn the_umask_does_not_matter() {
    for umask in ["000", "002", "022", "027", "077"] {
        let home = Home::new(&format!("umask-{umask}"));
        let test = std::env::current_exe().unwrap();
        let script = format!("umask {umask}; exec \"$0\" --exact private_folder::fill");
        let output = Command::new("sh").args(["-c", &script]).arg(test).env(FILL, &home.0).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        assert_eq!(mode(&home.0), 0o700, "umask {umask}");
        assert_eq!(wrong_modes(&home.0), [], "umask {umask}");
        for made in ["inglenook.db", "backups", "logs", "running"] {
            assert!(home.0.join(made).exists(), "{made} is made under umask {umask}");
        }
    }
}

#[test]
fn an_older_folder_is_tightened_at_the_start() {
    let home = Home::new("older-modes");
    drop(home.open());
    let chmod = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    for folder in ["", "running", "backups", "logs", "models/owner", "plugins/p"] {
        let folder = home.0.join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        chmod(&folder, 0o755);
        std::fs::write(folder.join("inglenook-1.db"), b"").unwrap();
        chmod(&folder.join("inglenook-1.db"), 0o644);
    }
    for folder in ["models", "plugins"] {
        chmod(&home.0.join(folder), 0o777);
    }
    chmod(&home.0.join("inglenook.db"), 0o644);
    let app = home.open();
    assert_eq!((mode(&home.0), wrong_modes(&home.0)), (0o700, Vec::new()));
    drop(app);
}
