//! From logits to the next token: a chain of small stages and a seeded draw.
//!
//! The same seed, logits and history draw the same token on every platform: the arithmetic is plain IEEE
//! (`exp.rs` stands in for the system's own), ties go to the lower id. NaN is never drawn.

mod chain;
mod exp;
mod greedy;
mod min_p;
mod penalty;
mod rng;
mod temperature;
mod top_k;
mod top_p;

pub use chain::SamplerChain;
pub use rng::Rng;

use serde::{Deserialize, Serialize};

use crate::tokenizer::TokenId;

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

/// A token that may still be drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    pub id: TokenId,
    pub logit: f32,
}

/// Likelier first; among equals the lower id. Logits are numbers here.
pub(crate) fn by_likelihood(a: &Candidate, b: &Candidate) -> std::cmp::Ordering {
    b.logit.total_cmp(&a.logit).then(a.id.cmp(&b.id))
}

/// What may still be drawn, and what is known about its order.
#[derive(Debug)]
pub struct Candidates {
    pub items: Vec<Candidate>,
    /// The first `n_sorted` items are the likeliest, likeliest first.
    pub n_sorted: usize,
    /// Room for the weights of the draw.
    pub weights: Vec<f64>,
}

impl Candidates {
    pub(crate) fn with_capacity(n: usize) -> Self {
        Self { items: Vec::with_capacity(n), n_sorted: 0, weights: Vec::with_capacity(n) }
    }

    /// Brings the `n` likeliest to the front, in order.
    pub(crate) fn sort_first(&mut self, n: usize) {
        let n = n.min(self.items.len());
        if n <= self.n_sorted {
            return;
        }
        if n < self.items.len() {
            self.items.select_nth_unstable_by(n - 1, by_likelihood);
        }
        self.items[..n].sort_unstable_by(by_likelihood);
        self.n_sorted = n;
    }

    pub(crate) fn truncate(&mut self, n: usize) {
        self.items.truncate(n);
        self.n_sorted = self.n_sorted.min(n);
    }

    /// The largest logit; None where nothing is left.
    pub(crate) fn largest(&self) -> Option<f32> {
        match self.n_sorted {
            0 => self.items.iter().map(|c| c.logit).reduce(f32::max),
            _ => self.items.first().map(|c| c.logit),
        }
    }
}

/// One stage of the chain. `history` is what stands before the token, oldest first.
pub trait SamplerStage: std::fmt::Debug + Send {
    fn apply(&mut self, candidates: &mut Candidates, history: &[TokenId]);
}
