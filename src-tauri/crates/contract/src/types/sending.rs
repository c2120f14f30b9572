//! Options for sending a message.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{CompactionStrategy, ConversationOptions};

/// Sends a message.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct SendArgs {
    /// Absent: a new conversation is made.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub conversation: Option<String>,
    pub text: String,
    /// Library id; absent: the conversation's model, or the default.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub model: Option<String>,
    /// Files that go with it, by their ids.
    #[serde(default)]
    #[ts(optional, as = "Option<Vec<String>>")]
    pub attachments: Vec<String>,
    /// Options of a new conversation from its first message on; an existing one keeps its own.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub options: Option<ConversationOptions>,
    /// As `options`.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub compression: Option<CompactionStrategy>,
}
