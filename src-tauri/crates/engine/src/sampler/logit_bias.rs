//! Logit bias: makes single tokens more or less likely, or bans them.

use super::{Candidates, LogitBias, SamplerStage};
use crate::tokenizer::TokenId;

/// A bias of this or less bans its token, as in OpenAI's interface.
const BAN_BIAS: f32 = -100.0;

/// Adds a bias to the logits of some tokens.
#[derive(Debug)]
pub struct LogitBiasStage {
    /// Sorted by token, one entry each.
    biases: Vec<LogitBias>,
}

impl LogitBiasStage {
    /// Several biases of one token add up. Those that are no numbers are ignored.
    pub fn new(biases: &[LogitBias]) -> Self {
        let mut sorted: Vec<LogitBias> = biases.iter().filter(|it| !it.bias.is_nan()).copied().collect();
        sorted.sort_by_key(|it| it.token);
        let mut merged: Vec<LogitBias> = Vec::with_capacity(sorted.len());
        for LogitBias { token, bias } in sorted {
            match merged.last_mut().filter(|last| last.token == token) {
                Some(last) => last.bias += bias,
                None => merged.push(LogitBias { token, bias }),
            }
        }
        merged.retain(|it| it.bias != 0.0 && !it.bias.is_nan());
        Self { biases: merged }
    }

    /// Returns how many tokens it makes less likely. `None`: it makes some more likely.
    pub fn n_lowered(&self) -> Option<usize> {
        let raises = self.biases.iter().any(|it| it.bias > 0.0);
        (!raises).then_some(self.biases.len())
    }

    fn bias(&self, token: TokenId) -> Option<f32> {
        let at = self.biases.binary_search_by_key(&token, |it| it.token).ok()?;
        Some(self.biases[at].bias)
    }
}

impl SamplerStage for LogitBiasStage {
    fn apply(&mut self, candidates: &mut Candidates, _history: &[TokenId]) {
        if self.biases.is_empty() {
            return;
        }
        candidates.items.retain_mut(|candidate| match self.bias(candidate.id) {
            Some(bias) if bias <= BAN_BIAS => false,
            Some(bias) => {
                candidate.logit = (candidate.logit + bias).clamp(f32::MIN, f32::MAX);
                true
            }
            None => true,
        });
        candidates.n_sorted = 0;
    }
}
