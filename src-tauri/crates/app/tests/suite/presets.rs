//! Presets: stored, changed, exported and imported, and given to a conversation before its first
//! message.
#![allow(clippy::unwrap_used)] // a test

use std::path::PathBuf;

use app::App;
use app::AppConfig;
use contract::types::{CompactionStrategy, ConversationOptions, PresetArgs, SendArgs, TurnEventKind};

/// A temporary data folder, removed at the end.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("inglenook-api-presets-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    fn open(&self) -> App {
        let app = App::open(AppConfig { data_dir: Some(self.0.clone()), ..AppConfig::default() }).unwrap();
        app.settings_set("guide_answers", &false.into()).unwrap();
        app
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn terse() -> PresetArgs {
    PresetArgs {
        id: None,
        name: " Terse ".into(),
        options: ConversationOptions {
            system_prompt: Some("Answer in one word.".into()),
            max_tokens: Some(4),
            ..ConversationOptions::default()
        },
        compression: Some(CompactionStrategy::Summary),
    }
}

#[test]
fn a_preset_is_kept_changed_and_removed() {
    let home = Home::new("kept");
    let made = home.open().preset_save(&terse()).unwrap();
    assert_eq!(made.name, "Terse");
    let app = home.open();
    assert_eq!(app.presets_list().unwrap(), std::slice::from_ref(&made));
    let changed = PresetArgs { id: Some(made.id.clone()), name: "Curt".into(), ..terse() };
    assert_eq!(app.preset_save(&changed).unwrap().id, made.id);
    assert_eq!(app.presets_list().unwrap().len(), 1);
    app.preset_remove(&made.id).unwrap();
    assert_eq!(app.presets_list().unwrap(), []);
    assert!(app.preset_remove(&made.id).is_err());
}

#[test]
fn what_is_out_of_range_is_refused() {
    let home = Home::new("refused");
    let app = home.open();
    let hot = ConversationOptions { temperature: Some(9.0), ..ConversationOptions::default() };
    assert!(app.preset_save(&PresetArgs { options: hot, ..terse() }).is_err());
    let nameless = app.preset_save(&PresetArgs { name: "\n".into(), ..terse() }).unwrap_err();
    assert_eq!(nameless.code(), "preset.no_name");
    for text in ["", "{}", "[]", r#"{"kind":"other","version":1,"name":"x","options":{}}"#] {
        assert_eq!(app.preset_import(text).unwrap_err().code(), "preset.broken", "{text}");
    }
}

#[test]
fn a_file_brings_it_back() {
    let home = Home::new("file");
    let app = home.open();
    let made = app.preset_save(&terse()).unwrap();
    let path = home.0.join("out.json");
    let file = app.preset_export(&made.id, path.to_str()).unwrap();
    assert_eq!(file.name, "terse.preset.json");
    assert_eq!(std::fs::read_to_string(path).unwrap(), file.text);
    let again = app.preset_import(&file.text).unwrap();
    assert_eq!(
        (&again.name, &again.options, again.compression),
        (&made.name, &made.options, made.compression)
    );
    assert_ne!(again.id, made.id);
}

#[test]
fn a_conversation_has_its_own_from_its_first_message_on() {
    let home = Home::new("first");
    let app = home.open();
    let PresetArgs { options, compression, .. } = terse();
    let args =
        SendArgs { text: "Hello".into(), options: Some(options.clone()), compression, ..SendArgs::default() };
    let started = app.send(args).unwrap();
    let events: Vec<_> = app.watch_turn(&started.turn, 0).unwrap().flatten().collect();
    let TurnEventKind::Done { stats } = &events.last().unwrap().kind else { panic!("{events:?}") };
    assert!(stats.generated_tokens <= 4, "{stats:?}");
    let conversation = app.conversation_get(&started.conversation).unwrap();
    assert_eq!((conversation.options, conversation.compression), (options, compression));
}
