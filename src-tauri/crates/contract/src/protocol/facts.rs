//! The resource use of a turn on a loaded model.

use serde::{Deserialize, Serialize};

use super::Kv;

/// The resource use of a turn that had the model to itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunFacts {
    /// Library id.
    pub model: String,
    pub kv: Kv,
    pub generated: u32,
    /// Prompt and answer.
    pub tokens: u32,
    pub tok_s: f64,
    /// Growth of the process since before the model was loaded. None: other models would count too.
    pub memory_bytes: Option<u64>,
}
