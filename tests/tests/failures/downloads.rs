//! Downloads: one fault of the hub, the network or the disk at a time.

use std::io::ErrorKind;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use app::App;
use contract::types::{Download, DownloadStartArgs, DownloadState, ErrorInfo};
use inglenook_tests::nook;
use io::{FaultIo, RealClock, RealIo};
use serde_json::{Value, json};

use crate::downloads::{FILE, Hub, REPOSITORY, file_of, is_done, one, same_bytes, sign, starter, until};

fn size() -> u64 {
    std::fs::metadata(starter()).unwrap().len()
}

/// Follows a download to its failure.
fn failure(app: &App, events: &mut platform::Watch<contract::types::AppEvent>) -> ErrorInfo {
    let begun = app.download_start(&one()).unwrap();
    let ended = until(events, &begun.id, |it| matches!(it.state, DownloadState::Failed { .. }));
    let DownloadState::Failed { error } = ended.state else { unreachable!("it was looked for") };
    assert!(!error.remedy.is_empty(), "{error:?}");
    error
}

/// One download past these faults, to the whole file.
fn survives(name: &str, faults: Value) -> (Hub, Download) {
    let hub = Hub::new(name);
    hub.control(json!({ "faults": faults }));
    let app = hub.app();
    let mut events = app.watch_app();
    let begun = app.download_start(&one()).unwrap();
    let done = until(&mut events, &begun.id, is_done);
    assert!(same_bytes(&file_of(&app, &done), &starter()));
    (hub, done)
}

#[test]
fn f16_without_a_network_a_download_waits_says_so_and_goes_on() {
    let hub = Hub::new("away");
    hub.control(json!({"delay_ms": 20}));
    let app = hub.app();
    let mut events = app.watch_app();
    let begun = app.download_start(&one()).unwrap();
    let some = until(&mut events, &begun.id, |it| it.bytes > 0);
    hub.control(json!({"down": true}));
    let waits =
        until(&mut events, &begun.id, |it| matches!(it.state, DownloadState::WaitingForNetwork { .. }));
    let DownloadState::WaitingForNetwork { error: reason } = waits.state else {
        unreachable!("it was looked for")
    };
    assert!(reason.code.starts_with("hub.") && !reason.message.is_empty(), "{reason:?}");
    assert!(waits.bytes >= some.bytes, "what has arrived stays");
    hub.control(json!({"down": false, "delay_ms": 0}));
    let done = until(&mut events, &begun.id, is_done);
    assert!(same_bytes(&file_of(&app, &done), &starter()));
    assert!(hub.served() < size() + size() / 4, "{}", hub.served());
}

#[test]
fn f18_another_range_than_asked_for_is_thrown_away_and_in_the_end_named_with_its_host() {
    survives("range", json!([{"kind": "cut", "at": 1_500_000}, {"kind": "wrong_range"}]));
    let hub = Hub::new("ranges");
    let wrong = vec![json!({"kind": "wrong_range"}); 40];
    hub.control(json!({ "faults": wrong }));
    let app = hub.app();
    let mut events = app.watch_app();
    let error = failure(&app, &mut events);
    assert_eq!(error.code, "hub.answer");
    assert!(error.message.contains("127.0.0.1:") && error.message.contains("another range"), "{error:?}");
    assert!(app.model_get("one-q8_0").is_err(), "nothing of it is in the library");
}

#[test]
fn f20_a_file_that_has_arrived_is_verified_and_not_fetched_again() {
    survives("416", json!([{"kind": "cut", "at": 1_500_000}, {"kind": "416"}]));
    let hub = Hub::new("complete");
    let disk = Arc::new(FaultIo::new(RealIo));
    let app = App::open_with(hub.config(None), disk.clone(), Arc::new(RealClock::new())).unwrap();
    let mut events = app.watch_app();
    // All of it is there, and can't be moved into place.
    disk.fail_named("rename", 1, ErrorKind::StorageFull);
    let begun = app.download_start(&one()).unwrap();
    until(&mut events, &begun.id, |it| matches!(it.state, DownloadState::Paused { .. }));
    assert_eq!(hub.served(), size());
    app.download_resume(&begun.id).unwrap();
    let done = until(&mut events, &begun.id, is_done);
    assert!(same_bytes(&file_of(&app, &done), &starter()));
    assert_eq!(hub.served(), size(), "not a byte came again");
}

