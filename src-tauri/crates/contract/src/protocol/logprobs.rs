//! Inspecting an answer token by token.

use serde::{Deserialize, Serialize};

use super::{ChatOptions, Ids, LoadSpec, ModelRef, PromptMessage};
pub use crate::types::{TokenAlternatives, TokenShare};

/// The probabilities that an answer reports with each token of its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbabilityReport {
    /// Number of alternatives; 0: the token's own probability alone.
    pub n_alternatives: u32,
    pub stage: ProbabilityStage,
}

/// Where in sampling probabilities are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbabilityStage {
    /// The model's own.
    BeforeSampling,
    /// Those that the token was drawn by: removed candidates have none.
    AfterSampling,
}

impl ProbabilityReport {
    /// The model's own probabilities.
    pub fn before_sampling(n_alternatives: u32) -> Self {
        Self { n_alternatives, stage: ProbabilityStage::BeforeSampling }
    }
}

/// A conversation up to an answer, and the answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LogprobsRequest {
    pub model: ModelRef,
    pub load: LoadSpec,
    pub messages: Vec<PromptMessage>,
    pub chat: ChatOptions,
    pub had: Ids,
}
