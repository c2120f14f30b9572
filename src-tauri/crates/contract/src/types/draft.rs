//! What sending a draft would cost, before it is sent.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{AttachmentCost, ConversationOptions};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct DraftArgs {
    /// Absent: a conversation that is about to begin.
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
    /// What a conversation that is about to begin will have of its own; one that is there has its options.
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
    /// The model can be told to think or not to.
    pub can_think_or_not: bool,
    /// The model knows grades of effort, such as `low`.
    #[ts(optional, as = "Option<bool>")]
    pub has_efforts: bool,
    /// The count is an estimate: the vocabulary is elsewhere.
    #[ts(optional, as = "Option<bool>")]
    pub is_about: bool,
    /// Of each file of the draft.
    pub attachments: Vec<AttachmentCost>,
}

/// What a prompt consists of before the draft, in tokens. What is left of `before` is what was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ContextParts {
    /// The whole prompt without the draft; none where a conversation is about to begin.
    pub before: u32,
    pub system: u32,
    /// Descriptions of the tools that the model is told of.
    pub tools: u32,
    /// Of earlier messages, as far as the model is shown them.
    pub files: u32,
}
