//! How often guesses come true, by what is known of them beforehand: how long the match is that a guess follows, or how
//! sure the draft model is of it.
//!
//! Counts with a fading memory. A guess counts whether it was checked in a draft or merely compared with what was
//! sampled anyway, so that a source that becomes good is noticed while nothing is drafted.

/// What is known of a guess before it is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DraftEvidence {
    /// The text before it equals the text's end for so many tokens; 0: a copy is expected back in its source.
    Match(usize),
    /// A draft model's own probability of its guess, in percent.
    Confidence(u8),
}

/// First lengths of the classes of matches, and how often the guesses after them come true until it is known better.
const MATCH_LENGTHS: [(usize, f32); 8] =
    [(0, 0.3), (1, 0.3), (2, 0.3), (3, 0.4), (4, 0.6), (6, 0.75), (10, 0.85), (20, 0.93)];

/// First percents of the classes of sureness, and the same.
const CONFIDENCES: [(usize, f32); 6] = [(0, 0.15), (20, 0.3), (40, 0.5), (60, 0.65), (80, 0.8), (95, 0.93)];

const N_CLASSES: usize = MATCH_LENGTHS.len() + CONFIDENCES.len();

/// What is believed beforehand weighs as much as so many guesses.
const PRIOR_WEIGHT: f32 = 4.0;

/// A guess weighs so much of the one after it: the last some thirty count.
const DECAY: f32 = 31.0 / 32.0;

/// No guess is better.
const MAX_ACCEPTANCE: f32 = 0.995;

/// AcceptanceStats of one text's guesses.
#[derive(Debug, Clone)]
pub struct AcceptanceStats {
    /// guesses that came true, and all of them (N_CLASSES)
    classes: [(f32, f32); N_CLASSES],
}

impl Default for AcceptanceStats {
    fn default() -> Self {
        let mut classes = [(0.0, PRIOR_WEIGHT); N_CLASSES];
        for (class, (_, stats)) in classes.iter_mut().zip(MATCH_LENGTHS.iter().chain(&CONFIDENCES)) {
            class.0 = stats * PRIOR_WEIGHT;
        }
        Self { classes }
    }
}

impl AcceptanceStats {
    /// The share of such guesses that come true.
    pub fn rate(&self, evidence: DraftEvidence) -> f32 {
        let (n_true, n) = self.classes[class(evidence)];
        (n_true / n).min(MAX_ACCEPTANCE)
    }

    /// A guess was compared with what came.
    pub fn observe(&mut self, evidence: DraftEvidence, came_true: bool) {
        let (n_true, n) = &mut self.classes[class(evidence)];
        *n = *n * DECAY + 1.0;
        *n_true = *n_true * DECAY + f32::from(u8::from(came_true));
    }
}

fn class(evidence: DraftEvidence) -> usize {
    let of =
        |classes: &[(usize, f32)], value: usize| classes.partition_point(|(first, _)| *first <= value) - 1;
    match evidence {
        DraftEvidence::Match(n) => of(&MATCH_LENGTHS, n),
        DraftEvidence::Confidence(percent) => MATCH_LENGTHS.len() + of(&CONFIDENCES, usize::from(percent)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odds_follow_what_is_seen_and_only_in_its_class() {
        let mut stats = AcceptanceStats::default();
        for evidence in [
            DraftEvidence::Match(3),
            DraftEvidence::Match(100),
            DraftEvidence::Confidence(0),
            DraftEvidence::Confidence(100),
        ] {
            let (before, other) = (stats.rate(evidence), stats.rate(DraftEvidence::Match(6)));
            (0..100).for_each(|_| stats.observe(evidence, true));
            assert!(stats.rate(evidence) > 0.95 && stats.rate(evidence) > before, "{evidence:?}");
            (0..40).for_each(|_| stats.observe(evidence, false));
            assert!(stats.rate(evidence) < 0.3, "{evidence:?}: {}", stats.rate(evidence));
            assert_eq!(stats.rate(DraftEvidence::Match(6)), other);
        }
        // 0.93 and 0.93: beliefs are probabilities
        assert!(
            (0..256).all(|n| (0.0..1.0).contains(&AcceptanceStats::default().rate(DraftEvidence::Match(n))))
        );
    }

    #[test]
    fn longer_matches_and_surer_models_are_believed_more() {
        let stats = AcceptanceStats::default();
        for evidence in [|n: usize| DraftEvidence::Match(n), |n: usize| DraftEvidence::Confidence(n as u8)] {
            let believed: Vec<f32> = (0..=100).map(|n| stats.rate(evidence(n))).collect();
            assert!(believed.is_sorted(), "{believed:?}");
        }
    }
}
