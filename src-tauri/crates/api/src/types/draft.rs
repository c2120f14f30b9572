//! What sending a draft would cost, before it is sent.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::AttachmentCost;

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
}

/// What sending a draft would cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct DraftCount {
    /// Of the whole prompt: the conversation, the draft, and the markup of the model's template.
    pub tokens: u32,
    pub context_limit: u32,
    /// The model can be told to think or not to.
    pub can_think_or_not: bool,
    /// The count is an estimate: the vocabulary is elsewhere.
    #[ts(optional, as = "Option<bool>")]
    pub is_about: bool,
    /// Of each file of the draft.
    pub attachments: Vec<AttachmentCost>,
}
