//! kill -9 while chats are imported, a model is copied or moved, and a context is stored. Each chat is there whole or not
//! at all, the original model survives, and the next answer is the one that would have come anyway.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use app::App;
use app::AppConfig;
use contract::types::ExportFormat;
use serde_json::{Value, json};
use test_support::TempDir;

use super::kill9::{NookServer, write_model};
use super::kill9_load::orphans;

/// Chats of the imported file, and messages of each.
const CHATS: usize = 300;
const MESSAGES: usize = 6;

/// Kills during an import, spread over the time that a whole one takes.
const IMPORT_KILLS: u32 = 6;

/// Kills at so long after an answer's end, while its context is stored.
const DELAYS_MS: [u64; 7] = [0, 2, 5, 10, 25, 60, 200];

fn text(chat: usize, message: usize) -> String {
    format!("Chat {chat}, message {message}: {}", "of harbours and cranes ".repeat(40))
}

/// An export of Claude's.
pub fn write_export(path: &Path, n_chats: usize) {
    let message = |chat: usize, message: usize| {
        json!({
            "uuid": format!("{chat:08x}-0000-4000-8000-{message:012x}"),
            "text": text(chat, message),
            "sender": if message.is_multiple_of(2) { "human" } else { "assistant" },
            "created_at": format!("2026-03-29T07:{message:02}:00.000000Z"),
        })
    };
    let chats: Vec<Value> = (0..n_chats)
        .map(|chat| {
            json!({
                "uuid": format!("{chat:08x}-0000-4000-8000-ffffffffffff"),
                "name": format!("Chat {chat}"),
                "created_at": "2026-03-29T07:00:00.000000Z",
                "updated_at": "2026-03-29T08:00:00.000000Z",
                "chat_messages": (0..MESSAGES).map(|at| message(chat, at)).collect::<Vec<_>>(),
            })
        })
        .collect();
    std::fs::write(path, Value::from(chats).to_string()).expect("a temporary file");
}

fn open(home: &Path) -> App {
    App::open(AppConfig { data_dir: Some(home.to_owned()), ..AppConfig::default() }).expect("it opens again")
}

/// Chats by title: how often each is there. Each is whole.
fn whole_chats(app: &App) -> BTreeMap<String, usize> {
    let exported = app.export(None, ExportFormat::Json).expect("everything can be exported").text;
    let exported: Value = serde_json::from_str(&exported).expect("JSON");
    let mut found = BTreeMap::new();
    for chat in exported["conversations"].as_array().expect("a list") {
        let title = chat["title"].as_str().expect("a title");
        let number: usize = title.trim_start_matches("Chat ").parse().expect("a title of ours");
        let mut texts: Vec<&str> = chat["messages"]
            .as_array()
            .expect("messages")
            .iter()
            .filter_map(|it| it["text"].as_str())
            .collect();
        texts.sort_unstable();
        let expected: Vec<String> = (0..MESSAGES).map(|message| text(number, message)).collect();
        assert_eq!(texts, expected, "{title} is whole");
        *found.entry(title.to_owned()).or_default() += 1;
    }
    found
}

/// Sends a call that the program's end cuts off, and kills the program after `delay`.
fn kill_during(serving: NookServer, name: &str, args: &Value, delay: Duration) {
    std::thread::scope(|scope| {
        scope.spawn(|| serving.try_call(name, args));
        std::thread::sleep(delay);
        serving.kill_now();
    });
    serving.kill();
}

#[test]
fn f33_a_kill_during_an_import_leaves_each_chat_whole_or_absent() {
    let folder = TempDir::new();
    let export = folder.path().join("conversations.json");
    write_export(&export, CHATS);
    let args = json!({ "path": export.display().to_string() });

    let undisturbed = folder.path().join("undisturbed");
    let serving = NookServer::start(&undisturbed);
    let began = Instant::now();
    let summary = serving.call("import_file", &args);
    let whole = began.elapsed();
    assert_eq!(summary["conversations"].as_array().map(Vec::len), Some(CHATS), "{summary}");
    serving.kill();
    assert_eq!(whole_chats(&open(&undisturbed)).len(), CHATS, "what was acknowledged is there");

    let mut n_cut = 0;
    for at in 0..IMPORT_KILLS {
        let home = folder.path().join(format!("killed-{at}"));
        kill_during(
            NookServer::start(&home),
            "import_file",
            &args,
            whole * (2 * at + 1) / (2 * IMPORT_KILLS),
        );
        let app = open(&home);
        let before = whole_chats(&app);
        println!("killed at {at} of {IMPORT_KILLS}: {} of {CHATS} chats are there", before.len());
        n_cut += u32::from(before.len() < CHATS);
        assert!(before.values().all(|n| *n == 1), "no chat is there twice");
        let again = app.import_file(&export.display().to_string()).expect("the import can be repeated");
        assert_eq!((again.conversations.len(), again.failed), (CHATS, 0));
        assert_eq!(whole_chats(&app).len(), CHATS, "every chat is there after the second import");
        drop(app);
        assert_eq!(orphans(&home), Vec::<String>::new());
    }
    assert!(n_cut >= IMPORT_KILLS / 2, "{n_cut} of {IMPORT_KILLS} kills came midway");
}

