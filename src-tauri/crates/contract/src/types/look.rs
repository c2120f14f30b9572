//! Answers looked at token by token.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A token and how likely the model found it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct TokenShare {
    pub id: u32,
    pub text: String,
    /// From 0 to 1, before temperature and everything else that chooses.
    pub probability: f32,
}

/// A token of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct Looked {
    pub token: TokenShare,
    /// The likeliest in its place, likeliest first; it may be one of them.
    pub others: Vec<TokenShare>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct PickArgs {
    /// An answer.
    pub message: String,
    /// Which of its tokens, counted from 0.
    pub index: u32,
    /// The token that stands there instead.
    pub token: u32,
}
