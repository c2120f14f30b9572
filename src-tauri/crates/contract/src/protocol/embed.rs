//! Requests for text embeddings, and for scores of passages.

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

/// A text, or the tokens of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmbedInput {
    Text(String),
    /// With their special tokens.
    Ids(Vec<u32>),
}

/// A request for the embeddings of some texts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EmbedRequest {
    pub model: ModelRef,
    pub load: LoadSpec,
    #[serde(default)]
    pub kind: EmbedAs,
    pub texts: Vec<EmbedInput>,
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

/// A request to score how well each passage answers a query.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankRequest {
    pub model: ModelRef,
    pub load: LoadSpec,
    pub query: String,
    pub passages: Vec<String>,
}

/// Scores in the order of the passages; higher is better.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PassageScores {
    /// A cross-encoder's raw logits, or probabilities from 0 to 1.
    pub scores: Vec<f32>,
    /// Tokens of all pairs of query and passage.
    pub tokens: u32,
    /// Indices of passages whose end did not fit the model's context.
    #[serde(default)]
    pub cut: Vec<u32>,
    /// Notices for the user though nothing failed.
    #[serde(default)]
    pub notices: Vec<Error>,
}
