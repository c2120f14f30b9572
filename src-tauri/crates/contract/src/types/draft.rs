//! The token cost of a draft, before it is sent.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{AttachmentCost, ConversationOptions, MemoryShare, ProjectShare};

/// A draft whose token cost is counted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct DraftArgs {
    /// Absent: a new conversation.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub conversation: Option<String>,
    pub text: String,
    /// Library id; absent: the conversation's model, or the default.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub model: Option<String>,
    /// Files of the draft, by their ids.
    #[serde(default)]
    #[ts(optional, as = "Option<Vec<String>>")]
    pub attachments: Vec<String>,
    /// The folder that a new conversation will lie in; an existing one stays where it is.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub folder: Option<String>,
    /// Options that the new conversation will have; an existing one has its own.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub options: Option<ConversationOptions>,
}

/// What sending a draft would cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct DraftCount {
    /// Of the whole prompt: the conversation, the draft, and the markup of the model's template.
    pub tokens: u32,
    pub context_limit: u32,
    /// The model supports switching reasoning on and off.
    pub can_think_or_not: bool,
    /// The model supports effort levels, such as `low`.
    #[ts(optional, as = "Option<bool>")]
    pub has_efforts: bool,
    /// The count is an estimate: the vocabulary is elsewhere.
    #[ts(optional, as = "Option<bool>")]
    pub is_about: bool,
    /// Expected time until the first token, by what this model took before. Absent: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub first_token_ms: Option<u32>,
    /// Scanned pages of the project's files that the model is not shown. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub hidden_pages: Option<HiddenPages>,
    /// Of each file of the draft.
    pub attachments: Vec<AttachmentCost>,
}

/// Scanned pages of a project's files that a prompt leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct HiddenPages {
    pub count: u32,
    pub reason: HiddenPagesReason,
}

/// Why pages are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum HiddenPagesReason {
    /// The prompt has no room for them.
    NoRoom,
    /// The model can't see images.
    Unseen,
}

/// The parts of a prompt before the draft, in tokens. The rest of `before` is messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ContextParts {
    /// The whole prompt without the draft; 0 for a new conversation.
    pub before: u32,
    pub system: u32,
    /// Descriptions of the offered tools.
    pub tools: u32,
    /// Files of earlier messages, as far as the model sees them, and of the project of a new conversation.
    pub files: u32,
    /// The notes of the memory page; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub memory: Option<MemoryShare>,
    /// What of it came from the conversation's project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub project: Option<ProjectShare>,
}
