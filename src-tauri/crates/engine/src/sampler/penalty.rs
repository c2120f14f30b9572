//! Repetition penalty: makes recent tokens less likely.

use super::{Candidates, SamplerStage};
use crate::tokenizer::TokenId;

/// Divides a positive logit by `penalty` and multiplies a negative one, once per distinct token.
#[derive(Debug)]
pub struct RepeatPenaltyStage {
    penalty: f32,
    last_n: usize,
    /// The call that saw a token last. (n_vocab)
    seen_at: Vec<u32>,
    call: u32,
}

impl RepeatPenaltyStage {
    pub fn new(penalty: f32, last_n: usize, n_vocab: usize) -> Self {
        Self { penalty, last_n, seen_at: vec![0; n_vocab], call: 0 }
    }
}

impl SamplerStage for RepeatPenaltyStage {
    fn apply(&mut self, candidates: &mut Candidates, history: &[TokenId]) {
        self.call = self.call.wrapping_add(1);
        if self.call == 0 {
            self.seen_at.fill(0);
            self.call = 1;
        }
        for &id in &history[history.len().saturating_sub(self.last_n)..] {
            if let Some(seen) = self.seen_at.get_mut(id as usize) {
                *seen = self.call;
            }
        }
        for candidate in &mut candidates.items {
            if self.seen_at.get(candidate.id as usize) == Some(&self.call) {
                let logit = &mut candidate.logit;
                *logit = if *logit > 0.0 { *logit / self.penalty } else { *logit * self.penalty };
            }
        }
        candidates.n_sorted = 0;
    }
}
