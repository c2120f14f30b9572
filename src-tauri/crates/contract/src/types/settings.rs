//! Settings as they are shown.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SettingKind {
    Number {
        min: f64,
        max: f64,
        step: f64,
    },
    Integer {
        #[ts(type = "number")]
        min: i64,
        #[ts(type = "number")]
        max: i64,
        /// What the empty field means, where the value may be absent.
        absent: Option<String>,
    },
    Choice {
        options: Vec<ChoiceOption>,
    },
    Toggle,
    Text {
        placeholder: String,
    },
    /// Commands of the page, each with a list of keys.
    Keys,
    /// Shown, not edited here; changed by a flag or an environment variable.
    ReadOnly,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ChoiceOption {
    pub value: String,
    pub label: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct SettingRow {
    pub key: String,
    pub section: String,
    /// Rows that stand together within a section.
    pub group: String,
    /// Models read it when they are loaded.
    pub at_load: bool,
    pub label: String,
    pub help: String,
    pub kind: SettingKind,
    #[ts(type = "unknown")]
    pub default: serde_json::Value,
    #[ts(type = "unknown")]
    pub value: serde_json::Value,
}