#[test]
fn f21_a_silent_server_is_left_after_five_tries_with_the_speed_before() {
    let hub = Hub::new("silent");
    let silent = vec![json!({"kind": "mute"}); 40];
    hub.control(json!({ "faults": [{"kind": "cut", "at": 1_500_000}] }));
    hub.control(json!({ "faults": silent }));
    let app = hub.app();
    app.settings_set("download_patience", &json!(1)).unwrap();
    let mut events = app.watch_app();
    let error = failure(&app, &mut events);
    assert_eq!(error.code, "hub.silent");
    assert!(error.message.contains("in a row") && error.message.contains("have arrived"), "{error:?}");
    hub.control(json!({"clear": true}));
    let done = app.download_list().unwrap().remove(0);
    app.download_resume(&done.id).unwrap();
    let done = until(&mut events, &done.id, is_done);
    assert!(same_bytes(&file_of(&app, &done), &starter()));
    assert!(hub.served() < size() + size() / 4, "what had arrived stayed: {}", hub.served());
}

#[test]
fn f23_an_expired_address_is_replaced_without_a_word() {
    let faults = json!([{"kind": "cut", "at": 1_500_000}, {"kind": "expired"}, {"kind": "expired"}]);
    let (_hub, done) = survives("expired", faults);
    assert_eq!(done.notice, None);
}

#[test]
fn f24_a_source_that_is_damaged_for_good_fails_and_stays_out_of_the_library() {
    let hub = Hub::new("rotten");
    let flips = vec![json!({"kind": "flip", "at": 1_500_000}); 40];
    hub.control(json!({ "faults": flips }));
    let app = hub.app();
    let mut events = app.watch_app();
    let error = failure(&app, &mut events);
    assert_eq!(error.code, "download.damaged");
    assert!(error.message.contains("damaged or was changed"), "{error:?}");
    assert!(app.model_get("one-q8_0").is_err());
    assert!(!hub.folder.join("data/models").join(REPOSITORY).join(FILE).exists());
}

