//! Arguments of the tools, as clients send them.
//!
//! The documentation of a field is its description in the schema that clients get.

use std::num::NonZeroU32;

use contract::protocol::PromptMessage;
use contract::{Error, Result};
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Longest answer of `generate_text` where the call gives none, in tokens.
pub const DEFAULT_MAX_TOKENS: NonZeroU32 = NonZeroU32::new(100).expect("it is not zero");
/// Temperature of `generate_text` where the call gives none.
pub const DEFAULT_TEMPERATURE: f64 = 0.7;
/// Chats that `list_sessions` gives where the call names no number.
pub const DEFAULT_LIMIT: u32 = 50;

/// Arguments of `generate_text`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GenerateTextArgs {
    pub prompt: String,
    /// Longest answer, in tokens.
    #[serde(default = "default_max_tokens")]
    pub max_tokens: NonZeroU32,
    /// 0 always picks the most likely token.
    #[serde(default = "default_temperature")]
    #[schemars(range(min = 0))]
    pub temperature: f64,
    /// Progress notifications carry the text while it is written.
    #[serde(default)]
    pub stream: bool,
    /// Id as `list_models` gives it; absent: the default model.
    pub model: Option<String>,
    /// Continues the prompt as it is, without a chat template.
    #[serde(default)]
    pub raw: bool,
    /// The same seed and prompt give the same answer.
    pub seed: Option<u64>,
    /// Texts that end the answer.
    #[serde(default)]
    pub stop: Vec<String>,
}

/// Arguments of `chat`: either `messages`, or `message` with or without `session`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChatArgs {
    /// A whole chat, the question last. It is not saved.
    #[schemars(length(min = 1))]
    pub messages: Option<Vec<ChatMessage>>,
    /// One message of a saved chat.
    pub message: Option<String>,
    /// Id of the saved chat; absent: a new one.
    pub session: Option<String>,
    /// System prompt. A saved chat keeps its own.
    pub system: Option<String>,
    /// Id as `list_models` gives it; absent: the default model.
    pub model: Option<String>,
    /// Longest answer, in tokens.
    pub max_tokens: Option<NonZeroU32>,
    #[schemars(range(min = 0))]
    pub temperature: Option<f64>,
    /// Progress notifications carry the text while it is written.
    #[serde(default)]
    pub stream: bool,
    /// The same seed and prompt give the same answer.
    pub seed: Option<u64>,
}

/// A message of an unsaved chat.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct ChatMessage {
    role: ChatRole,
    content: String,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum ChatRole {
    System,
    User,
    Assistant,
}

impl ChatMessage {
    /// A system message.
    pub fn system(content: String) -> Self {
        Self { role: ChatRole::System, content }
    }

    /// As chat templates take it.
    pub fn into_prompt(self) -> PromptMessage {
        let role = match self.role {
            ChatRole::System => "system",
            ChatRole::User => "user",
            ChatRole::Assistant => "assistant",
        };
        PromptMessage { role: role.into(), content: self.content, ..PromptMessage::default() }
    }
}

/// Arguments of `count_tokens`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CountTokensArgs {
    pub text: String,
    /// Id as `list_models` gives it; absent: the default model.
    pub model: Option<String>,
}

/// Arguments of `get_model_info`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelInfoArgs {
    /// Id as `list_models` gives it; absent: the default model.
    pub model: Option<String>,
}

/// Arguments of `list_models`: none.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListModelsArgs {}

/// Arguments of `list_sessions`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListSessionsArgs {
    /// Most chats to list.
    #[serde(default = "default_limit")]
    pub limit: u32,
}

fn default_max_tokens() -> NonZeroU32 {
    DEFAULT_MAX_TOKENS
}

fn default_temperature() -> f64 {
    DEFAULT_TEMPERATURE
}

fn default_limit() -> u32 {
    DEFAULT_LIMIT
}

/// Reads the arguments of a call.
///
/// Errors: `mcp.arguments`, which names the tool and what is wrong.
pub fn parse<T: DeserializeOwned>(tool: &str, arguments: Value) -> Result<T> {
    serde_json::from_value(arguments).map_err(|error| {
        Error::input(
            "mcp.arguments",
            format!("The arguments of {tool} are wrong: {error}."),
            "Send the arguments that the tool's input schema describes.",
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn generate_text_has_its_documented_defaults() {
        let args: GenerateTextArgs = parse("generate_text", json!({ "prompt": "x" })).unwrap();
        assert_eq!((args.max_tokens.get(), args.temperature, args.stream), (100, 0.7, false));
        assert!(!args.raw && args.model.is_none() && args.seed.is_none() && args.stop.is_empty());
    }

    #[test]
    fn wrong_arguments_are_named() {
        let cases = [
            (json!({}), "missing field `prompt`"),
            (json!({ "prompt": 3 }), "expected a string"),
            (json!({ "prompt": "x", "max_tokens": 0 }), "nonzero"),
            (json!({ "prompt": "x", "max_tokens": -1 }), "nonzero"),
            (json!({ "prompt": "x", "max_token": 5 }), "unknown field `max_token`"),
        ];
        for (value, expected) in cases {
            let error = parse::<GenerateTextArgs>("generate_text", value.clone()).unwrap_err();
            assert_eq!(error.code(), "mcp.arguments");
            assert!(error.message().contains(expected), "{value}: {error}");
        }
        assert!(parse::<ListModelsArgs>("list_models", json!({})).is_ok());
    }
}
