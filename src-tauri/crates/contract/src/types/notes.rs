//! Memory: notes that the user keeps for all conversations.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A note that is part of prompts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Note {
    pub id: String,
    pub text: String,
    /// The conversation that the user took it from. It may be gone.
    pub source: Option<String>,
    #[ts(type = "number")]
    pub created_ms: i64,
    #[ts(type = "number")]
    pub updated_ms: i64,
}

/// Adds a note, or changes the text of one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct NoteArgs {
    /// Absent: adds one.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub id: Option<String>,
    pub text: String,
    /// The conversation that a new one is taken from.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub source: Option<String>,
}

/// The block of a prompt that has the notes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct MemoryShare {
    pub tokens: u32,
    /// As the model is given it.
    pub text: String,
}
