//! What is said of a model file that is not loaded, and of what a turn of a loaded one took.

use engine::capabilities::ModelCapabilities;
use engine::memory_estimate::MemoryEstimate;
use serde::{Deserialize, Serialize};

use super::Kv;

/// What a model file is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// As the file calls itself, or its file name.
    pub name: String,
    pub bytes: u64,
    pub architecture: String,
    pub parameters: u64,
    /// The dtype that most weights have.
    pub dtype: String,
    pub context_length: u32,
    /// Files that hold weights, and their bytes.
    pub files: u32,
    pub disk_bytes: u64,
    /// Of the contents.
    pub fingerprint: String,
    /// What it takes in memory.
    pub sizes: MemoryEstimate,
    pub skills: ModelCapabilities,
}

/// What a turn took, where it had the model to itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ran {
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
