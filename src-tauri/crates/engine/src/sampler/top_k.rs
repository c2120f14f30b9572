//! Top-k: keeps the `k` most likely tokens.

use super::{Candidates, SamplerStage};
use crate::tokenizer::TokenId;

#[derive(Debug)]
pub struct TopKStage {
    /// At least 1.
    pub k: usize,
}

impl SamplerStage for TopKStage {
    fn apply(&mut self, candidates: &mut Candidates, _history: &[TokenId]) {
        candidates.sort_first(self.k);
        candidates.truncate(self.k);
    }
}
