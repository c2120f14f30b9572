//! A fault at each file operation of the application: while it opens, answers, imports, exports, keeps a checkpoint,
//! stores keys, backs up and downloads. The operation is refused (EIO, full disk), half written or not flushed, once or
//! from then on.
//!
//! Nothing that was acknowledged is lost, what failed is named, and the folder opens again with all it had.
//! `INGLENOOK_IO_FAULTS=all` (`make io-faults`) takes every operation; otherwise one of each kind.

mod faulty_disk;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use app::{ApiKeyArgs, App, KeyLimits};
use contract::Error;
use contract::types::{AppEvent, DownloadState, ExportFormat, TurnEventKind};
use io::{CheckpointDir, FaultDuration, Io, RealClock, RealIo};
use serde_json::{Value, json};

use crate::downloads::{FILE, Hub, REPOSITORY, one, same_bytes, starter};
use faulty_disk::{FaultyDisk, PartialFault};

/// Operations of each kind of fault in the short form.
const N_SAMPLES: u64 = 1;

/// The key of every server.
const SECRET: &str = "secret-of-a-server";

const FAULTS: [(&str, PartialFault); 4] = [
    ("error", PartialFault::Refusal(ErrorKind::Other)),
    ("full disk", PartialFault::Refusal(ErrorKind::StorageFull)),
    ("short write", PartialFault::ShortWrite),
    ("failed flush", PartialFault::FailedFlush),
];

/// What is done while something fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UserAction {
    Open,
    Send,
    Import,
    Export,
    Checkpoint,
    Settings,
    ApiKey,
    EndpointKey,
    BackUp,
    Download,
}

const ACTIONS: [UserAction; 10] = [
    UserAction::Open,
    UserAction::Send,
    UserAction::Import,
    UserAction::Export,
    UserAction::Checkpoint,
    UserAction::Settings,
    UserAction::ApiKey,
    UserAction::EndpointKey,
    UserAction::BackUp,
    UserAction::Download,
];

fn is_full() -> bool {
    std::env::var("INGLENOOK_IO_FAULTS").is_ok_and(|which| which == "all")
}

/// A hub, and a data folder to begin each round with.
struct FaultBench {
    hub: Hub,
    /// Texts of the chats, by id.
    chats: BTreeMap<String, Vec<String>>,
    conversation: String,
    /// A chat as a file.
    exported: String,
}

impl FaultBench {
    fn new() -> Self {
        let hub = Hub::new("io-faults");
        let app = hub.app();
        let settings = [("max_tokens", json!(4)), ("temperature", json!(0)), ("threads", json!(1))];
        let more = [("titles", json!(false)), ("guide_answers", json!(false)), ("theme", json!("dark"))];
        for (key, value) in settings.iter().chain(&more) {
            app.settings_set(key, value).unwrap();
        }
        for text in ["One", "Two"] {
            send(&app, text).unwrap();
        }
        let chats = chats(&app);
        let conversation = chats.keys().next().unwrap().clone();
        let exported = app.export(Some(conversation.as_str()), ExportFormat::Json).unwrap().text;
        app.api_key_add(key_args("old")).unwrap();
        endpoint(&app, "old").unwrap();
        drop(app);
        copy_files(&hub.folder.join("data"), &hub.folder.join("whole"));
        Self { hub, chats, conversation, exported }
    }

    fn data(&self) -> PathBuf {
        self.hub.folder.join("data")
    }

    fn outside(&self) -> PathBuf {
        self.hub.folder.join("outside")
    }

    fn restore(&self) {
        for folder in [self.data(), self.outside()] {
            let _ = std::fs::remove_dir_all(folder);
        }
        copy_files(&self.hub.folder.join("whole"), &self.data());
        std::fs::create_dir_all(self.outside()).unwrap();
        std::fs::write(self.outside().join("chat.json"), "old").unwrap();
        std::fs::write(self.outside().join("import.json"), &self.exported).unwrap();
    }

    fn open_on(&self, disk: Arc<dyn Io>) -> contract::Result<App> {
        App::open_with(self.hub.config(None), disk, Arc::new(RealClock::new()))
    }

    fn act(&self, app: &App, action: UserAction) -> contract::Result<()> {
        let path = |name: &str| self.outside().join(name).display().to_string();
        match action {
            UserAction::Open => Ok(()),
            UserAction::Send => send(app, "Three").map(drop),
            UserAction::Import => app.import_file(&path("import.json")).map(drop),
            UserAction::Export => app
                .export_to(Some(self.conversation.as_str()), ExportFormat::Json, &path("chat.json"))
                .map(drop),
            UserAction::Checkpoint => {
                let args = json!({ "conversation": self.conversation, "name": "here" });
                app.call("checkpoint_save", args).map(drop)
            }
            UserAction::Settings => app.settings_set("theme", &json!("light")).map(drop),
            UserAction::ApiKey => app.api_key_add(key_args("new")).map(drop),
            UserAction::EndpointKey => endpoint(app, "new"),
            UserAction::BackUp => app.data_backup(&path("backup.db")).map(drop),
            UserAction::Download => download(app),
        }
    }

