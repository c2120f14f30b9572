//! From logits to the next token: a chain of small stages and a seeded draw.

mod chain;

pub use chain::Chain;

use serde::{Deserialize, Serialize};

/// How the next token is chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sampling {
    /// 0 always takes the likeliest token.
    pub temperature: f32,
    /// Only the `top_k` likeliest tokens; 0 turns it off.
    pub top_k: u32,
    /// Only the likeliest tokens that together have this probability; 1 turns it off.
    pub top_p: f32,
    /// Only tokens with at least this share of the likeliest token's probability; 0 turns it off.
    pub min_p: f32,
    /// Above 1, tokens of the last `repeat_last_n` become less likely; 1 turns it off.
    pub repeat_penalty: f32,
    pub repeat_last_n: u32,
    /// The same seed draws the same tokens. None: another seed each time.
    pub seed: Option<u64>,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 0.7,
            top_k: 40,
            top_p: 0.95,
            min_p: 0.05,
            repeat_penalty: 1.0,
            repeat_last_n: 64,
            seed: None,
        }
    }
}
