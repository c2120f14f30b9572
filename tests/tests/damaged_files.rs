//! Every kept file of a data folder, each damaged alone. The application opens, and the library can be used. Nothing but
//! the damaged file's own content is affected, and what is lost is named.
//!
//! `INGLENOOK_FLIP_ROUNDS=10000` (`make flips`) does more of it; `INGLENOOK_SEED` repeats a run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use app::{ApiKeyArgs, App, KeyLimits, LogTo};
use contract::types::{AppEvent, DownloadStartArgs, DownloadState, TuneState, TurnEventKind};
use inglenook_tests::workspace_root;
use platform::Watch;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use crate::downloads::{Hub, file_of, is_done, one, same_bytes, starter, until};

/// Rounds without being asked for more.
const ROUNDS: u64 = 40;

/// A round that takes longer hangs, even on a busy machine.
const MAX_ROUND: Duration = Duration::from_secs(120);

const QUESTION: &str = "And how many plums?";

const CATALOG: &str = r#"
[[model]]
id = "cloud-1b"
name = "Cloud 1B"
family = "Cloud"
architecture = "llama"
repository = "weather/cloud"
files = "*.gguf"
licence = "MIT"
good_at = "Clouds."
capabilities = []
"#;

const PLUGIN: &str = r#"
name = "Weather"
version = "1.2"
description = "Looks at the sky."

[[presets]]
name = "Forecaster"
options = { system_prompt = "Be brief.", temperature = 0.1 }
"#;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn open(hub: &Hub) -> App {
    // The log of a process goes to one place: only the first of a test's applications has it.
    App::open(hub.config(None)).unwrap_or_else(|error| panic!("{error:?}"))
}

fn call(app: &App, name: &str, args: Value) -> Value {
    app.call(name, args).unwrap_or_else(|error| panic!("{name}: {error:?}"))
}

/// The text of an answer, or the code of what it failed with.
fn answer(app: &App, args: Value) -> String {
    let started = match app.call("send", args) {
        Ok(started) => started,
        Err(error) => return format!("refused: {}", error.code()),
    };
    let turn = started["turn"].as_str().unwrap();
    let mut said = String::new();
    for event in app.watch_turn(turn, 0).unwrap().flatten() {
        match event.kind {
            TurnEventKind::Text { text, .. } => said.push_str(&text),
            TurnEventKind::Failed { error } => return format!("failed: {}", error.code),
            _ => {}
        }
    }
    said
}

/// Some three hundred tokens.
fn long() -> String {
    (0..60).map(|i| format!("Ann has {} apples and {} pears. ", i * 7 % 13, i * 5 % 11)).collect()
}

/// A data folder with a file of every kind, as it was closed.
struct KeptFolder {
    hub: Hub,
    /// A copy of the data folder.
    whole: PathBuf,
    /// Its files, relative to it.
    files: Vec<PathBuf>,
    conversation: String,
    /// Of the download that was interrupted.
    download: String,
    parts: BTreeMap<&'static str, Value>,
    said: String,
}

impl KeptFolder {
    fn new(name: &str) -> Self {
        let hub = Hub::new(name);
        let other = hub.root().join("acme/two-GGUF");
        std::fs::create_dir_all(&other).unwrap();
        std::fs::copy(starter(), other.join("two-Q8_0.gguf")).unwrap();
        let data = hub.folder.join("data");
        std::fs::create_dir_all(data.join("plugins/weather")).unwrap();
        std::fs::write(data.join("plugins/weather/plugin.toml"), PLUGIN).unwrap();
        std::fs::write(data.join("catalog.toml"), CATALOG).unwrap();
        let (conversation, download) = fill(&hub);
        let whole = hub.folder.join("whole");
        copy_folder(&data, &whole);
        let mut files = Vec::new();
        collect_files(&whole, Path::new(""), &mut files);
        let mut kept =
            Self { hub, whole, files, conversation, download, parts: BTreeMap::new(), said: String::new() };
        kept.restore();
        let app = open(&kept.hub);
        kept.parts = parts(&app);
        kept.said = kept.ask(&app);
        assert!(!kept.said.starts_with("failed") && !kept.said.is_empty(), "{}", kept.said);
        kept
    }

    fn data(&self) -> PathBuf {
        self.hub.folder.join("data")
    }

    /// The folder as it was before the damage.
    fn restore(&self) {
        let _ = std::fs::remove_dir_all(self.data());
        copy_folder(&self.whole, &self.data());
    }

    fn ask(&self, app: &App) -> String {
        answer(app, json!({ "conversation": self.conversation, "text": QUESTION, "model": "starter" }))
    }
}