/// Files below the folder of our own models, but for those whose import was cut off.
fn own_files(home: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(home.join("models")) else { return Vec::new() };
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.expect("it can be read").path()) {
        match path.is_dir() {
            true => found
                .extend(std::fs::read_dir(path).expect("a folder").map(|file| file.expect("a file").path())),
            false => found.push(path),
        }
    }
    found
}

#[test]
fn f33_a_kill_while_a_model_is_copied_or_moved_loses_no_model() {
    let folder = TempDir::new();
    let pristine = folder.path().join("pristine.gguf");
    write_model(&pristine);
    let bytes = std::fs::read(&pristine).expect("a model");
    for how in ["copy", "move"] {
        for delay_ms in [0, 1, 3, 8, 20, 60] {
            let what = format!("{how}, killed after {delay_ms} ms");
            let home = folder.path().join(format!("{how}-{delay_ms}"));
            let source = folder.path().join(format!("{how}-{delay_ms}.gguf"));
            std::fs::copy(&pristine, &source).expect("a copy");
            let args = json!({ "path": source.display().to_string(), "how": how });
            kill_during(NookServer::start(&home), "model_import", &args, Duration::from_millis(delay_ms));

            // The next start tidies up.
            let serving = NookServer::start(&home);
            let is_at_source = source.exists();
            if is_at_source {
                assert!(
                    std::fs::read(&source).expect("the source") == bytes,
                    "{what}: the source is as it was"
                );
                let entry = serving.call("model_import", &args);
                assert!(entry["id"].is_string(), "{what}: it can be repeated: {entry}");
            } else {
                assert_eq!(how, "move", "{what}: a copy leaves its source");
            }
            let is_listed = serving.call("models_list", &json!({})).as_array().is_some_and(|models| {
                models.iter().any(|it| it["name"].as_str().is_some_and(|name| name.contains("endless")))
            });
            assert!(is_listed, "{what}: the model is in the library");
            serving.kill();
            let files = own_files(&home);
            assert!(!files.is_empty(), "{what}: it has arrived");
            for file in files {
                assert!(
                    std::fs::read(&file).expect("a model") == bytes,
                    "{what}: {} is whole",
                    file.display()
                );
            }
        }
    }
}

const QUESTIONS: [&str; 7] = [
    "And how many plums?",
    "Say it again.",
    "Which is more?",
    "Why?",
    "And pears?",
    "Is that so?",
    "Sum it up.",
];

/// Starts with answers that are the same each time.
fn serve_exact(home: &Path) -> NookServer {
    let serving = NookServer::start(home);
    let settings: [(&str, Value); 4] = [
        ("temperature", json!(0)),
        ("max_tokens", json!(12)),
        ("titles", json!(false)),
        ("guide_answers", json!(false)),
    ];
    for (key, value) in settings {
        serving.call("settings_set", &json!({ "key": key, "value": value }));
    }
    serving
}

#[test]
fn f49_a_kill_while_a_context_is_stored_changes_no_answer() {
    let folder = TempDir::new();
    let long: String =
        (0..60).map(|i| format!("Ann has {} apples and {} pears. ", i * 7 % 13, i * 5 % 11)).collect();

    let undisturbed = folder.path().join("undisturbed");
    let serving = serve_exact(&undisturbed);
    let (id, first) = serving.ask(None, &long);
    let expected: Vec<String> = QUESTIONS.iter().map(|question| serving.ask(Some(&id), question).1).collect();
    serving.kill();
    assert!(expected.iter().all(|answer| !answer.is_empty()), "{expected:?}");

    let home = folder.path().join("killed");
    let serving = serve_exact(&home);
    let (id, said) = serving.ask(None, &long);
    assert_eq!(said, first);
    serving.kill();
    for ((question, expected), delay_ms) in QUESTIONS.iter().zip(&expected).zip(DELAYS_MS) {
        let serving = serve_exact(&home);
        let (_, said) = serving.ask(Some(&id), question);
        assert_eq!(said, *expected, "{question:?} after a kill");
        std::thread::sleep(Duration::from_millis(delay_ms));
        serving.kill();
    }
    let app = open(&home);
    let messages = app.conversation_get(&id).expect("the chat is there").messages;
    let answers: Vec<&str> = messages.iter().skip(1).step_by(2).map(|it| it.text.as_str()).collect();
    let all: Vec<&str> = std::iter::once(&first).chain(&expected).map(String::as_str).collect();
    assert_eq!(answers, all, "an answer that was seen whole is kept whole");
    drop(app);
    assert_eq!(orphans(&home), Vec::<String>::new());
}
