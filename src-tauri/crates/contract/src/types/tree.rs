//! What crosses an edge about trees of messages: branches, folders, the trash, search.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{ConversationSummary, ErrorInfo, Role};

/// What a conversation has of its own; what is absent is as the settings say.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(default, deny_unknown_fields)]
pub struct ConversationOptions {
    /// Stands before the first message, for the model alone.
    pub system_prompt: Option<String>,
    pub temperature: Option<f64>,
    pub top_k: Option<u32>,
    pub top_p: Option<f64>,
    pub min_p: Option<f64>,
    pub repeat_penalty: Option<f64>,
    #[ts(type = "number | null")]
    pub seed: Option<u64>,
    /// Longest answer, in tokens.
    pub max_tokens: Option<u32>,
    /// Ids of the servers whose tools the model is told of. Absent: as the settings say.
    pub tools: Option<Vec<String>>,
    /// The preset that these began as.
    pub preset: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct SetOptionsArgs {
    pub id: String,
    pub options: ConversationOptions,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct EditArgs {
    /// A new version of it begins a branch.
    pub message: String,
    pub text: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct RegenerateArgs {
    /// An answer, or the question to answer again.
    pub message: String,
    /// Library id; absent: the conversation's model.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub model: Option<String>,
    /// For this answer alone, over what the conversation has.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub once: Option<OneOffOptions>,
}

/// What one answer is asked for otherwise than the others of its conversation; what is absent is as they are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(default, deny_unknown_fields)]
pub struct OneOffOptions {
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    #[ts(type = "number | null")]
    pub seed: Option<u64>,
    /// Whether it thinks, for models that can be told; as the setting `thinking`.
    pub thinking: Option<String>,
    /// How long it thinks, for models that know grades; as the setting `reasoning_effort`.
    pub effort: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct MessageArgs {
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ChooseArgs {
    pub message: String,
    /// Counted from 1, of those beside the message; absent: the message itself.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub version: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct PinArgs {
    pub id: String,
    pub pinned: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct MoveArgs {
    pub id: String,
    /// Null: out of any folder.
    pub folder: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Folder {
    pub id: String,
    pub name: String,
    /// The folder it lies in; null: none.
    pub parent: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct FolderAddArgs {
    pub name: String,
    /// The folder it lies in; absent: none.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub parent: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct FolderMoveArgs {
    pub id: String,
    /// Null: out of any folder.
    pub parent: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct FolderNameArgs {
    pub id: String,
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct SearchArgs {
    /// Words by their beginnings; what stands in quotes is looked for as it stands.
    pub query: String,
    /// Absent: 50.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub limit: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct SearchResult {
    /// Conversations whose title has all the words.
    pub titles: Vec<TitleHit>,
    /// Messages that have all the words, newest first.
    pub messages: Vec<MessageHit>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct TitleHit {
    pub conversation: String,
    pub title: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct MessageHit {
    pub conversation: String,
    pub title: String,
    pub message: String,
    pub role: Role,
    #[ts(type = "number")]
    pub created_ms: i64,
    /// A part of the message, in pieces.
    pub snippet: Vec<SnippetPart>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct SnippetPart {
    pub text: String,
    /// It is what was looked for.
    pub hit: bool,
}

/// How many conversations a use case went over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Count {
    pub count: u32,
}

// ---- out and in ----

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ExportFormat {
    /// To read: the branch that is looked at.
    Md,
    /// Loses nothing, and can be imported again.
    Json,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ExportArgs {
    /// Null: every conversation.
    pub id: Option<String>,
    pub format: ExportFormat,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ExportToArgs {
    /// Null: every conversation.
    pub id: Option<String>,
    pub format: ExportFormat,
    pub path: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Exported {
    /// For a file.
    pub name: String,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct FileName {
    pub name: String,
}

/// A file that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Saved {
    pub path: String,
    #[ts(type = "number")]
    pub bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct BytesArgs {
    /// A file's bytes.
    pub base64: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct Imported {
    pub conversations: Vec<ConversationSummary>,
    /// How many could not be used.
    pub failed: u32,
    /// The first of those.
    pub failures: Vec<ErrorInfo>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Restored {
    /// Conversations that were not there.
    pub added: u32,
    /// Those that were there with other messages: the backup's lie beside them.
    pub beside: u32,
    /// Those that were there as they are.
    pub same: u32,
}
