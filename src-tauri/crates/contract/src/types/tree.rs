//! Edge types of message trees: branches, folders, the trash, search.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{ConversationSummary, ErrorInfo, Role};
use crate::protocol::ImageDetail;

/// A conversation's own options; an absent one is as the settings say.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(default, deny_unknown_fields)]
pub struct ConversationOptions {
    /// Precedes the first message; only the model sees it.
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
    /// From -2 to 2.
    pub presence_penalty: Option<f64>,
    /// From -2 to 2.
    pub frequency_penalty: Option<f64>,
    /// DRY and XTC.
    pub samplers: Option<SamplerOptions>,
    /// Texts that end the answer; they are not part of it.
    pub stop: Option<Vec<String>>,
    /// A JSON schema that the answer follows, as text.
    pub json_schema: Option<String>,
    /// Whether it reasons, for models that can be switched; as the setting `thinking`.
    pub thinking: Option<String>,
    /// Reasoning effort, for models with levels; as the setting `reasoning_effort`.
    pub reasoning_effort: Option<String>,
    /// How many tokens an image may take, in models that see any size. Absent: as the model's own settings say.
    pub image_detail: Option<ImageDetail>,
    /// Ids of the servers whose tools the model is offered. Absent: as the settings say.
    pub tools: Option<Vec<String>>,
    /// The preset that these options started from.
    pub preset: Option<String>,
    /// Whether prompts have the notes of the memory page. Absent: as the setting `memory` says.
    pub memory: Option<bool>,
    /// The project that they started from, by its folder.
    pub project: Option<String>,
}

/// The samplers DRY and XTC, by llama.cpp's names; an absent value is the published one, and both are off without their
/// first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(default, deny_unknown_fields)]
pub struct SamplerOptions {
    /// From 0; 0 turns DRY off.
    pub dry_multiplier: Option<f64>,
    /// From 1.
    pub dry_base: Option<f64>,
    /// Longest repetition without a penalty, in tokens.
    pub dry_allowed_length: Option<u32>,
    /// Recent tokens that are searched; -1: all, 0 turns DRY off.
    pub dry_penalty_last_n: Option<i32>,
    /// Texts that end a repetition.
    pub dry_sequence_breakers: Option<Vec<String>>,
    /// From 0 to 1; 0 turns XTC off.
    pub xtc_probability: Option<f64>,
    /// From 0 to 1.
    pub xtc_threshold: Option<f64>,
}

/// Sets a conversation's options.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct SetOptionsArgs {
    pub id: String,
    pub options: ConversationOptions,
}

/// Edits a message as a new version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct EditArgs {
    /// The message whose new version begins a branch.
    pub message: String,
    pub text: String,
}

/// Requests another version of an answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct RegenerateArgs {
    /// An answer, or the question to answer again.
    pub message: String,
    /// Library id; absent: the conversation's model.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub model: Option<String>,
    /// Overrides the conversation's options for this answer.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub once: Option<OneOffOptions>,
}

/// Options of one answer that differ from its conversation's; absent ones don't.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(default, deny_unknown_fields)]
pub struct OneOffOptions {
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    #[ts(type = "number | null")]
    pub seed: Option<u64>,
    /// Whether it reasons, for models that can be switched; as the setting `thinking`.
    pub thinking: Option<String>,
    /// Reasoning effort, for models with levels; as the setting `reasoning_effort`.
    pub effort: Option<String>,
}

/// Names a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct MessageArgs {
    pub message: String,
}

/// Makes a version of a message the active one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ChooseArgs {
    pub message: String,
    /// Index among the sibling versions, counted from 1; absent: the message itself.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub version: Option<u32>,
}

/// Pins or unpins a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct PinArgs {
    pub id: String,
    pub pinned: bool,
}

/// Moves a conversation into a folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct MoveArgs {
    pub id: String,
    /// Null: out of any folder.
    pub folder: Option<String>,
}

/// A folder of conversations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Folder {
    pub id: String,
    pub name: String,
    /// The folder it lies in; null: none.
    pub parent: Option<String>,
    /// New conversations in it begin with its instructions and files.
    #[serde(default)]
    #[ts(optional, as = "Option<bool>")]
    pub is_project: bool,
}

/// Creates a folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct FolderAddArgs {
    pub name: String,
    /// The folder it lies in; absent: none.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub parent: Option<String>,
}

/// Moves a folder into another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct FolderMoveArgs {
    pub id: String,
    /// Null: out of any folder.
    pub parent: Option<String>,
}

/// Renames a folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct FolderNameArgs {
    pub id: String,
    pub name: String,
}

/// Searches titles and messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct SearchArgs {
    /// Prefixes of words; a quoted phrase is matched literally.
    pub query: String,
    /// Absent: 50.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub limit: Option<u32>,
}

/// The conversations and messages that match.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct SearchResult {
    /// Conversations whose title has all the words.
    pub titles: Vec<TitleHit>,
    /// Messages that have all the words, newest first.
    pub messages: Vec<MessageHit>,
}

/// A conversation whose title matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct TitleHit {
    pub conversation: String,
    pub title: String,
}

/// A message that matches.
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

/// A piece of a snippet, matching or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct SnippetPart {
    pub text: String,
    /// It matches the query.
    pub hit: bool,
}

/// Number of conversations affected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Count {
    pub count: u32,
}

// ---- out and in ----

/// The format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ExportFormat {
    /// For reading: the current branch.
    Md,
    /// Lossless, and can be imported again.
    Json,
}

/// Exports a conversation, or all of them, as text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ExportArgs {
    /// Null: every conversation.
    pub id: Option<String>,
    pub format: ExportFormat,
}

/// Exports a conversation, or all of them, to a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ExportToArgs {
    /// Null: every conversation.
    pub id: Option<String>,
    pub format: ExportFormat,
    pub path: String,
}

/// An exported text and its suggested file name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ExportedFile {
    /// Suggested file name.
    pub name: String,
    pub text: String,
}

/// A file name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct FileName {
    pub name: String,
}

/// A file that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct SavedFile {
    pub path: String,
    #[ts(type = "number")]
    pub bytes: u64,
}

/// Imports a file from its bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct BytesArgs {
    /// A file's bytes.
    pub base64: String,
}

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ImportSummary {
    pub conversations: Vec<ConversationSummary>,
    /// Number that could not be imported.
    pub failed: u32,
    /// The first errors.
    pub failures: Vec<ErrorInfo>,
}

/// The result of restoring a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct RestoreSummary {
    /// Conversations that were missing.
    pub added: u32,
    /// Items already here with other messages: the backup's are added next to them.
    pub beside: u32,
    /// Conversations that were already identical.
    pub same: u32,
}
