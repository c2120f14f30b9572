//! Temporary chats, which are stored nowhere.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{ConversationOptions, Role, ToolCall};

/// Requests an answer in a temporary chat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct TemporaryArgs {
    /// The whole chat, the question last.
    pub messages: Vec<TemporaryMessage>,
    /// Library id; absent: the default model.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub model: Option<String>,
    /// Its options; absent: as the settings say.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub options: Option<ConversationOptions>,
}

/// A message of a temporary chat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct TemporaryMessage {
    pub role: Role,
    pub text: String,
    /// Files that go with it, by their ids; they stay as long as the application runs.
    #[serde(default)]
    #[ts(optional, as = "Option<Vec<String>>")]
    pub attachments: Vec<String>,
    /// An answer's calls, with their results.
    #[serde(default)]
    #[ts(optional, as = "Option<Vec<ToolCall>>")]
    pub tool_calls: Vec<ToolCall>,
}
