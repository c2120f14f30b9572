//! Per-model load settings: stored, checked, and applied.
#![allow(clippy::unwrap_used)] // a test

use std::path::PathBuf;

use app::App;
use app::AppConfig;
use contract::types::{ModelSettingArgs, SendArgs, SettingRow, TurnEventKind};
use serde_json::{Value, json};

/// A temporary data folder, removed at the end.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("inglenook-api-own-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    fn open(&self) -> App {
        let app = App::open(AppConfig { data_dir: Some(self.0.clone()), ..AppConfig::default() }).unwrap();
        app.settings_set("guide_answers", &json!(false)).unwrap();
        app
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn set(app: &App, key: &str, value: Value) -> contract::Result<Vec<SettingRow>> {
    app.model_setting_set(&ModelSettingArgs { id: "starter".into(), key: key.into(), value })
}

fn value(rows: &[SettingRow], key: &str) -> (Value, Value) {
    let row = rows.iter().find(|row| row.key == key).unwrap();
    (row.value.clone(), row.default.clone())
}

#[test]
fn a_value_is_kept_over_that_for_all_models() {
    let home = Home::new("kept");
    let rows = set(&home.open(), "kv", json!("q8_0")).unwrap();
    assert_eq!(value(&rows, "kv"), (json!("q8_0"), json!("f16")));
    let app = home.open();
    assert_eq!(app.settings_get("kv").unwrap().value, json!("f16"));
    assert_eq!(value(&app.model_settings("starter").unwrap(), "kv"), (json!("q8_0"), json!("f16")));
    let rows = set(&app, "kv", Value::Null).unwrap();
    assert_eq!(value(&rows, "kv"), (json!("f16"), json!("f16")));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let home = Home::new("refused");
    let app = home.open();
    assert_eq!(set(&app, "kv", json!("f64")).unwrap_err().code(), "setting.out_of_range");
    assert_eq!(set(&app, "theme", json!("dark")).unwrap_err().code(), "setting.unknown");
    assert_eq!(app.model_settings("nobody").unwrap_err().code(), "model.unknown");
}

#[test]
fn the_next_loading_uses_it() {
    let home = Home::new("used");
    let app = home.open();
    set(&app, "context", json!(128)).unwrap();
    app.settings_set("max_tokens", &json!(4)).unwrap();
    let started = app.send(SendArgs { text: "Hello".into(), ..SendArgs::default() }).unwrap();
    let events: Vec<_> = app.watch_turn(&started.turn, 0).unwrap().flatten().collect();
    let TurnEventKind::Done { stats } = &events.last().unwrap().kind else { panic!("{events:?}") };
    assert_eq!(stats.context_limit, 128);
    app.model_unload("starter").unwrap();
}
