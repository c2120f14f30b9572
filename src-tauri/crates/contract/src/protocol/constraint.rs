//! What an answer must look like.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The form that an answer is held to while it is generated. It applies to the text behind the reasoning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Constraint {
    /// A JSON object.
    JsonObject,
    /// A JSON value that is valid under this schema.
    JsonSchema(Value),
    /// A text that this regular expression matches completely.
    Regex(String),
    /// A text of this grammar, in llguidance's variant of Lark.
    Lark(String),
    /// A call of the tool of this name, or of any tool that the request offers.
    ToolCall { name: Option<String> },
}
