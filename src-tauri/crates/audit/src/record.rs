//! What a line says: of an answer, or of a file or an address that was refused.

use serde::{Deserialize, Serialize};

/// Where a request came from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interface {
    /// The window on the desktop.
    Window,
    /// A command in the terminal.
    #[default]
    Terminal,
    /// The HTTP server.
    Http,
}

/// Token counts of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditTokens {
    /// Tokens of the prompt, including reused ones.
    pub prompt: u32,
    /// Prompt tokens that came from the context cache.
    pub reused: u32,
    /// Generated tokens.
    pub answer: u32,
}

/// One answer: who asked, what answered, how much, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    /// When it was requested, such as `2026-01-15T12:00:00Z`.
    pub began: String,
    /// When it ended.
    pub ended: String,
    /// Where the request came from.
    pub interface: Interface,
    /// Name of the key that it carried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Route of the request, such as `POST /v1/messages`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// Id of the turn.
    pub turn: String,
    /// Id of the model.
    pub model: String,
    /// How much was read and written.
    pub tokens: AuditTokens,
    /// Why it ended: `stop`, `length` and the like, or `failed`.
    pub outcome: String,
    /// Code of the error of a failed answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The answer's text, only where a setting says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A file, an address or a signature that was refused, because it was not what it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusalRecord {
    /// When, such as `2026-01-15T12:00:00Z`.
    pub at: String,
    /// Code of the error, such as `hub.redirect`.
    pub refused: String,
    /// What it was about: a model, a repository.
    pub subject: String,
    /// What was wrong with it.
    pub message: String,
}

/// What a line records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AuditEntry {
    /// An answer. Boxed: refusals are small.
    Answer(Box<AuditRecord>),
    /// A refusal.
    Refusal(RefusalRecord),
}

impl From<AuditRecord> for AuditEntry {
    fn from(record: AuditRecord) -> Self {
        Self::Answer(Box::new(record))
    }
}

impl From<RefusalRecord> for AuditEntry {
    fn from(record: RefusalRecord) -> Self {
        Self::Refusal(record)
    }
}