/// Uses all that keeps files. The chat and the download that are looked at afterwards.
fn fill(hub: &Hub) -> (String, String) {
    let app = App::open(app::AppConfig { log: LogTo::StderrAndFile, ..hub.config(None) }).unwrap();
    let settings = [("max_tokens", json!(8)), ("temperature", json!(0)), ("threads", json!(1))];
    let more = [("titles", json!(false)), ("guide_answers", json!(false)), ("theme", json!("dark"))];
    for (key, value) in settings.iter().chain(&more) {
        app.settings_set(key, value).unwrap();
    }
    let first = call(&app, "send", json!({ "text": long(), "model": "starter" }));
    let conversation = first["conversation"].as_str().unwrap().to_owned();
    app.watch_turn(first["turn"].as_str().unwrap(), 0).unwrap().flatten().for_each(drop);
    for n in 0..6 {
        answer(&app, json!({ "text": format!("Question {n}"), "model": "starter" }));
    }
    call(&app, "checkpoint_save", json!({ "conversation": conversation, "name": "before plums" }));
    call(&app, "note_save", json!({ "text": "I live in Ulm." }));
    call(&app, "preset_save", json!({ "name": "Short", "options": { "temperature": 0.5 } }));
    call(&app, "plugin_switch", json!({ "name": "weather", "enabled": true }));
    let args = ApiKeyArgs {
        name: "lab".into(),
        key: Some("a-key-of-the-lab".into()),
        scopes: Vec::new(),
        limits: KeyLimits::default(),
    };
    app.api_key_add(args).unwrap();
    let key = app.api_key_verify("a-key-of-the-lab").unwrap().unwrap();
    app.api_key_admit(&key).map_err(|(error, _)| error).unwrap();
    call(
        &app,
        "endpoint_add",
        json!({ "name": "lab", "url": "http://127.0.0.1:9/v1", "key": "secret-of-the-lab", "models": ["m"] }),
    );
    send_picture(&app);
    let mut events = app.watch_app();
    let begun = app.download_start(&one()).unwrap();
    until(&mut events, &begun.id, is_done);
    tune(&app, &mut events);
    (conversation, begin_download(hub, &app, &mut events))
}

/// The server does not answer; the message with its picture stays.
fn send_picture(app: &App) {
    let path = workspace_root().join("src-tauri/crates/vision/tests/data/progressive_444.jpg");
    let picture = call(app, "attachment_add_path", json!({ "path": path.to_str().unwrap() }));
    let args = json!({ "text": "What is it?", "model": "lab/m", "attachments": [picture["id"]] });
    let said = answer(app, args);
    assert!(said.starts_with("failed"), "{said}");
}

fn tune(app: &App, events: &mut Watch<AppEvent>) {
    let pair = |word: &&str| format!("\"What is {word}?\",\"Arr, {word}.\"\n");
    let text: String = ["red", "blue", "green", "white", "black"].iter().map(pair).collect();
    let args = json!({
        "model": "starter", "name": "pirate", "data": { "from": "text", "name": "a.csv", "text": text },
        "rank": 2, "lr": 0.01, "epochs": 1, "max_tokens": 64, "step_examples": 4,
    });
    call(app, "tune_start", args);
    loop {
        for event in events.next_blocking().expect("the application lives") {
            if let AppEvent::TuneChanged { tune } = event {
                match tune.state {
                    TuneState::Done { .. } => return,
                    TuneState::Failed { error } => panic!("{error:?}"),
                    _ => {}
                }
            }
        }
    }
}

/// A download that is interrupted with a part of its file.
fn begin_download(hub: &Hub, app: &App, events: &mut Watch<AppEvent>) -> String {
    hub.control(json!({ "delay_ms": 20 }));
    let args = DownloadStartArgs {
        repository: "acme/two-GGUF".into(),
        path: Some("two-Q8_0.gguf".into()),
        revision: None,
    };
    let begun = app.download_start(&args).unwrap();
    until(events, &begun.id, |it| it.bytes > 600_000);
    app.download_pause(&begun.id).unwrap();
    until(events, &begun.id, |it| matches!(it.state, DownloadState::Paused { .. }));
    hub.control(json!({ "delay_ms": 0 }));
    begun.id
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            copy_folder(&entry.path(), &target);
        } else if kind.is_symlink() {
            #[cfg(unix)]
            std::os::unix::fs::symlink(std::fs::read_link(entry.path()).unwrap(), target).unwrap();
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn collect_files(root: &Path, below: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = std::fs::read_dir(root.join(below)).unwrap().map(Result::unwrap).collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = below.join(entry.file_name());
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => collect_files(root, &path, files),
            kind if kind.is_file() => files.push(path),
            _ => {}
        }
    }
}

