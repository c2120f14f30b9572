//! Export and import of conversations: our own formats, those of others, and a backup of
//! everything.
#![allow(clippy::unwrap_used)] // a test

use std::path::PathBuf;

use app::App;
use app::AppConfig;
use contract::types::{
    Conversation, ConversationOptions, ExportFormat, ImportSummary, Message, RegenerateArgs, Role, SendArgs,
    TurnStarted,
};
use serde_json::{Value, json};

const CHATGPT: &str = include_str!("exchange/chatgpt.json");
const CLAUDE: &str = include_str!("exchange/claude.json");

/// A temporary data folder, removed at the end.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("inglenook-exchange-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn open(&self) -> App {
        let app =
            App::open(AppConfig { data_dir: Some(self.0.join("data")), ..AppConfig::default() }).unwrap();
        app.settings_set("max_tokens", &json!(6)).unwrap();
        app.settings_set("threads", &json!(1)).unwrap();
        app.settings_set("guide_answers", &json!(false)).unwrap();
        app
    }

    fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn end(app: &App, started: &TurnStarted) {
    app.watch_turn(&started.turn, 0).unwrap().for_each(drop);
}

fn say(app: &App, conversation: Option<&str>, text: &str) -> TurnStarted {
    let args = SendArgs {
        conversation: conversation.map(Into::into),
        text: text.into(),
        model: None,
        ..SendArgs::default()
    };
    let started = app.send(args).unwrap();
    end(app, &started);
    started
}

/// A conversation with versions at both ends, options, a folder and a pin; its id.
fn grown(app: &App) -> String {
    let first = say(app, None, "Tell me of \"foxes\"\n\n```rust\nfn main() {}\n```");
    let id = first.conversation.clone();
    say(app, Some(&id), "And more?");
    end(app, &app.message_edit(&first.user_message, "Tell me of bears").unwrap());
    let again = RegenerateArgs { message: first.assistant_message, ..RegenerateArgs::default() };
    end(app, &app.message_regenerate(&again).unwrap());
    let folder = app.folder_add("Animals", None).unwrap();
    app.conversation_move(&id, Some(&folder.id)).unwrap();
    app.conversation_pin(&id, true).unwrap();
    let options =
        ConversationOptions { system_prompt: Some("Be kind.".into()), top_k: Some(7), ..Default::default() };
    app.conversation_set_options(&id, &options).unwrap();
    id
}

/// What an export has to bring back, on every branch.
fn essence(app: &App, id: &str) -> Vec<Vec<Value>> {
    let branch = |conversation: &Conversation| -> Vec<Value> {
        let of = |message: &Message| {
            json!([
                message.role,
                message.text,
                message.reasoning,
                message.state,
                message.model,
                message.stats,
                message.created_ms,
                message.version,
                message.versions
            ])
        };
        conversation.messages.iter().map(of).collect()
    };
    let start = app.conversation_get(id).unwrap();
    let mut all =
        vec![branch(&start), vec![json!([start.options, start.summary.title, start.summary.pinned])]];
    for version in 1..=start.messages[0].versions {
        app.message_choose(&start.messages[0].id, Some(version)).unwrap();
        let conversation = app.conversation_get(id).unwrap();
        all.push(branch(&conversation));
        let second = &conversation.messages[1];
        for version in 1..=second.versions {
            app.message_choose(&second.id, Some(version)).unwrap();
            all.push(branch(&app.conversation_get(id).unwrap()));
        }
    }
    all
}

