//! Contexts that age as the settings say: found again after a restart, with the same answers, and
//! not used where contexts are to be exact.
#![allow(clippy::unwrap_used)] // a test

use std::path::PathBuf;

use app::App;
use app::AppConfig;
use contract::types::{SendArgs, TurnEventKind, TurnStats};
use serde_json::json;

/// A temporary data folder, removed at the end.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("inglenook-aged-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    fn open(&self, aging: &str) -> App {
        let config = AppConfig { data_dir: Some(self.0.clone()), ..AppConfig::default() };
        let app = App::open(config).unwrap();
        for (key, value) in [("max_tokens", 8), ("temperature", 0), ("threads", 1), ("kv_aging_after", 256)] {
            app.settings_set(key, &json!(value)).unwrap();
        }
        // A title that is written shares contexts too, whenever it comes.
        app.settings_set("titles", &json!(false)).unwrap();
        app.settings_set("guide_answers", &json!(false)).unwrap();
        app.settings_set("kv_aging", &json!(aging)).unwrap();
        app
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn ask(app: &App, conversation: Option<&str>, text: &str) -> (String, String, TurnStats) {
    let started = app
        .send(SendArgs {
            conversation: conversation.map(Into::into),
            text: text.into(),
            ..SendArgs::default()
        })
        .unwrap();
    let (mut said, mut stats) = (String::new(), None);
    for event in app.watch_turn(&started.turn, 0).unwrap().flatten() {
        match event.kind {
            TurnEventKind::Text { text, .. } => said.push_str(&text),
            TurnEventKind::Done { stats: done } => stats = Some(done),
            TurnEventKind::Failed { error } => panic!("{error:?}"),
            _ => {}
        }
    }
    (started.conversation, said, stats.expect("every turn ends"))
}

/// Some eight hundred tokens, of which the first five hundred age.
fn long(seed: &str) -> String {
    (0..72).map(|i| format!("{seed} has {} apples and {} pears. ", i * 7 % 13, i * 5 % 11)).collect()
}

const QUESTIONS: [&str; 2] = ["And how many plums?", "Which is more?"];

#[test]
fn an_aged_context_goes_on_after_a_restart() {
    let (through, broken) = (Home::new("through"), Home::new("broken"));
    let app = through.open("after");
    let (id, ..) = ask(&app, None, &long("Ann"));
    let expected = QUESTIONS.map(|text| ask(&app, Some(&id), text));
    let info = app.kv_stats().unwrap();
    assert!(info.aged_pages.held >= 8 && info.aged_pages.held <= info.aged_pages.places, "{info:?}");
    drop(app);

    let (id, ..) = ask(&broken.open("after"), None, &long("Ann"));
    for (text, (_, said, stats)) in QUESTIONS.iter().zip(&expected) {
        let app = broken.open("after");
        let (_, again, now) = ask(&app, Some(&id), text);
        assert_eq!(&again, said);
        assert_eq!(now.reused_tokens, stats.reused_tokens, "what was aged is found on disk");
        assert!(now.reused_tokens > 700, "{now:?}");
        assert!(app.kv_stats().unwrap().aged_pages.held >= 8);
    }
}

#[test]
fn where_contexts_are_to_be_exact_nothing_aged_is_taken() {
    let (exact, changed) = (Home::new("exact"), Home::new("changed"));
    let app = exact.open("off");
    let (id, ..) = ask(&app, None, &long("Bob"));
    let (_, expected, _) = ask(&app, Some(&id), QUESTIONS[0]);
    assert_eq!(app.kv_stats().unwrap().aged_pages.held, 0);
    drop(app);
    let (id, ..) = ask(&changed.open("after"), None, &long("Bob"));
    let (_, said, stats) = ask(&changed.open("off"), Some(&id), QUESTIONS[0]);
    assert_eq!(said, expected);
    assert!(stats.reused_tokens <= 512, "only what nothing aged had been seen by: {stats:?}");
}

/// A chat that begins like one that has aged is answered as if that had never been.
#[test]
fn a_new_chat_does_not_begin_with_what_has_aged() {
    let (beside, alone) = (Home::new("beside"), Home::new("alone"));
    let short = &long("Cat")[..1500];
    let app = beside.open("after");
    let (id, ..) = ask(&app, None, &long("Cat"));
    ask(&app, Some(&id), QUESTIONS[0]);
    let (_, said, _) = ask(&app, None, short);
    let (_, expected, _) = ask(&alone.open("after"), None, short);
    assert_eq!(said, expected);
}

#[test]
fn the_settings_say_when_and_refuse_what_is_too_near() {
    let home = Home::new("settings");
    let app = home.open("off");
    assert!(app.settings_set("kv_aging", &json!("sometimes")).is_err());
    assert!(app.settings_set("kv_aging_after", &json!(255)).is_err());
    assert_eq!(app.settings_set("kv_aging", &json!("pressure")).unwrap().value, json!("pressure"));
}
