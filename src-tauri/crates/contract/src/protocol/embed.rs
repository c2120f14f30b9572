//! Texts that become vectors.

use serde::{Deserialize, Serialize};

use super::{LoadSpec, ModelRef};
use crate::Error;

/// What a text is, for models that are told so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmbedAs {
    /// Nothing is put before it.
    #[default]
    Text,
    /// What is looked for.
    Question,
    /// Where it may be found.
    Passage,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EmbedRequest {
    pub model: ModelRef,
    pub load: LoadSpec,
    #[serde(default)]
    pub kind: EmbedAs,
    pub texts: Vec<String>,
}

/// Vectors of length 1, in the order of the texts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EmbeddingBatch {
    pub vectors: Vec<Vec<f32>>,
    /// Tokens of all texts, with what goes around each.
    pub tokens: u32,
    /// What the user should know though nothing failed.
    #[serde(default)]
    pub notices: Vec<Error>,
}