/// What the user has, by its kind. An error stands as its code.
fn parts(app: &App) -> BTreeMap<&'static str, Value> {
    let list = |name: &str| outcome(app.call(name, Value::Null));
    let chats = match app.conversations_list() {
        Ok(chats) => chats,
        Err(error) => return BTreeMap::from([("chats", json!({ "error": error.code() }))]),
    };
    let chats: Vec<Value> =
        chats.iter().map(|chat| outcome(app.call("conversation_get", json!({ "id": chat.id })))).collect();
    let audit = app.audit_verify().map(|it| serde_json::to_value(it).unwrap());
    let keys = app.api_keys_list().map(|it| serde_json::to_value(it).unwrap());
    let catalogue =
        app.catalogue().map(|offers| json!(offers.into_iter().map(|it| it.id).collect::<Vec<_>>()));
    BTreeMap::from([
        ("chats", Value::Array(chats)),
        ("settings", values_alone(&list("settings_list"))),
        ("search", outcome(app.call("hub_search", json!({ "query": "acme" })))),
        ("models", without_estimates(list("models_list"))),
        ("downloads", list("download_list")),
        ("presets", list("presets_list")),
        ("notes", list("notes_list")),
        ("plugins", list("plugins_list")),
        ("tunes", list("tunes_list")),
        ("endpoints", list("endpoint_list")),
        ("checkpoints", list("checkpoints_list")),
        ("audit", outcome(audit)),
        ("keys", outcome(keys)),
        ("catalogue", outcome(catalogue)),
    ])
}

/// What the settings are: a choice of models names those that there are.
fn values_alone(settings: &Value) -> Value {
    let pair = |row: &Value| (row["key"].as_str().unwrap_or_default().to_owned(), row["value"].clone());
    settings.as_array().into_iter().flatten().map(pair).collect()
}

/// The models without what depends on the machine's free memory, and what is loaded.
fn without_estimates(mut models: Value) -> Value {
    for model in models.as_array_mut().into_iter().flatten() {
        model.as_object_mut().map(|fields| fields.remove("fit"));
    }
    models
}

fn outcome(result: contract::Result<Value>) -> Value {
    match result {
        Ok(value) => value,
        Err(error) => {
            assert!(!error.message().is_empty() && !error.remedy().is_empty(), "{error:?}");
            json!({ "error": error.code() })
        }
    }
}

/// What a file holds, of which it may cost something: it is named then. None: it may cost anything in the database.
fn own_parts(file: &Path) -> Option<&'static [&'static str]> {
    let text = file.to_str().unwrap();
    let first = text.split('/').next().unwrap();
    Some(match first {
        _ if text == "inglenook.db" => return None,
        "keys" => &["keys", "endpoints"],
        "audit" => &["audit"],
        "plugins" => &["plugins"],
        "catalog.toml" => &["catalogue"],
        "tunes" => &["tunes", "models"],
        "models" => &["models", "downloads"],
        "contexts" => &["checkpoints"],
        _ => &[],
    })
}

/// Damages bytes: flips bits, cuts, empties, blanks a page, or appends.
fn damage(bytes: &[u8], rng: &mut StdRng) -> (String, Vec<u8>) {
    let mut damaged = bytes.to_vec();
    let n = bytes.len().max(1);
    let what = match rng.random_range(0..8) {
        0 => {
            damaged.truncate(rng.random_range(0..n));
            format!("cut to {}", damaged.len())
        }
        1 => {
            damaged.clear();
            "emptied".into()
        }
        2 => {
            let at = rng.random_range(0..n) / 512 * 512;
            damaged.iter_mut().skip(at).take(4096).for_each(|byte| *byte = 0);
            format!("zeros at {at}")
        }
        3 => {
            damaged.extend((0..100).map(|_| rng.random::<u8>()));
            "extended".into()
        }
        kind => {
            let n_bits = if kind < 6 { 1 } else { 8 };
            let bits: Vec<(usize, u8)> =
                (0..n_bits).map(|_| (rng.random_range(0..n), rng.random_range(0..8))).collect();
            for (at, bit) in &bits {
                damaged.iter_mut().skip(*at).take(1).for_each(|byte| *byte ^= 1 << bit);
            }
            format!("bits {bits:?}")
        }
    };
    (what, damaged)
}

/// What rounds cost, by file.
#[derive(Debug, Default)]
struct DamageTable {
    /// Rounds, and those in which something of the file was lost and named.
    by_file: BTreeMap<String, (u64, u64)>,
}

