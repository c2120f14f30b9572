//! Keeps the `k` likeliest tokens.

use super::{Candidates, Sampler};
use crate::tokenizer::TokenId;

#[derive(Debug)]
pub struct TopK {
    /// At least 1.
    pub k: usize,
}

impl Sampler for TopK {
    fn apply(&mut self, candidates: &mut Candidates, _history: &[TokenId]) {
        candidates.sort_first(self.k);
        candidates.truncate(self.k);
    }
}
