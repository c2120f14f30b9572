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
    /// The folder that a new conversation lies in; where it is a project, what is absent here is as the project says, and
    /// its files go with the message. An existing conversation stays where it is.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub folder: Option<String>,
    /// Options of a new conversation from its first message on; an existing one keeps its own.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub options: Option<ConversationOptions>,
    /// As `options`.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub compression: Option<CompactionStrategy>,
}
