//! What is stored: a disk that reports errors, damaged settings, newer databases, folders that others synchronize.

use std::path::{Path, PathBuf};
use std::process::Command;

use app::App;
use app::AppConfig;
use contract::types::AppEvent;
use inglenook_tests::workspace_root;
use serde_json::json;

use crate::cli::Home;
use crate::kill9::NookServer;

fn config(folder: &Path) -> AppConfig {
    AppConfig { data_dir: Some(folder.to_owned()), ..AppConfig::default() }
}

/// Codes of the notices of a start.
fn notices(app: &App) -> Vec<String> {
    app.settings_set("theme", &json!("dark")).expect("a choice");
    let events = app.watch_app().next_blocking().expect("the application lives");
    let code = |event: AppEvent| match event {
        AppEvent::Notice { error } => Some(error.code),
        _ => None,
    };
    events.into_iter().filter_map(code).collect()
}

/// Changes the database behind the program's back.
fn change(folder: &Path, sql: &str) {
    let script =
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.executescript(sys.argv[2]); c.close()";
    let database = folder.join("inglenook.db");
    let status = Command::new("python3").args(["-c", script]).arg(database).arg(sql).status();
    assert!(status.expect("python3 runs").success());
}

#[test]
fn f40_a_newer_database_is_listed_and_exported_and_stays_as_it_is() {
    let home = Home::new();
    drop(App::open(config(&home.0)).expect("it opens"));
    change(
        &home.0,
        "INSERT INTO conversation (id, title, model, activity, created_ms, updated_ms)
             VALUES ('c1', 'From tomorrow', 'starter', 1, 1, 1);
         CREATE TABLE planet (id TEXT);
         PRAGMA user_version = 99;",
    );
    let before = std::fs::read(home.0.join("inglenook.db")).expect("it is there");
    let listed = home.lines(&["sessions", "list"]);
    assert!(listed.iter().any(|line| line.to_string().contains("From tomorrow")), "{listed:?}");
    let exported = home.command(&["sessions", "export", "c1", "--format", "md"]).output().expect("nook runs");
    assert!(exported.status.success(), "{}", String::from_utf8_lossy(&exported.stderr));
    let (code, _) = home.error(&["settings", "set", "theme", "dark"]);
    assert_ne!(code, 0, "nothing is said to be saved that is not");
    assert!(std::fs::read(home.0.join("inglenook.db")).expect("it is there") == before);
}

#[test]
fn f42_a_data_folder_that_is_synchronized_is_warned_of_once_and_second_databases_always() {
    let home = Home::new();
    let folder = home.0.join("OneDrive - Example/inglenook");
    let app = App::open(config(&folder)).expect("it opens");
    assert_eq!(notices(&app), ["data.synced_folder"]);
    drop(app);
    assert_eq!(notices(&App::open(config(&folder)).expect("it opens")), [""; 0]);
    std::fs::write(folder.join("inglenook-DESKTOP-7.db"), b"").expect("a file");
    assert_eq!(notices(&App::open(config(&folder)).expect("it opens")), ["data.conflict_copy"]);
    let other = home.0.join("elsewhere");
    assert_eq!(notices(&App::open(config(&other)).expect("it opens")), [""; 0]);
}

/// The failing flushes as a shared library, compiled with the machine's C compiler.
fn failing_flushes(folder: &Path) -> PathBuf {
    let library = folder.join("eio.so");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O2", "-o"]).arg(&library);
    cc.arg(workspace_root().join("tests/tests/failures/eio.c"));
    assert!(cc.status().expect("cc is there: SQLite needed it").success());
    library
}

#[cfg(target_os = "linux")]
#[test]
fn f43_a_disk_that_fails_to_flush_is_named_and_nothing_acknowledged_is_lost() {
    let home = Home::new();
    let library = failing_flushes(&home.0);
    let failing = home.0.join("failing");
    let data = home.0.join("data");
    let variables = [("LD_PRELOAD", library.as_path()), ("FAIL_FLUSHES", failing.as_path())];
    let server = NookServer::start_with(&data, &variables);
    let saved = |server: &NookServer, key: &str, value: i64| {
        server.call("settings_set", &json!({ "key": key, "value": value }))
    };
    assert_eq!(saved(&server, "max_tokens", 11)["value"], 11);
    std::fs::write(&failing, b"").expect("a file");
    let refused = saved(&server, "max_tokens", 22);
    assert_eq!(refused["error"]["code"], "session.disk_error", "{refused}");
    let sent = server.call("send", &json!({ "text": "Hello" }));
    assert_eq!(sent["error"]["code"], "session.disk_error", "a question is not said to be saved: {sent}");
    std::fs::remove_file(&failing).expect("it is there");
    assert_eq!(saved(&server, "top_k", 33)["value"], 33, "it goes on where the disk does");
    server.kill();
    let app = App::open(config(&data)).expect("it opens again");
    let value = |key: &str| app.settings_get(key).expect("it is there").value;
    assert_eq!((value("max_tokens"), value("top_k")), (json!(11), json!(33)));
    assert!(app.conversations_list().expect("they are read").is_empty());
}

#[test]
fn f80_damaged_settings_have_their_defaults_and_are_kept_beside() {
    let home = Home::new();
    let app = App::open(config(&home.0)).expect("it opens");
    for (key, value) in [("theme", json!("dark")), ("max_tokens", json!(77)), ("top_k", json!(5))] {
        app.settings_set(key, &value).expect("a value");
    }
    drop(app);
    change(
        &home.0,
        "UPDATE setting SET value = 'da\u{1}rk{' WHERE key = 'max_tokens';
         UPDATE setting SET value = CAST(x'ff00fe' AS TEXT) WHERE key = 'top_k';",
    );
    let app = App::open(config(&home.0)).expect("it opens");
    assert_eq!(notices(&app), ["setting.damaged"; 2]);
    let row = |key: &str| app.settings_get(key).expect("a setting");
    assert_eq!(row("theme").value, "dark", "the others are as they were");
    assert_eq!(
        (row("max_tokens").value, row("top_k").value),
        (row("max_tokens").default, row("top_k").default)
    );
    drop(app);
    assert_eq!(notices(&App::open(config(&home.0)).expect("it opens")), [""; 0], "it is said once");
    let script = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.text_factory = bytes; \
                  print(c.execute(\"SELECT value FROM setting WHERE key = 'top_k.bad'\").fetchone()[0] == b'\\xff\\x00\\xfe')";
    let kept = Command::new("python3").args(["-c", script]).arg(home.0.join("inglenook.db")).output();
    assert_eq!(String::from_utf8_lossy(&kept.expect("python3 runs").stdout).trim(), "True");
}
