//! Sampling: from logits to the next token by a chain of stages and a seeded draw.
//!
//! Equal seed, logits and history draw the same token on every platform: plain IEEE arithmetic (`exp.rs` replaces the
//! system's), ties go to the lower id. NaN is never drawn.

mod chain;
mod dry;
mod exp;
mod frequency;
mod greedy;
mod logit_bias;
mod min_p;
mod penalty;
mod rng;
mod temperature;
mod top_k;
mod top_p;
mod xtc;

pub use chain::SamplerChain;
pub use dry::{DrySettings, SequenceBreakers};
pub use rng::Rng;
pub use xtc::XtcSettings;

use serde::{Deserialize, Serialize};

use crate::tokenizer::TokenId;

/// Sampling parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sampling {
    /// 0 always takes the most likely token.
    pub temperature: f32,
    /// Keeps only the `top_k` most likely tokens. 0: off.
    pub top_k: u32,
    /// Keeps only the most likely tokens with this total probability. 1: off.
    pub top_p: f32,
    /// Keeps only tokens with at least this share of the highest probability. 0: off.
    pub min_p: f32,
    /// Above 1, tokens of the last `repeat_last_n` become less likely. 1: off.
    pub repeat_penalty: f32,
    /// Number of recent tokens that `repeat_penalty` considers.
    pub repeat_last_n: u32,
    /// Subtracted once from the logit of every generated token. 0: off.
    pub presence_penalty: f32,
    /// Subtracted from a token's logit for each time that it was generated. 0: off.
    pub frequency_penalty: f32,
    /// Makes tokens less likely that would go on repeating a passage.
    pub dry: DrySettings,
    /// Sometimes leaves out the most likely tokens.
    pub xtc: XtcSettings,
    /// Added to the logits before any other stage.
    pub logit_bias: Vec<LogitBias>,
    /// Equal seeds draw equal tokens. `None`: a new seed each time.
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
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            dry: DrySettings::default(),
            xtc: XtcSettings::default(),
            logit_bias: Vec::new(),
            seed: None,
        }
    }
}

/// A change of one token's logit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LogitBias {
    /// The token.
    pub token: TokenId,
    /// Added to its logit. -100 or less: the token is never drawn.
    pub bias: f32,
}

/// A token that may still be drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// The token.
    pub id: TokenId,
    /// Its logit, changed by earlier stages.
    pub logit: f32,
}

/// Orders the more likely first, ties by lower id. Logits must be numbers.
pub(crate) fn by_likelihood(a: &Candidate, b: &Candidate) -> std::cmp::Ordering {
    b.logit.total_cmp(&a.logit).then(a.id.cmp(&b.id))
}

/// Tokens that may still be drawn, and how far they are sorted.
#[derive(Debug)]
pub struct Candidates {
    /// The candidates that remain.
    pub items: Vec<Candidate>,
    /// The first `n_sorted` items are the most likely ones, in order.
    pub n_sorted: usize,
    /// Buffer for the weights of the draw.
    pub weights: Vec<f64>,
}

impl Candidates {
    pub(crate) fn with_capacity(n: usize) -> Self {
        Self { items: Vec::with_capacity(n), n_sorted: 0, weights: Vec::with_capacity(n) }
    }

    /// Moves the `n` most likely to the front, in order.
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

    /// Returns the largest logit, if anything is left.
    pub(crate) fn largest(&self) -> Option<f32> {
        match self.n_sorted {
            0 => self.items.iter().map(|c| c.logit).reduce(f32::max),
            _ => self.items.first().map(|c| c.logit),
        }
    }
}

/// One stage of the chain. `history` holds the tokens before, oldest first.
pub trait SamplerStage: std::fmt::Debug + Send {
    /// Removes or reweights candidates. `history` holds prompt and reply so far.
    fn apply(&mut self, candidates: &mut Candidates, history: &[TokenId]);
}