#[test]
fn f26_without_working_locks_there_is_one_correct_file_too() {
    let hub = Hub::new("lockless");
    hub.control(json!({"delay_ms": 20}));
    let (one_app, other_app) = (hub.app(), hub.app());
    let mut events = one_app.watch_app();
    let begun = one_app.download_start(&one()).unwrap();
    until(&mut events, &begun.id, |it| it.bytes > 0);
    let folder = hub.folder.join("data/models").join(REPOSITORY);
    // A file system without locks lets both in: so does a lock file that is taken away.
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        if entry.file_name().to_string_lossy().ends_with(".lock") {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
    let mut other_events = other_app.watch_app();
    other_app.download_start(&one()).unwrap();
    hub.control(json!({"delay_ms": 0}));
    let is_over = |it: &Download| is_done(it) || matches!(it.state, DownloadState::Failed { .. });
    let done = until(&mut events, &begun.id, is_over);
    let other = until(&mut other_events, &begun.id, is_over);
    // The one that comes second may find the file already in its place.
    assert!(is_done(&done) || is_done(&other), "{:?}, {:?}", done.state, other.state);
    assert!(same_bytes(&hub.folder.join("data/models").join(REPOSITORY).join(FILE), &starter()));
}

#[test]
fn f28_a_place_that_cannot_be_used_is_named_before_the_first_byte() {
    let hub = Hub::new("place");
    let app = hub.app();
    let mut events = app.watch_app();
    // A file stands where the model's folder would be.
    let owner = hub.folder.join("data/models/acme");
    std::fs::create_dir_all(owner.parent().unwrap()).unwrap();
    std::fs::write(&owner, b"in the way").unwrap();
    let error = failure(&app, &mut events);
    assert!(error.code.starts_with("io.") && error.message.contains("acme"), "{error:?}");
    assert_eq!(hub.served(), 0);
    std::fs::remove_file(&owner).unwrap();
    drop((app, events));
    let disk = Arc::new(FaultIo::new(RealIo));
    let app = App::open_with(hub.config(None), disk.clone(), Arc::new(RealClock::new())).unwrap();
    let mut events = app.watch_app();
    disk.fail_named("create the folder", u64::MAX, ErrorKind::ReadOnlyFilesystem);
    let error = failure(&app, &mut events);
    assert_eq!(error.code, "io.permission", "{error:?}");
    assert_eq!(hub.served(), 0);
    disk.heal();
    // Names that are too long, or that some system does not allow.
    for path in [format!("{}.gguf", "x".repeat(230)), "con.gguf".into(), "a:b.gguf".into()] {
        std::fs::copy(starter(), hub.root().join(REPOSITORY).join(&path)).unwrap();
        let args = DownloadStartArgs { path: Some(path.clone()), ..one() };
        let code = match app.download_start(&args) {
            Err(error) => error.code().to_owned(),
            Ok(begun) => {
                let is_failed = |it: &Download| matches!(it.state, DownloadState::Failed { .. });
                let DownloadState::Failed { error } = until(&mut events, &begun.id, is_failed).state else {
                    unreachable!("it was looked for")
                };
                error.code
            }
        };
        assert_eq!(code, "hub.file_name", "{path}");
    }
    assert_eq!(hub.served(), 0);
}

/// What the audit log says of refusals: codes and subjects. The log is whole.
pub fn refusals(app: &App, hub: &Hub) -> Vec<(String, String)> {
    assert!(app.audit_verify().unwrap().intact);
    let text = std::fs::read_to_string(hub.folder.join("data/audit/audit.jsonl")).unwrap_or_default();
    let line = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    let part = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let lines = text.lines().map(line).filter(|it| it["refused"].is_string());
    lines.map(|it| (part(&it, "refused"), part(&it, "subject"))).collect()
}

#[test]
fn f29_what_leads_elsewhere_is_refused_and_stands_in_the_audit_log() {
    let hub = Hub::new("away");
    hub.control(json!({ "faults": vec![json!({"kind": "away"}); 40] }));
    let app = hub.app();
    let mut events = app.watch_app();
    let error = failure(&app, &mut events);
    assert_eq!(error.code, "hub.redirect", "{error:?}");
    assert_eq!((hub.served(), refusals(&app, &hub)), (0, vec![("hub.redirect".into(), REPOSITORY.into())]));
    std::fs::copy(starter(), hub.root().join(REPOSITORY).join("con.gguf")).unwrap();
    let args = DownloadStartArgs { path: Some("con.gguf".into()), ..one() };
    if let Ok(begun) = app.download_start(&args) {
        until(&mut events, &begun.id, |it| matches!(it.state, DownloadState::Failed { .. }));
    }
    assert_eq!(refusals(&app, &hub).last().unwrap().0, "hub.file_name");
}

#[test]
fn f15_a_list_that_has_expired_is_refused_with_its_key() {
    let hub = Hub::new("expired-list");
    let folder = hub.root().join(REPOSITORY);
    sign(&["publisher", "--manifest", folder.to_str().unwrap(), REPOSITORY]);
    let app = hub.app();
    let key = sign(&["publisher"]);
    app.settings_set("trusted_keys", &json!(key)).unwrap();
    let list = folder.join("inglenook.manifest.json");
    let signed_until = |moment: &str| sign(&["publisher", list.to_str().unwrap(), moment]);
    signed_until("expires:1000000000");
    let error = app.download_start(&one()).unwrap_err();
    assert_eq!(error.code(), "hub.signature", "{error:?}");
    assert!(
        error.message().contains("expired") && error.message().contains(&key[key.len() - 12..]),
        "{error:?}"
    );
    assert_eq!(refusals(&app, &hub), [("hub.signature".to_owned(), REPOSITORY.to_owned())]);
    signed_until("expires:9000000000");
    let mut events = app.watch_app();
    let begun = app.download_start(&one()).unwrap();
    until(&mut events, &begun.id, is_done);
}

#[test]
fn f30_a_file_that_another_program_has_open_is_waited_for_and_then_named() {
    let hub = Hub::new("busy");
    let disk = Arc::new(FaultIo::new(RealIo));
    let app = App::open_with(hub.config(None), disk.clone(), Arc::new(RealClock::new())).unwrap();
    let mut events = app.watch_app();
    disk.fail_named("rename", u64::MAX, ErrorKind::ResourceBusy);
    let began = Instant::now();
    let error = failure(&app, &mut events);
    assert!(
        (Duration::from_secs(9)..Duration::from_secs(120)).contains(&began.elapsed()),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(error.code, "io.busy");
    assert!(error.message.contains("another program") && error.remedy.contains("virus scanner"), "{error:?}");
    // Held for a moment only, and nothing is fetched again.
    disk.fail_named("rename", 2, ErrorKind::ResourceBusy);
    let id = app.download_list().unwrap().remove(0).id;
    app.download_resume(&id).unwrap();
    let done = until(&mut events, &id, is_done);
    assert!(same_bytes(&file_of(&app, &done), &starter()));
    assert_eq!(hub.served(), size());
}

#[test]
fn f81_an_update_with_a_bad_signature_leaves_the_old_version() {
    let hub = Hub::new("update");
    let folder = hub.root().join(REPOSITORY);
    sign(&["publisher", "--manifest", folder.to_str().unwrap(), REPOSITORY]);
    let app = hub.app();
    app.settings_set("trusted_keys", &json!(sign(&["publisher"]))).unwrap();
    let mut events = app.watch_app();
    let begun = app.download_start(&one()).unwrap();
    let done = until(&mut events, &begun.id, is_done);
    let path = file_of(&app, &done);
    // A new version, for which the publisher has signed nothing: the file, or the list, was changed by somebody else.
    hub.control(json!({"change": format!("{REPOSITORY}/{FILE}")}));
    assert_eq!(app.download_start(&one()).unwrap_err().code(), "hub.signed_mismatch");
    let list = folder.join("inglenook.manifest.json");
    let forged = std::fs::read_to_string(&list).unwrap().replace("one-Q8_0", "two-Q8_0");
    std::fs::write(&list, forged).unwrap();
    assert_eq!(app.download_start(&one()).unwrap_err().code(), "hub.signature");
    let refused: Vec<String> = refusals(&app, &hub).into_iter().map(|(code, _)| code).collect();
    assert_eq!(refused, ["hub.signed_mismatch", "hub.signature"]);
    assert!(same_bytes(&path, &starter()), "the old one is untouched");
    assert!(app.model_verify("one-q8_0").unwrap().intact);
}

#[test]
fn f32_a_proxy_that_fails_is_named_without_its_password() {
    let home = crate::cli::Home::new();
    let mut command = Command::new(nook());
    command.env_clear().env("HOME", &home.0).arg("--data-dir").arg(&home.0);
    // Nothing listens there.
    command.env("http_proxy", "http://anna:secret@127.0.0.1:9/").env("HF_ENDPOINT", "http://hub.example");
    let output = command.args(["--json", "models", "pull", "acme/one:x.gguf"]).output().expect("nook runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("127.0.0.1:9") && said.contains("proxy"), "{said}");
    assert!(!said.contains("secret"), "{said}");
}
