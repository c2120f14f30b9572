//! Chats that are kept nowhere.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{ConversationOptions, Role, ToolCall};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct TemporaryArgs {
    /// All of the chat, the question last.
    pub messages: Vec<TemporaryMessage>,
    /// Library id; absent: the default model.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub model: Option<String>,
    /// What it has of its own; absent: all is as the settings say.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub options: Option<ConversationOptions>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct TemporaryMessage {
    pub role: Role,
    pub text: String,
    /// Files that go with it, by their ids; they stay as long as the application runs.
    #[serde(default)]
    #[ts(optional, as = "Option<Vec<String>>")]
    pub attachments: Vec<String>,
    /// Of an answer: what it called, with what that brought.
    #[serde(default)]
    #[ts(optional, as = "Option<Vec<ToolCall>>")]
    pub tool_calls: Vec<ToolCall>,
}
