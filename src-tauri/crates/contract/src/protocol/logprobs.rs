//! Inspecting an answer token by token.

use serde::{Deserialize, Serialize};

use super::{ChatOptions, Ids, LoadSpec, ModelRef, PromptMessage};
pub use crate::types::{TokenAlternatives, TokenShare};

/// A conversation up to an answer, and the answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LogprobsRequest {
    pub model: ModelRef,
    pub load: LoadSpec,
    pub messages: Vec<PromptMessage>,
    pub chat: ChatOptions,
    pub had: Ids,
}
