//! Files with messages.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::Finding;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum AttachmentKind {
    Text,
    Markdown,
    Code,
    Csv,
    Pdf,
}

impl AttachmentKind {
    /// As it is kept in the database and in exports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Markdown => "markdown",
            Self::Code => "code",
            Self::Csv => "csv",
            Self::Pdf => "pdf",
        }
    }

    /// A word that isn't known is that of some text.
    pub fn of_name(name: &str) -> Self {
        match name {
            "markdown" => Self::Markdown,
            "code" => Self::Code,
            "csv" => Self::Csv,
            "pdf" => Self::Pdf,
            _ => Self::Text,
        }
    }
}

/// A file that was read, for a message that will be sent or was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Attachment {
    pub id: String,
    pub name: String,
    pub kind: AttachmentKind,
    /// Of the file as it was.
    #[ts(type = "number")]
    pub bytes: u64,
    /// What a reader may not notice in it.
    pub findings: Vec<Finding>,
    /// The model was given all of it; else the passages that match. Absent: it has not been sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub whole: Option<bool>,
    /// Of all of it, as the model counts that it was sent to. Absent: it has not been sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub tokens: Option<u32>,
    /// That count is an estimate.
    #[serde(default)]
    #[ts(optional, as = "Option<bool>")]
    pub is_about: bool,
    /// The encoding that was guessed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub guessed: Option<String>,
}

/// What of a file an answer could know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Source {
    /// The file, by its id.
    pub attachment: String,
    pub name: String,
    pub kind: AttachmentKind,
    /// Absent: all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub passage: Option<Passage>,
}

/// A part of a file's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Passage {
    /// Bytes of its text.
    pub start: u32,
    pub end: u32,
    /// From 1.
    pub first_line: u32,
    pub last_line: u32,
    /// From 1, where it has pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub page: Option<u32>,
}

impl Passage {
    /// Such as `page 3` or `lines 10–42`.
    pub fn place(&self) -> String {
        match (self.page, self.first_line, self.last_line) {
            (Some(page), ..) => format!("page {page}"),
            (None, first, last) if first == last => format!("line {first}"),
            (None, first, last) => format!("lines {first}–{last}"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct AttachArgs {
    pub name: String,
    /// The file's bytes.
    pub base64: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct AttachmentTextArgs {
    pub id: String,
    /// A byte of its text that is to be seen; absent: the first.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub at: Option<u32>,
}

/// A file's text, or so much of it as is shown at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct AttachmentText {
    pub attachment: Attachment,
    pub text: String,
    /// The byte of the whole text that this begins with.
    pub start: u32,
    /// Bytes of the whole text.
    pub total: u32,
}

/// What a file of a draft would cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct AttachmentCost {
    pub id: String,
    /// Of what the model would be given of it.
    pub tokens: u32,
    /// Of all of it.
    pub tokens_whole: u32,
    /// It fits as a whole; else it is searched for what the draft asks.
    pub whole: bool,
}
