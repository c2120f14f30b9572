//! Forms that tool servers ask the user to fill in.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A form that waits for the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ToolForm {
    pub id: String,
    /// Name of the server that asks.
    pub server_name: String,
    /// Why it asks, in its own words.
    pub message: String,
    pub fields: Vec<ToolFormField>,
}

/// A field of a form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ToolFormField {
    pub name: String,
    /// What the user knows it by.
    pub label: String,
    pub description: Option<String>,
    pub required: bool,
    pub kind: ToolFieldKind,
    /// Taken where the user gives no value.
    #[ts(type = "unknown")]
    pub default: serde_json::Value,
}

/// What a field takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ToolFieldKind {
    Text {
        format: Option<ToolTextFormat>,
        #[ts(type = "number | null")]
        min_chars: Option<u64>,
        #[ts(type = "number | null")]
        max_chars: Option<u64>,
    },
    Number {
        is_integer: bool,
        min: Option<f64>,
        max: Option<f64>,
    },
    Flag,
    Choice {
        options: Vec<ToolFormOption>,
    },
    /// Any number of options.
    MultipleChoice {
        options: Vec<ToolFormOption>,
    },
}

/// What a text looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ToolTextFormat {
    Email,
    Uri,
    Date,
    DateTime,
}

/// One option of a choice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ToolFormOption {
    pub value: String,
    pub title: String,
}

/// What the user does with a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ToolFormAction {
    Accept,
    /// The user does not want to answer.
    Decline,
    /// The user closed the form.
    Cancel,
}

/// Answers a form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ToolFormAnswerArgs {
    /// Of the form.
    pub id: String,
    pub action: ToolFormAction,
    /// By the name of the field. Fields that are missing take their defaults.
    #[serde(default)]
    #[ts(type = "Record<string, unknown>")]
    pub values: BTreeMap<String, serde_json::Value>,
}
