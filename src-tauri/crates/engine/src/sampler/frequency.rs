//! Presence and frequency penalty: makes tokens of the reply less likely, by how often they occur in it.

use super::{Candidates, SamplerStage};
use crate::tokenizer::TokenId;

/// Subtracts `presence` once and `frequency` per occurrence from the logits of generated tokens.
#[derive(Debug)]
pub struct FrequencyPenaltyStage {
    presence: f32,
    frequency: f32,
    /// Occurrences of each token in `history[n_prompt..n_counted]`. (n_vocab)
    counts: Vec<u32>,
    n_prompt: usize,
    n_counted: usize,
}

impl FrequencyPenaltyStage {
    /// The reply begins after `n_prompt` tokens of the history.
    pub fn new((presence, frequency): (f32, f32), n_prompt: usize, n_vocab: usize) -> Self {
        Self { presence, frequency, counts: vec![0; n_vocab], n_prompt, n_counted: n_prompt }
    }
}

impl SamplerStage for FrequencyPenaltyStage {
    fn apply(&mut self, candidates: &mut Candidates, history: &[TokenId]) {
        if history.len() < self.n_counted {
            self.counts.fill(0);
            self.n_counted = self.n_prompt;
        }
        for &id in history.get(self.n_counted..).unwrap_or_default() {
            if let Some(count) = self.counts.get_mut(id as usize) {
                *count += 1;
            }
        }
        self.n_counted = self.n_counted.max(history.len());
        for candidate in &mut candidates.items {
            let count = self.counts.get(candidate.id as usize).copied().unwrap_or(0);
            if count > 0 {
                candidate.logit -= self.presence + self.frequency * count as f32;
            }
        }
        candidates.n_sorted = 0;
    }
}
