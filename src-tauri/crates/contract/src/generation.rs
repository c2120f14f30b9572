//! How tokens are sampled and contexts are kept: the engine's options as plain data, which
//! `inference` translates.

use serde::{Deserialize, Serialize};

/// How the next token is chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sampling {
    /// 0 always takes the most likely token.
    pub temperature: f32,
    /// Only the `top_k` most likely tokens; 0 turns it off.
    pub top_k: u32,
    /// Only the most likely tokens that together have this probability; 1 turns it off.
    pub top_p: f32,
    /// Only tokens with at least this share of the most likely token's probability; 0 turns it off.
    pub min_p: f32,
    /// Above 1, tokens of the last `repeat_last_n` become less likely; 1 turns it off.
    pub repeat_penalty: f32,
    /// Tokens that `repeat_penalty` looks back over.
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

/// Where speculative decoding takes its drafts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DraftSource {
    /// Earlier occurrences in the text itself.
    Lookup,
    /// The draft model; without one there are no drafts.
    Model,
}

/// How many drafted tokens are verified in one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DraftLength {
    /// As many as pay off, up to this number.
    Paying(usize),
    /// Always this number where there are drafts; for tests and measurements.
    Always(usize),
}

impl DraftLength {
    /// The longest draft where the user names none.
    pub const DEFAULT_TOKENS: usize = 32;
}

/// How a request speculates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Speculation {
    /// Source of the drafts.
    pub guesses: DraftSource,
    /// Tokens of one draft.
    pub length: DraftLength,
}

/// When old positions of a context are requantised to fewer bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KvAging {
    /// Never: contexts are exact.
    #[default]
    Off,
    /// When contexts would otherwise have to leave memory.
    Pressure,
    /// This many tokens after them.
    After(usize),
}

impl KvAging {
    /// The newest tokens that always stay exact.
    pub const MIN_EXACT_TOKENS: usize = 256;

    /// Distance of `After` where the user gives none: half of the context that models usually get.
    pub const DEFAULT_AFTER_TOKENS: usize = 4096;
}

/// How positions are scaled beyond the trained context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RopeScaling {
    /// YaRN (Peng et al. 2023, arXiv 2309.00071), in percent of the trained context.
    Yarn {
        /// 200 doubles the context.
        percent: u32,
    },
}
