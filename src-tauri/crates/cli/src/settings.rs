//! `nook settings`: lists, reads and changes settings.

use app::App;
use contract::Result;
use serde_json::{Value, json};

use crate::args::{Global, SettingsArgs, SettingsVerb};
use crate::{out, text};

pub fn settings(global: &Global, args: &SettingsArgs) -> Result<()> {
    let app = App::open(global.app_config()?)?;
    let rows = match &args.verb {
        SettingsVerb::List => app.settings_list()?,
        SettingsVerb::Get { key } => vec![app.settings_get(key)?],
        SettingsVerb::Set { key, value } => vec![app.settings_set(key, &parse(value))?],
    };
    let is_list = matches!(args.verb, SettingsVerb::List);
    match (global.json, rows.first()) {
        (true, Some(row)) if !is_list => out::json(row),
        (true, _) => out::json(&json!({ "settings": rows })),
        (false, Some(row)) if !is_list => out::line(&format_value(&row.value)),
        (false, _) => {
            let table: Vec<_> =
                rows.into_iter().map(|row| vec![row.key, format_value(&row.value), row.label]).collect();
            out::text(&text::table(&table));
        }
    }
    Ok(())
}

/// Parses valid JSON, such as `0.5` or `null`; everything else is text, such as `dark`.
fn parse(value: &str) -> Value {
    serde_json::from_str(value).unwrap_or_else(|_| value.into())
}

fn format_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".into(),
        other => other.to_string(),
    }
}