/// Codes of the notices so far.
fn notices(app: &App, events: &mut Watch<AppEvent>) -> Vec<String> {
    // There is an event to wait for.
    app.settings_set("theme", &json!("light")).map(drop).unwrap_or_default();
    let code = |event: AppEvent| match event {
        AppEvent::Notice { error } => Some(error.code),
        _ => None,
    };
    events.next_blocking().unwrap_or_default().into_iter().filter_map(code).collect()
}

/// The folder with one damaged file: it opens, and what it has is compared. Whether something was lost.
fn check(kept: &KeptFolder, file: &Path, case: &str, asks: bool) -> bool {
    let app = open(&kept.hub);
    let mut events = app.watch_app();
    let found = parts(&app);
    let own = own_parts(file);
    let mut lost = false;
    for (part, whole) in &kept.parts {
        let now = found.get(part).unwrap_or(&Value::Null);
        if now == whole {
            continue;
        }
        lost = true;
        if let Some(own) = own {
            assert!(own.contains(part), "{case}: {part} was {whole}\nnow {now}");
        }
        match *part {
            // Never others than before, and never none without a word.
            "keys" => assert_eq!(now["error"], "keys.unreadable", "{case}: {now}"),
            "tunes" => assert!(!now.as_array().is_some_and(Vec::is_empty), "{case}: a run has vanished"),
            _ => {}
        }
    }
    if asks || file.starts_with("contexts") {
        let said = kept.ask(&app);
        assert!(own.is_none() || said == kept.said, "{case}: {said:?} instead of {:?}", kept.said);
    }
    if file.starts_with("models") {
        finish_download(kept, &app, &mut events, case);
    }
    let new = answer(&app, json!({ "text": "Still there?", "model": "starter" }));
    assert!(!new.starts_with("refused") && !new.starts_with("failed"), "{case}: {new}");
    let told = notices(&app, &mut events);
    lost && own.is_some_and(|own| !own.is_empty()) || !told.is_empty()
}

/// An interrupted download goes on to the right file, and a damaged one is not taken for whole.
fn finish_download(kept: &KeptFolder, app: &App, events: &mut Watch<AppEvent>, case: &str) {
    app.download_resume(&kept.download).unwrap_or_else(|error| panic!("{case}: {error:?}"));
    let done = until(events, &kept.download, is_done);
    assert!(same_bytes(&file_of(app, &done), &starter()), "{case}");
    let path = kept.data().join("models/acme/one-GGUF/one-Q8_0.gguf");
    let is_whole = same_bytes(&path, &starter());
    let verified = app.model_verify("one-q8_0").map(|it| it.intact).unwrap_or(false);
    assert_eq!(verified, is_whole, "{case}");
}

#[test]
fn each_damaged_file_costs_itself_at_most() {
    let (rounds, seed) = (number("INGLENOOK_FLIP_ROUNDS", ROUNDS), number("INGLENOOK_SEED", 1));
    let kept = KeptFolder::new("flips");
    let names: Vec<_> = kept.files.iter().map(|file| file.display().to_string()).collect();
    for kind in ["inglenook.db", "keys/", "audit/", "contexts/", "tunes/", "models/", "plugins/", "backups/"]
    {
        assert!(names.iter().any(|name| name.starts_with(kind)), "{kind} is missing: {names:?}");
    }
    assert!(names.iter().any(|name| name.ends_with(".journal")), "{names:?}");
    let mut table = DamageTable::default();
    for round in 0..rounds {
        let mut rng = StdRng::seed_from_u64(seed.wrapping_mul(1_000_003).wrapping_add(round));
        let file = &kept.files[usize::try_from(round).unwrap() % kept.files.len()];
        kept.restore();
        let path = kept.data().join(file);
        let (what, bytes) = damage(&std::fs::read(&path).unwrap(), &mut rng);
        std::fs::write(&path, bytes).unwrap();
        let case = format!("round {round}, {}, {what}", file.display());
        println!("{case}");
        let began = Instant::now();
        let has_cost = check(&kept, file, &case, round % 8 == 0);
        assert!(began.elapsed() < MAX_ROUND, "{case}: {:?}", began.elapsed());
        let kind = file.iter().next().unwrap().to_str().unwrap().to_owned();
        let row = table.by_file.entry(kind).or_default();
        (row.0, row.1) = (row.0 + 1, row.1 + u64::from(has_cost));
    }
    println!("seed {seed}, {rounds} rounds over {} files: all opened and answered", kept.files.len());
    for (file, (rounds, named)) in &table.by_file {
        println!("{file:<20} {rounds:>6} rounds, {named:>6} named a loss");
    }
}