    /// Opens the folder on a sound disk: what was there is there, and what was acknowledged.
    fn check(&self, action: UserAction, was_acknowledged: bool, case: &str) {
        let app = self.open_on(Arc::new(RealIo)).unwrap_or_else(|error| panic!("{case}: {error:?}"));
        let now = chats(&app);
        for (id, texts) in &self.chats {
            let found = now.get(id).unwrap_or_else(|| panic!("{case}: a chat is lost"));
            assert!(found.starts_with(texts), "{case}: {found:?}");
        }
        let keys: Vec<String> = app.api_keys_list().unwrap().into_iter().map(|it| it.name).collect();
        assert!(keys.contains(&"old".into()), "{case}: {keys:?}");
        let endpoints = app.endpoint_list().unwrap();
        let kept = self.kept_keys(&app);
        assert!(kept.contains(&"old".to_owned()), "{case}: {endpoints:?}");
        let theme = app.settings_get("theme").unwrap().value;
        let has_text = |text: &str| now.values().flatten().any(|it| it == text);
        match action {
            UserAction::Export => {
                let text = std::fs::read_to_string(self.outside().join("chat.json")).unwrap();
                let is_whole = |text: &str| serde_json::from_str::<Value>(text).is_ok();
                assert!(text == "old" && !was_acknowledged || is_whole(&text), "{case}: {text}");
            }
            UserAction::Settings if was_acknowledged => assert_eq!(theme, "light", "{case}"),
            UserAction::Send if was_acknowledged => assert!(has_text("Three"), "{case}: {now:?}"),
            UserAction::Import if was_acknowledged => assert_eq!(now.len(), self.chats.len() + 1, "{case}"),
            UserAction::ApiKey if was_acknowledged => assert!(keys.contains(&"new".into()), "{case}"),
            UserAction::EndpointKey if was_acknowledged => {
                assert!(kept.contains(&"new".to_owned()), "{case}: {endpoints:?}");
            }
            UserAction::Checkpoint if was_acknowledged => {
                let named = app.checkpoints_list(Some(self.conversation.as_str())).unwrap();
                assert_eq!(named.len(), 1, "{case}");
            }
            UserAction::BackUp if was_acknowledged => {
                let path = self.outside().join("backup.db").display().to_string();
                app.data_restore(&path).unwrap_or_else(|error| panic!("{case}: {error:?}"));
            }
            UserAction::Download => self.check_download(&app, was_acknowledged, case),
            _ => {}
        }
        // It can be used, as before.
        send(&app, "Still there?").unwrap_or_else(|error| panic!("{case}: {error:?}"));
    }

    /// Names of the endpoints whose keys can be read.
    fn kept_keys(&self, app: &App) -> Vec<String> {
        let keys = secrets::Keys::new(&self.data(), Arc::new(RealIo), false);
        let has_key = |id: &str| keys.get(id).is_ok_and(|key| key.is_some_and(|key| key.reveal() == SECRET));
        app.endpoint_list().unwrap().into_iter().filter(|it| has_key(&it.id)).map(|it| it.name).collect()
    }

    /// Whatever came of it, there is no wrong file, and another try ends with the right one.
    fn check_download(&self, app: &App, was_acknowledged: bool, case: &str) {
        let path = self.data().join("models").join(REPOSITORY).join(FILE);
        assert!(!was_acknowledged || path.exists(), "{case}");
        assert!(!path.exists() || same_bytes(&path, &starter()), "{case}: a wrong file");
        download(app).unwrap_or_else(|error| panic!("{case}: {error:?}"));
        assert!(same_bytes(&path, &starter()), "{case}");
    }
}

fn key_args(name: &str) -> ApiKeyArgs {
    let key = Some(format!("the-key-called-{name}"));
    ApiKeyArgs { name: name.into(), key, scopes: Vec::new(), limits: KeyLimits::default() }
}

fn endpoint(app: &App, name: &str) -> contract::Result<()> {
    let url = "http://127.0.0.1:9/v1";
    let args = json!({ "name": name, "url": url, "key": SECRET, "models": ["m"] });
    app.call("endpoint_add", args).map(drop)
}

/// Sends a message and waits for the end of its answer, whatever it is.
fn send(app: &App, text: &str) -> contract::Result<String> {
    let started = app.call("send", json!({ "text": text, "model": "starter" }))?;
    let mut failed = None;
    for event in app.watch_turn(started["turn"].as_str().unwrap(), 0)?.flatten() {
        if let TurnEventKind::Failed { error } = event.kind {
            failed = Some(error);
        }
    }
    assert!(failed.as_ref().is_none_or(|error| !error.remedy.is_empty()), "{failed:?}");
    Ok(started["conversation"].as_str().unwrap().to_owned())
}

