//! XTC ("exclude top choices"): sometimes leaves out all likely tokens except the least likely of them.
//!
//! By p-e-w (text-generation-webui, pull request 6335). Its random number follows from the seed and the position, so
//! that a draw that is taken back or skipped changes nothing.

use serde::{Deserialize, Serialize};

use super::exp::exp;
use super::{Candidates, Rng, SamplerStage};
use crate::tokenizer::TokenId;

/// Above it, no two tokens can be likely.
const MAX_THRESHOLD: f32 = 0.5;

/// Parameters of XTC.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct XtcSettings {
    /// How often it acts, from 0 to 1. 0: off.
    pub probability: f32,
    /// Probability from which a token is likely.
    pub threshold: f32,
}

impl Default for XtcSettings {
    fn default() -> Self {
        Self { probability: 0.0, threshold: 0.1 }
    }
}

impl XtcSettings {
    /// Whether it can change a draw.
    pub fn is_on(&self) -> bool {
        self.probability > 0.0 && (0.0..=MAX_THRESHOLD).contains(&self.threshold)
    }
}

/// Leaves out the top choices.
#[derive(Debug)]
pub struct XtcStage {
    settings: XtcSettings,
    seed: u64,
}

impl XtcStage {
    pub fn new(settings: XtcSettings, seed: u64) -> Self {
        Self { settings, seed }
    }

    /// Whether it acts after this number of tokens.
    fn acts_at(&self, n_history: usize) -> bool {
        // far from the seeds of the draw
        const APART: u64 = 0x5851_f42d_4c95_7f2d;
        let seed = (self.seed ^ APART).wrapping_add((n_history as u64).wrapping_mul(APART));
        Rng::new(seed).next_f64() < f64::from(self.settings.probability)
    }
}

impl SamplerStage for XtcStage {
    fn apply(&mut self, candidates: &mut Candidates, history: &[TokenId]) {
        if !self.acts_at(history.len()) {
            return;
        }
        let Some(largest) = candidates.largest() else { return };
        let weight = |logit: f32| exp(f64::from(logit) - f64::from(largest));
        let total: f64 = candidates.items.iter().map(|candidate| weight(candidate.logit)).sum();
        let threshold = f64::from(self.settings.threshold) * total;
        let n_likely = candidates.items.iter().filter(|it| weight(it.logit) >= threshold).count();
        if n_likely < 2 {
            return;
        }
        candidates.sort_first(n_likely);
        candidates.items.drain(..n_likely - 1);
        candidates.n_sorted -= n_likely - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::Candidate;

    /// The tokens that are left of probabilities.
    fn left(settings: XtcSettings, probabilities: &[f32], n_history: usize) -> Vec<TokenId> {
        let mut candidates = Candidates::with_capacity(probabilities.len());
        let candidate = |(id, p): (TokenId, &f32)| Candidate { id, logit: p.ln() };
        candidates.items.extend((0..).zip(probabilities).map(candidate));
        XtcStage::new(settings, 7).apply(&mut candidates, &vec![0; n_history]);
        assert!(candidates.n_sorted <= candidates.items.len());
        let mut ids: Vec<TokenId> = candidates.items.iter().map(|candidate| candidate.id).collect();
        ids.sort_unstable();
        ids
    }

    #[test]
    fn only_the_least_likely_of_the_likely_ones_stays() {
        let always = |threshold| XtcSettings { probability: 1.0, threshold };
        let check = |threshold, probabilities: &[f32], expected: &[TokenId]| {
            assert_eq!(left(always(threshold), probabilities, 3), expected, "{threshold} {probabilities:?}");
        };
        check(0.1, &[0.05, 0.5, 0.3, 0.15], &[0, 3]);
        check(0.2, &[0.05, 0.5, 0.3, 0.15], &[0, 2, 3]);
        check(0.4, &[0.05, 0.5, 0.3, 0.15], &[0, 1, 2, 3]);
        check(0.0, &[0.05, 0.5, 0.3, 0.15], &[0]);
        check(0.1, &[1.0], &[0]);
        check(0.1, &[], &[]);
    }

    #[test]
    fn it_acts_as_often_as_is_said_and_the_same_at_the_same_place() {
        let settings = XtcSettings { probability: 0.3, threshold: 0.1 };
        let acts = |n: usize| left(settings, &[0.6, 0.4], n).len() == 1;
        let n_acts = (0..5000).filter(|n| acts(*n)).count();
        assert!((n_acts as f64 / 5000.0 - 0.3).abs() < 0.02, "{n_acts}");
        assert!((0..50).all(|n| acts(n) == acts(n)));
        assert!(!XtcSettings::default().is_on() && settings.is_on());
        assert!(!XtcSettings { threshold: 0.6, ..settings }.is_on());
        assert!(!XtcSettings { threshold: f32::NAN, ..settings }.is_on());
    }
}
