//! Temperature: divides the logits. Below 1 likely tokens become more likely, above 1 less so.

use super::{Candidates, SamplerStage};
use crate::tokenizer::TokenId;

#[derive(Debug)]
pub struct TemperatureStage {
    pub temperature: f32,
}

impl SamplerStage for TemperatureStage {
    fn apply(&mut self, candidates: &mut Candidates, _history: &[TokenId]) {
        // Relative to the largest, so that a tiny temperature overflows to -∞ at worst.
        let Some(largest) = candidates.largest() else { return };
        for candidate in &mut candidates.items {
            candidate.logit = (candidate.logit - largest) / self.temperature;
        }
    }
}