#[test]
fn our_json_brings_back_the_same_tree() {
    let home = Home::new("json");
    let app = home.open();
    let id = grown(&app);
    let text = app.export(Some(&id), ExportFormat::Json).unwrap().text;
    let before = essence(&app, &id);
    assert!(before.len() >= 6, "there are versions to lose");

    // Imported on the same machine: new ids, the same tree. On another machine: the same ids.
    let path = home.file("export.json", text.as_bytes());
    let twin = app.import_file(&path).unwrap().conversations.swap_remove(0);
    assert_ne!(twin.id, id);
    assert_eq!(essence(&app, &twin.id), before);
    let other = Home::new("json-other");
    let there = other.open();
    let copy = there.import_file(&path).unwrap().conversations.swap_remove(0);
    assert_eq!(copy.id, id);
    assert_eq!(essence(&there, &id), before);
    assert_eq!(there.folders_list().unwrap()[0].name, "Animals");
    let again: Value =
        serde_json::from_str(&there.export(Some(&id), ExportFormat::Json).unwrap().text).unwrap();
    let first: Value = serde_json::from_str(&text).unwrap();
    let messages = |value: &Value| value["conversations"][0]["messages"].clone();
    let strip = |mut value: Value| {
        for message in value.as_array_mut().unwrap() {
            message.as_object_mut().unwrap().remove("chosen");
        }
        value
    };
    assert_eq!(strip(messages(&again)), strip(messages(&first)), "tokens included");
    // An answer that was cut goes on there too: its tokens came with it.
    let last = there.conversation_get(&id).unwrap().messages.pop().unwrap();
    end(&there, &there.message_continue(&last.id).unwrap());

    let all = app.export(None, ExportFormat::Json).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&all.text).unwrap()["conversations"].as_array().unwrap().len(),
        2
    );
    let markdown = app.export(Some(&id), ExportFormat::Md).unwrap();
    assert!(markdown.name.ends_with(".md") && markdown.text.starts_with("# Tell me of"), "{markdown:?}");
    assert!(markdown.text.contains("## You\n"), "{}", markdown.text);
}

fn texts(app: &App, id: &str) -> Vec<(Role, String, String)> {
    let messages = app.conversation_get(id).unwrap().messages;
    messages.into_iter().map(|message| (message.role, message.text, message.reasoning)).collect()
}

#[test]
fn chatgpts_export_comes_with_its_branches() {
    let home = Home::new("chatgpt");
    let app = home.open();
    let imported = app.import_file(&home.file("conversations.json", CHATGPT.as_bytes())).unwrap();
    assert_eq!((imported.conversations.len(), imported.failed), (1, 1));
    assert!(imported.failures[0].message.contains("no messages"), "{:?}", imported.failures);
    let summary = &imported.conversations[0];
    assert_eq!((summary.title.as_str(), summary.created_ms), ("Fox facts", 1_741_000_000_123));
    let messages = app.conversation_get(&summary.id).unwrap().messages;
    assert_eq!(messages.len(), 3);
    assert_eq!(messages[0].text, "[image]\n\nWhat animal is this? 🦊");
    assert_eq!((messages[1].text.as_str(), messages[1].version, messages[1].versions), ("A fox.", 2, 2));
    assert_eq!(messages[1].model.as_deref(), Some("o3"));
    for part in ["Red fur", "classify(image)", "'fox'"] {
        assert!(messages[1].reasoning.contains(part), "{}", messages[1].reasoning);
    }
    assert_eq!(messages[2].text, "Thanks!");
    app.message_choose(&messages[1].id, Some(1)).unwrap();
    assert_eq!(texts(&app, &summary.id)[1].1, "A dog.");
    // It goes on here.
    say(&app, Some(&summary.id), "And now?");
}

#[test]
fn claudes_export_comes_with_its_branches() {
    let home = Home::new("claude");
    let app = home.open();
    let imported = app.import_file(&home.file("conversations.json", CLAUDE.as_bytes())).unwrap();
    assert_eq!((imported.conversations.len(), imported.failed), (2, 0));
    let first = texts(&app, &imported.conversations[0].id);
    assert_eq!(first[0].1, "Look at this\n\n[notes.txt]\nSpan: 40 m\n\n[sketch.png]");
    assert_eq!(first[1].1, "A beam.");
    assert!(first[1].2.contains("{\"span\":40}"), "{first:?}");
    let arch = app.conversation_get(&imported.conversations[0].id).unwrap().messages.remove(1);
    assert_eq!((arch.version, arch.versions, arch.created_ms), (2, 2, 1_774_768_060_000));
    app.message_choose(&arch.id, Some(1)).unwrap();
    let first = texts(&app, &imported.conversations[0].id);
    assert_eq!((first[1].1.as_str(), first[1].2.as_str()), ("An arch.", "40 m is not much."));
    let second = &imported.conversations[1];
    assert_eq!(second.title, "Imported chat");
    let words: Vec<_> = texts(&app, &second.id).into_iter().map(|(_, text, _)| text).collect();
    assert_eq!(words, ["Hi", "Hello!"]);
}

