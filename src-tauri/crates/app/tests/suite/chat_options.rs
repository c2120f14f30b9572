//! A chat's own options: the default instructions that it begins with, and what is refused.
#![allow(clippy::unwrap_used)] // a test

use std::path::PathBuf;

use app::{App, AppConfig};
use contract::types::{ConversationOptions, SendArgs, TurnEventKind};

/// A temporary data folder, removed at the end.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("inglenook-chat-options-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    fn open(&self) -> App {
        App::open(AppConfig { data_dir: Some(self.0.clone()), ..AppConfig::default() }).unwrap()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The system prompt of a new chat with these options, and its id.
fn system_prompt(app: &App, options: Option<ConversationOptions>) -> (Option<String>, String) {
    let args = SendArgs { text: "Hello".into(), options, ..SendArgs::default() };
    let started = app.send(args).unwrap();
    let events: Vec<_> = app.watch_turn(&started.turn, 0).unwrap().flatten().collect();
    assert!(matches!(events.last().unwrap().kind, TurnEventKind::Done { .. }), "{events:?}");
    (app.conversation_get(&started.conversation).unwrap().options.system_prompt, started.conversation)
}

fn with_prompt(text: &str) -> Option<ConversationOptions> {
    Some(ConversationOptions { system_prompt: Some(text.into()), ..ConversationOptions::default() })
}

#[test]
fn new_chats_begin_with_the_default_instructions() {
    let home = Home::new("instructions");
    let app = home.open();
    let (before, old) = system_prompt(&app, None);
    assert_eq!(before, None);
    app.settings_set("instructions", &"Be brief.".into()).unwrap();
    let cases = [
        (None, Some("Be brief.")),
        (Some(ConversationOptions { top_k: Some(7), ..ConversationOptions::default() }), Some("Be brief.")),
        (with_prompt("Be kind."), Some("Be kind.")),
        // Emptied on purpose.
        (with_prompt(""), None),
    ];
    for (options, expected) in cases {
        let (own, _) = system_prompt(&app, options.clone());
        assert_eq!(own.as_deref(), expected, "{options:?}");
    }
    assert_eq!(app.conversation_get(&old).unwrap().options.system_prompt, None, "older chats stay");
}

#[test]
fn options_that_cannot_work_are_refused_by_name() {
    let home = Home::new("refused");
    let app = home.open();
    let (_, id) = system_prompt(&app, None);
    let none = ConversationOptions::default();
    let cases = [
        (ConversationOptions { presence_penalty: Some(3.0), ..none.clone() }, "request.penalty"),
        (ConversationOptions { stop: Some(vec![String::new()]), ..none.clone() }, "chat.stop_texts"),
        (ConversationOptions { json_schema: Some("{".into()), ..none.clone() }, "constraint.not_json"),
        (ConversationOptions { thinking: Some("maybe".into()), ..none.clone() }, "setting.out_of_range"),
        (ConversationOptions { reasoning_effort: Some("huge".into()), ..none }, "setting.out_of_range"),
    ];
    for (options, code) in cases {
        assert_eq!(app.conversation_set_options(&id, &options).unwrap_err().code(), code);
    }
}
