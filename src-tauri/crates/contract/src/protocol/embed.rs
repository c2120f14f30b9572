//! Requests for text embeddings.

use serde::{Deserialize, Serialize};

use super::{LoadSpec, ModelRef};
use crate::Error;

/// The role of a text, for embedding models that distinguish them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmbedAs {
    /// Without a prefix.
    #[default]
    Text,
    /// A search query.
    Question,
    /// A text to be searched.
    Passage,
}

/// A request for the embeddings of some texts.
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
    /// Tokens of all texts, including their special tokens.
    pub tokens: u32,
    /// Notices for the user though nothing failed.
    #[serde(default)]
    pub notices: Vec<Error>,
}
