//! `nook models pull` beside an open window: one download, seen and steered from both.

use std::process::{Child, Command, Output, Stdio};

use app::App;
use contract::types::{Download, DownloadState};
use inglenook_tests::nook;
use serde_json::{Value, json};

use super::downloads::{FILE, Hub, REPOSITORY, file_of, is_done, same_bytes, starter, until};

/// `nook models pull` in another process, over the same data folder.
fn pull(hub: &Hub) -> Child {
    let mut command = Command::new(nook());
    command.env_clear().env("HF_ENDPOINT", &hub.url).env("HOME", &hub.folder);
    command.arg("--data-dir").arg(hub.folder.join("data"));
    command.args(["--json", "models", "pull", &format!("{REPOSITORY}:{FILE}")]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("nook runs")
}

/// A window that works off the queue.
fn window(hub: &Hub) -> (App, platform::Watch<contract::types::AppEvent>) {
    let app = hub.app();
    let events = app.watch_app();
    app.downloads_go_on().unwrap();
    (app, events)
}

/// The first news of a download that this process was not asked for.
fn first(events: &mut platform::Watch<contract::types::AppEvent>) -> Download {
    loop {
        for event in events.next().expect("the application lives") {
            if let contract::types::AppEvent::DownloadChanged { download } = event {
                return download;
            }
        }
    }
}

fn last_line(bytes: &[u8]) -> Value {
    let last = bytes.split(|&byte| byte == b'\n').rfind(|line| !line.is_empty());
    serde_json::from_slice(last.unwrap_or_default()).unwrap_or(Value::Null)
}

fn ended(child: Child) -> Output {
    child.wait_with_output().expect("it ends")
}

#[test]
fn the_window_shows_what_a_terminal_fetches_and_each_byte_comes_once() {
    let hub = Hub::new("beside");
    hub.control(json!({"delay_ms": 40}));
    let (app, mut events) = window(&hub);
    let child = pull(&hub);
    let seen = first(&mut events);
    assert_eq!((seen.repository.as_str(), seen.path.as_str()), (REPOSITORY, FILE));
    let grown = until(&mut events, &seen.id, |it| it.bytes > 0 && it.bytes < it.total && it.speed > 0.0);
    assert!(matches!(grown.state, DownloadState::Downloading), "{:?}", grown.state);
    let done = until(&mut events, &seen.id, is_done);
    let output = ended(child);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(last_line(&output.stdout)["id"], "one-q8_0");
    assert!(same_bytes(&file_of(&app, &done), &starter()));
    assert_eq!(hub.served(), std::fs::metadata(starter()).unwrap().len());
}

#[test]
fn what_the_window_pauses_ends_the_terminals_command_and_goes_on_later() {
    let hub = Hub::new("paused");
    hub.control(json!({"delay_ms": 100}));
    let (app, mut events) = window(&hub);
    let child = pull(&hub);
    let seen = first(&mut events);
    until(&mut events, &seen.id, |it| it.bytes > 0);
    let paused = app.download_pause(&seen.id).unwrap();
    assert_eq!(paused.state, DownloadState::Paused { reason: None });
    let output = ended(child);
    assert_eq!(last_line(&output.stderr)["error"]["code"], "download.paused");
    hub.control(json!({"delay_ms": 0}));
    app.download_resume(&seen.id).unwrap();
    let done = until(&mut events, &seen.id, is_done);
    assert!(same_bytes(&file_of(&app, &done), &starter()));
    let size = std::fs::metadata(starter()).unwrap().len();
    assert!(hub.served() < size + size / 4, "what had arrived stayed: {}", hub.served());
}

#[test]
fn what_the_window_cancels_leaves_nothing_though_another_process_was_at_it() {
    let hub = Hub::new("cancelled");
    hub.control(json!({"delay_ms": 100}));
    let (app, mut events) = window(&hub);
    let child = pull(&hub);
    let seen = first(&mut events);
    until(&mut events, &seen.id, |it| it.bytes > 0);
    app.download_cancel(&seen.id, false).unwrap();
    let output = ended(child);
    assert_eq!(last_line(&output.stderr)["error"]["code"], "download.cancelled");
    let folder = hub.folder.join("data/models").join(REPOSITORY);
    let left: Vec<_> = std::fs::read_dir(folder).into_iter().flatten().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn f27_a_terminal_that_is_killed_leaves_its_download_to_the_window() {
    let hub = Hub::new("killed");
    hub.control(json!({"delay_ms": 40}));
    let (app, mut events) = window(&hub);
    let mut child = pull(&hub);
    let seen = first(&mut events);
    until(&mut events, &seen.id, |it| it.bytes > 0);
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    hub.control(json!({"delay_ms": 0}));
    let done = until(&mut events, &seen.id, is_done);
    assert!(same_bytes(&file_of(&app, &done), &starter()));
    // A chunk of 256 KiB, and what was on its way.
    let size = std::fs::metadata(starter()).unwrap().len();
    assert!(hub.served() <= size + (1 << 20), "{} of {size} bytes", hub.served());
}
