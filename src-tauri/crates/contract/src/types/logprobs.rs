//! Answers inspected token by token.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A token and how likely the model found it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct TokenShare {
    pub id: u32,
    pub text: String,
    /// From 0 to 1, before temperature and other sampling.
    pub probability: f32,
    /// Natural logarithm of the probability, which may be too small for `probability`.
    pub logprob: f32,
    /// The token's own bytes, which may be a part of a character. Only while an answer is generated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(optional, as = "Option<Vec<u8>>")]
    pub bytes: Vec<u8>,
}

/// A token of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct TokenAlternatives {
    pub token: TokenShare,
    /// The most likely candidates, best first; may include the token.
    pub others: Vec<TokenShare>,
}

/// Continues an answer from an alternative token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct PickArgs {
    /// An answer.
    pub message: String,
    /// Which of its tokens, counted from 0.
    pub index: u32,
    /// The replacement token.
    pub token: u32,
}
