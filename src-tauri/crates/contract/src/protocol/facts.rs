//! What a turn of a loaded model took.

use serde::{Deserialize, Serialize};

use super::Kv;

/// What a turn took, where it had the model to itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunFacts {
    /// Library id.
    pub model: String,
    pub kv: Kv,
    pub generated: u32,
    /// Prompt and answer.
    pub tokens: u32,
    pub tok_s: f64,
    /// What the process grew by since before the model was loaded. None: that would count others too.
    pub memory_bytes: Option<u64>,
}
