//! Prompts and texts that are counted, not answered.

use serde::{Deserialize, Serialize};

use super::{ChatOptions, Compression, LoadSpec, ModelRef, PromptMessage};

/// A conversation with a draft at its end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CountRequest {
    pub model: ModelRef,
    pub load: LoadSpec,
    /// The draft's conversation. None: a new one.
    pub conversation: Option<String>,
    pub messages: Vec<PromptMessage>,
    pub chat: ChatOptions,
    /// Its compaction so far.
    #[serde(default)]
    pub compression: Option<Compression>,
    /// Texts to count separately.
    #[serde(default)]
    pub texts: Vec<String>,
}

/// The token counts of a prompt and its texts, with the model's limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenCounts {
    pub tokens: u32,
    pub context_limit: u32,
    /// The model's template knows `enable_thinking`.
    pub can_think_or_not: bool,
    /// The template knows `reasoning_effort`.
    #[serde(default)]
    pub has_efforts: bool,
    pub is_about: bool,
    /// Of `texts`, in order.
    #[serde(default)]
    pub texts: Vec<u32>,
}
