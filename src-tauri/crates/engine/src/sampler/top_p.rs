//! Top-p: keeps the most likely tokens that together reach the probability `p`.

use super::exp::exp;
use super::{Candidates, SamplerStage};
use crate::tokenizer::TokenId;

#[derive(Debug)]
pub struct TopPStage {
    /// Between 0 and 1. At least one token always stays.
    pub p: f32,
}

/// Sorts in growing steps: a whole vocabulary rarely needs sorting.
const FIRST_STEP: usize = 64;

impl SamplerStage for TopPStage {
    fn apply(&mut self, candidates: &mut Candidates, _history: &[TokenId]) {
        let Some(largest) = candidates.largest() else { return };
        let weight = |logit: f32| exp(f64::from(logit) - f64::from(largest));
        let total: f64 = candidates.items.iter().map(|c| weight(c.logit)).sum();
        let wanted = total * f64::from(self.p);
        let (mut sum, mut n, mut step) = (0.0, 0, FIRST_STEP);
        while n < candidates.items.len() {
            candidates.sort_first(step);
            while n < candidates.n_sorted {
                sum += weight(candidates.items[n].logit);
                n += 1;
                if sum >= wanted {
                    candidates.truncate(n);
                    return;
                }
            }
            step = step.saturating_mul(8);
        }
    }
}
