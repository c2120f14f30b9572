//! Shortening a conversation: what to leave out, and the summaries in its place.

use serde::{Deserialize, Serialize};

use super::{PromptMessage, Strategy};

/// A conversation's strategy and its compactions so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compression {
    pub strategy: Strategy,
    /// The message up to which it is hidden from the model.
    pub compacted_until: Option<String>,
    pub summaries: Vec<SummaryText>,
}

/// A summary of the messages from `first` to `until`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummaryText {
    pub first: String,
    pub until: String,
    pub level: u32,
    pub text: String,
}

/// The messages left out of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactedRange {
    pub strategy: Strategy,
    pub first: String,
    pub until: String,
    /// Number of messages; 0: none in full.
    pub messages: u32,
    /// The summary that replaces them.
    pub summary: Option<String>,
    pub tokens_before: u32,
    pub tokens_after: u32,
    pub limit: u32,
}

/// A summary to make.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SummaryTask {
    /// The prompt that requests it.
    pub messages: Vec<PromptMessage>,
    pub first: String,
    pub until: String,
    pub level: u32,
    pub n_tokens: usize,
}