#[test]
fn hostile_and_half_files_say_what_is_wrong_and_lose_nothing() {
    let home = Home::new("hostile");
    let app = home.open();
    let kept = grown(&app);
    // Looking at every branch ends on one of them: from the second time on it is always the same.
    essence(&app, &kept);
    let before = essence(&app, &kept);
    let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
    let tree = |messages: Value| {
        json!({"format": "inglenook.conversations", "version": 1, "conversations": [{"id": kept, "messages": messages}]})
            .to_string()
    };
    let message = |id: &str, parent: Option<&str>| json!({"id": id, "parent": parent, "role": "user", "text": "x", "state": "complete"});
    let circle = json!([{"mapping": {
        "a": {"parent": "b", "children": ["b"], "message": null}, "b": {"parent": "a", "children": ["a"], "message": null}
    }}]);
    let cases: [(&str, Vec<u8>, &str); 14] = [
        ("nothing", b"".to_vec(), "import.broken"),
        ("half", CHATGPT.as_bytes()[..CHATGPT.len() / 2].to_vec(), "import.broken"),
        ("html", b"<!doctype html>".to_vec(), "import.broken"),
        ("nul", vec![0; 64_560], "import.broken"),
        ("deep", deep.into_bytes(), "import.broken"),
        ("unknown", b"{\"a\": 1}".to_vec(), "import.unknown"),
        ("empty list", b"[]".to_vec(), "import.empty"),
        ("zip", b"PK\x03\x04 and no more".to_vec(), "import.zip"),
        (
            "newer",
            b"{\"format\":\"inglenook.conversations\",\"version\":9,\"conversations\":[]}".to_vec(),
            "import.newer",
        ),
        ("orphan", tree(json!([message("a", Some("b"))])).into_bytes(), "import.conversation"),
        ("twice", tree(json!([message("a", None), message("a", None)])).into_bytes(), "import.conversation"),
        (
            "order",
            tree(json!([message("b", Some("a")), message("a", None)])).into_bytes(),
            "import.conversation",
        ),
        ("self", tree(json!([message("a", Some("a"))])).into_bytes(), "import.conversation"),
        ("circle", circle.to_string().into_bytes(), "import.conversation"),
    ];
    for (name, bytes, code) in cases {
        let error = app.import_file(&home.file("hostile.json", &bytes)).unwrap_err();
        assert_eq!(error.code(), code, "{name}: {error}");
        assert!(!error.remedy().is_empty(), "{name}");
    }
    assert_eq!(app.import_file(&home.path("nowhere.json")).unwrap_err().code(), "io.not_found");
    assert_eq!(app.import_bytes("###").unwrap_err().code(), "import.broken");
    assert_eq!(app.conversations_list().unwrap().len(), 1);
    assert_eq!(essence(&app, &kept), before);
}

