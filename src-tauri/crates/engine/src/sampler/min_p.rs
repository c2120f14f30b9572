//! Min-p: keeps tokens with at least the share `p` of the highest probability.

use super::exp::exp;
use super::{Candidates, SamplerStage};
use crate::tokenizer::TokenId;

#[derive(Debug)]
pub struct MinPStage {
    /// Between 0 and 1. The most likely token always stays.
    pub p: f32,
}

impl SamplerStage for MinPStage {
    fn apply(&mut self, candidates: &mut Candidates, _history: &[TokenId]) {
        let Some(largest) = candidates.largest() else { return };
        let p = f64::from(self.p.min(1.0));
        let stays = |logit: f32| exp(f64::from(logit) - f64::from(largest)) >= p;
        if candidates.n_sorted == candidates.items.len() {
            let n = candidates.items.partition_point(|c| stays(c.logit));
            candidates.truncate(n);
        } else {
            candidates.items.retain(|c| stays(c.logit));
            candidates.n_sorted = candidates.n_sorted.min(candidates.items.len());
        }
    }
}