/// Downloads the file; an error if that fails or waits for space.
fn download(app: &App) -> contract::Result<()> {
    let mut events = app.watch_app();
    let begun = app.download_start(&one())?;
    loop {
        for event in events.next_blocking().expect("the application lives") {
            let AppEvent::DownloadChanged { download } = event else { continue };
            if download.id != begun.id {
                continue;
            }
            match download.state {
                DownloadState::Done { .. } => return Ok(()),
                DownloadState::Failed { error } | DownloadState::Paused { reason: Some(error) } => {
                    return Err(Error::from(error));
                }
                _ => {}
            }
        }
    }
}

/// The texts of each chat.
fn chats(app: &App) -> BTreeMap<String, Vec<String>> {
    let list = app.conversations_list().expect("the list is read");
    let texts = |id: &str| app.conversation_get(id).expect("it is read").messages.into_iter();
    list.into_iter().map(|it| (it.id.clone(), texts(&it.id).map(|it| it.text).collect())).collect()
}

fn copy_files(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_files(&entry.path(), &target),
            false => std::fs::copy(entry.path(), target).map(drop).unwrap(),
        }
    }
}

/// Does something on a disk that fails at operation `n`. Whether it was acknowledged, and the number of operations.
fn run(bench: &FaultBench, action: UserAction, n: u64, how: (FaultDuration, PartialFault)) -> (bool, u64) {
    bench.restore();
    let disk = Arc::new(FaultyDisk::default());
    let fail = || disk.fail_at(n, how.0, how.1);
    if action == UserAction::Open {
        fail();
    }
    let opened = bench.open_on(disk.clone());
    let (outcome, count) = match opened {
        Ok(app) => {
            if action != UserAction::Open {
                fail();
            }
            let outcome = bench.act(&app, action);
            let count = disk.count();
            drop(app);
            (outcome, count)
        }
        Err(error) => (Err(error), disk.count()),
    };
    disk.heal();
    if let Err(error) = &outcome {
        assert!(!error.code().is_empty() && !error.remedy().is_empty(), "{action:?} at {n}: {error:?}");
        assert_ne!(error.code(), "bug", "{action:?} at {n}: {error:?}");
    }
    (outcome.is_ok(), count)
}

/// Which operations of `count` fail.
fn chosen(count: u64, shift: u64) -> Vec<u64> {
    if is_full() {
        return (0..count).collect();
    }
    let step = (count / N_SAMPLES).max(1);
    (0..N_SAMPLES.min(count)).map(|i| (i * step + shift * 7) % count).collect()
}

#[test]
fn a_fault_at_any_file_operation_loses_nothing_that_was_acknowledged() {
    let bench = FaultBench::new();
    let mut n_rounds = 0;
    for action in ACTIONS {
        let never = (FaultDuration::Once, PartialFault::ShortWrite);
        let (is_done, count) = run(&bench, action, u64::MAX, never);
        assert!(is_done, "{action:?} without a fault");
        bench.check(action, true, &format!("{action:?} without a fault"));
        let (mut n_action, mut n_refused) = (0, 0);
        let durations = [FaultDuration::Once, FaultDuration::Sticky];
        for (kind, (name, fault)) in (0..).zip(FAULTS) {
            for (of, duration) in (0..).zip(durations) {
                for n in chosen(count, kind * 2 + of) {
                    let (was_acknowledged, _) = run(&bench, action, n, (duration, fault));
                    let case = format!("{action:?}, {name} at {n} of {count}, {duration:?}");
                    bench.check(action, was_acknowledged, &case);
                    n_action += 1;
                    n_refused += u64::from(!was_acknowledged);
                }
            }
        }
        println!("{action:?}: {count} operations, {n_action} faults, {n_refused} refused with a reason");
        n_rounds += n_action;
    }
    println!("{n_rounds} faults, nothing acknowledged lost");
}

#[test]
fn a_fault_at_any_operation_of_a_checkpoint_leaves_the_old_one_or_the_new() {
    let folder = std::env::temp_dir().join(format!("inglenook-kv-faults-{}", std::process::id()));
    let (old, new) = (vec![1_u8; 5000], vec![2_u8; 7000]);
    let mut n_rounds = 0;
    for (name, fault) in FAULTS {
        for duration in [FaultDuration::Once, FaultDuration::Sticky] {
            for n in 0.. {
                let _ = std::fs::remove_dir_all(&folder);
                let disk = Arc::new(FaultyDisk::default());
                let dir = CheckpointDir::new(&folder, disk.clone());
                dir.write("a", &old).unwrap();
                disk.fail_at(n, duration, fault);
                let written = dir.write("a", &new);
                let is_over = disk.count() <= n;
                disk.heal();
                let found = dir.read("a").unwrap();
                let case = format!("{name} at {n}, {duration:?}: {written:?}");
                assert!(found == new || written.is_err() && found == old, "{case}");
                assert_eq!(dir.names().unwrap().len(), 1, "{case}");
                dir.sweep(&std::collections::HashSet::from(["a".to_owned()])).unwrap();
                assert_eq!(RealIo.list(&folder).unwrap().len(), 1, "{case}");
                n_rounds += 1;
                if is_over {
                    break;
                }
            }
        }
    }
    println!("{n_rounds} faults of a checkpoint's write");
    std::fs::remove_dir_all(&folder).unwrap();
}
