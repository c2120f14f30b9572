//! Prompts and texts that are counted, not answered.

use serde::{Deserialize, Serialize};

use super::{ChatOptions, Compression, LoadSpec, ModelRef, PromptMessage};

/// A conversation with a draft at its end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CountRequest {
    pub model: ModelRef,
    pub load: LoadSpec,
    /// Whose draft it is; None: a new conversation's.
    pub conversation: Option<String>,
    pub messages: Vec<PromptMessage>,
    pub chat: ChatOptions,
    /// What has been left out of it.
    #[serde(default)]
    pub compression: Option<Compression>,
    /// Counted each by itself.
    #[serde(default)]
    pub texts: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenCounts {
    pub tokens: u32,
    pub context_limit: u32,
    /// The model's template knows `enable_thinking`.
    pub can_think_or_not: bool,
    /// It knows `reasoning_effort`.
    #[serde(default)]
    pub has_efforts: bool,
    pub is_about: bool,
    /// Of `texts`, in order.
    #[serde(default)]
    pub texts: Vec<u32>,
}