#[test]
fn a_backup_brings_back_what_is_gone_and_changes_nothing_that_is_there() {
    let home = Home::new("backup");
    let app = home.open();
    let id = grown(&app);
    let second = say(&app, None, "Second");
    app.settings_set("theme", &json!("dark")).unwrap();
    let file = home.path("backup.db");
    let saved = app.data_backup(&file).unwrap();
    assert!(saved.bytes > 0);
    assert_eq!(app.data_backup(&file).unwrap_err().code(), "session.file_exists");
    let before = essence(&app, &id);

    // The same folder, after a loss and a change.
    app.conversation_forget(&id).unwrap();
    end(&app, &app.message_edit(&second.user_message, "Second, otherwise").unwrap());
    let restored = app.data_restore(&file).unwrap();
    assert_eq!((restored.added, restored.beside, restored.same), (1, 0, 1));
    assert_eq!(essence(&app, &id), before);
    assert_eq!(texts(&app, &second.conversation)[0].1, "Second, otherwise");
    let again = app.data_restore(&file).unwrap();
    assert_eq!((again.added, again.beside, again.same), (0, 0, 2));

    // An empty folder.
    let other = Home::new("backup-other");
    let there =
        App::open(AppConfig { data_dir: Some(other.0.join("data")), ..AppConfig::default() }).unwrap();
    assert_eq!(there.data_restore(&file).unwrap().added, 2);
    assert_eq!(essence(&there, &id), before);
    assert_eq!(there.settings_get("theme").unwrap().value, json!("dark"));

    for (name, bytes) in
        [("none", b"hello".to_vec()), ("half", std::fs::read(&file).unwrap()[..9000].to_vec())]
    {
        let path = home.file(name, &bytes);
        let error = app.data_restore(&path).unwrap_err();
        assert!(!error.remedy().is_empty(), "{name}: {error}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "{name} is not touched");
    }
    assert_eq!(app.conversations_list().unwrap().len(), 2);
    let left: Vec<_> = std::fs::read_dir(home.0.join("data"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("restoring"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
}

/// What of an export is broken is named and costs nothing else.
#[test]
fn what_is_whole_in_a_broken_export_is_imported() {
    let home = Home::new("partly");
    let app = home.open();
    let import = |bytes: &[u8]| app.import_file(&home.file("export", bytes)).unwrap();
    let titles = |imported: &ImportSummary| {
        imported.conversations.iter().map(|it| it.title.clone()).collect::<Vec<_>>()
    };
    let partly = import(include_bytes!("../../../interchange/tests/import/onenull.json"));
    assert_eq!((titles(&partly), partly.failed), (vec!["good".into(), "good".into()], 1));
    assert_eq!(partly.failures[0].message, "Number 2: it is null, not a chat.");
    let zip = include_bytes!("../../../interchange/tests/import/manybroken.zip");
    let partly = import(zip);
    assert_eq!((titles(&partly), partly.failed), (vec!["part 0".into(), "part 2".into()], 1));
    assert!(partly.failures[0].message.starts_with("conversations-001.json"), "{:?}", partly.failures);
    let again = app.import_bytes(&documents_base64(zip)).unwrap();
    assert_eq!((titles(&again), again.failed), (titles(&partly), 1));

    let whole = import(include_bytes!("../../../interchange/tests/import/surrogate.json"));
    assert_eq!((titles(&whole), whole.failed), (vec!["good".into(), "sur".into()], 0));
    assert_eq!(texts(&app, &whole.conversations[1].id)[0].1, "cut emoji \u{fffd}");
    let order = import(include_bytes!("../../../interchange/tests/import/claude-order.json"));
    let words: Vec<_> =
        texts(&app, &order.conversations[0].id).into_iter().map(|(_, text, _)| text).collect();
    assert_eq!(words, ["question second in file", "answer first in file", "third"]);
    let twice = import(include_bytes!("../../../interchange/tests/import/claude-dup.json"));
    let branch = app.conversation_get(&twice.conversations[0].id).unwrap().messages;
    assert_eq!((branch[0].text.as_str(), branch[0].version, branch[0].versions), ("q edited", 2, 2));
    assert_eq!(branch[1].text, "an");
}

/// As the page sends it.
fn documents_base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |group: &[u8]| -> String {
        let bits =
            group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        (0..4)
            .map(|n| match n <= group.len() {
                true => char::from(LETTERS[(bits >> (18 - 6 * n) & 63) as usize]),
                false => '=',
            })
            .collect()
    };
    bytes.chunks(3).map(group).collect()
}

/// A pipe without a writer would be waited for, and a device has no end.
#[cfg(unix)]
#[test]
fn special_files_are_refused_wherever_a_path_is_named() {
    let home = Home::new("special");
    let app = home.open();
    let (pipe, folder) = (home.path("pipe.json"), home.path("folder.json"));
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    std::fs::create_dir(&folder).unwrap();
    let socket = home.path("socket.json");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let cases = [(pipe.as_str(), "pipe"), (&folder, "folder"), (&socket, "socket"), ("/dev/zero", "device")];
    for (path, what) in cases {
        let outcomes = [
            app.import_file(path).map(drop),
            app.data_restore(path).map(drop),
            app.attachment_add_path(path).map(drop),
            app::template_file(std::path::Path::new(path)).map(drop),
            app.model_add(path).map(drop),
        ];
        for (n, outcome) in outcomes.into_iter().enumerate() {
            let error = outcome.unwrap_err();
            assert!(error.message().contains(what) || n > 2, "{n}, {path}: {error}");
            assert!(!error.remedy().is_empty(), "{n}, {path}: {error}");
        }
    }
}
