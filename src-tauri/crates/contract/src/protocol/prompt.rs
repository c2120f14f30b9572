//! Prompts: messages in the form that chat templates take, raw text, or token ids.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ImageDetail, PromptImage};

/// The input of a turn: messages, raw text, or token ids.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prompt {
    /// Through the model's chat template.
    Chat(Vec<PromptMessage>),
    /// Verbatim, without a template.
    Raw(String),
    Ids(Vec<u32>),
}

impl Prompt {
    /// Its messages; none where it is no chat.
    pub fn messages(&self) -> &[PromptMessage] {
        match self {
            Self::Chat(messages) => messages,
            Self::Raw(_) | Self::Ids(_) => &[],
        }
    }

    /// The texts that its author wrote.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let raw = match self {
            Self::Raw(text) => Some(text.as_str()),
            Self::Chat(_) | Self::Ids(_) => None,
        };
        self.messages().iter().map(|message| message.content.as_str()).chain(raw)
    }
}

/// A message of a prompt, in the form that chat templates take.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PromptMessage {
    /// `system`, `user`, `assistant` or `tool`.
    pub role: String,
    pub content: String,
    /// Images in the content, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<PromptImage>,
    #[serde(default)]
    pub reasoning: String,
    /// Calls as in OpenAI's messages.
    #[serde(default)]
    pub tool_calls: Vec<Value>,
    /// The call that a tool's message answers, and the tool's name.
    #[serde(default)]
    pub tool_call_id: Option<String>,
    #[serde(default)]
    pub name: Option<String>,
    /// Ids that models generated for `content`.
    #[serde(default)]
    pub logs: Vec<Ids>,
    /// Ids of the stored messages it consists of.
    #[serde(default)]
    pub ids: Vec<String>,
}

/// Token ids, valid for the vocabulary with that fingerprint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ids {
    /// Fingerprint of the vocabulary's model.
    pub fingerprint: String,
    pub ids: Vec<u32>,
}

/// Chat template options besides the messages, and the reasoning budget.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ChatOptions {
    /// A list of tools as in OpenAI's requests, or null.
    pub tools: Value,
    /// Variables for the template, such as `enable_thinking` and `reasoning_effort`.
    pub kwargs: Map<String, Value>,
    /// Maximum reasoning tokens. None: unlimited.
    pub reasoning_budget: Option<usize>,
    /// The source of a template in place of the model's own.
    pub template: Option<String>,
    /// How much of every image the model sees. None: as each image says.
    #[serde(default)]
    pub image_detail: Option<ImageDetail>,
    /// Uses the family's template if the model's is unusable.
    pub template_fallback: bool,
}
