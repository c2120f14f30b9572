//! Settings in display form.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// The type and range of a setting.
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
        /// Meaning of the empty field, if the value may be absent.
        absent: Option<String>,
    },
    Choice {
        options: Vec<ChoiceOption>,
    },
    Toggle,
    Text {
        placeholder: String,
    },
    /// Text of several lines.
    LongText {
        placeholder: String,
    },
    /// A list of texts, each with its name: `[{"name": "…", "text": "…"}]`.
    Prompts,
    /// Commands of the page, each with a list of keys.
    Keys,
    /// Shown, not edited here; changed by a flag or an environment variable.
    ReadOnly,
}

/// An option of a choice setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ChoiceOption {
    pub value: String,
    pub label: String,
}

/// A setting with its value and everything needed to show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct SettingRow {
    pub key: String,
    pub section: String,
    /// Group of rows within a section.
    pub group: String,
    /// Takes effect when a model is loaded.
    pub at_load: bool,
    pub label: String,
    pub help: String,
    pub kind: SettingKind,
    #[ts(type = "unknown")]
    pub default: serde_json::Value,
    #[ts(type = "unknown")]
    pub value: serde_json::Value,
}
