//! Acceptance rates of drafted tokens, by the evidence for them: match length, or the draft model's confidence.
//!
//! Counts decay. A draft is counted whether it was checked or merely compared with what was sampled, so a source that
//! improves is noticed even while nothing is drafted.

/// Evidence for a drafted token before it is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DraftEvidence {
    /// Length of the match it follows. 0: a copy is expected to resume.
    Match(usize),
    /// The draft model's probability of the token, in percent.
    Confidence(u8),
}

/// Match length from which each class begins, and its prior acceptance rate.
const MATCH_LENGTHS: [(usize, f32); 8] =
    [(0, 0.3), (1, 0.3), (2, 0.3), (3, 0.4), (4, 0.6), (6, 0.75), (10, 0.85), (20, 0.93)];

/// Confidence (percent) from which each class begins, and its prior acceptance rate.
const CONFIDENCES: [(usize, f32); 6] = [(0, 0.15), (20, 0.3), (40, 0.5), (60, 0.65), (80, 0.8), (95, 0.93)];

const N_CLASSES: usize = MATCH_LENGTHS.len() + CONFIDENCES.len();

/// Weight of the prior, as a number of observations.
const PRIOR_WEIGHT: f32 = 4.0;

/// Decay per observation; half-life about 22 observations.
const DECAY: f32 = 31.0 / 32.0;

/// Upper bound of any acceptance rate.
const MAX_ACCEPTANCE: f32 = 0.995;

/// Acceptance statistics of one text's drafts.
#[derive(Debug, Clone)]
pub struct AcceptanceStats {
    /// Accepted tokens and all observed ones. (N_CLASSES)
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
    /// Returns the acceptance rate for this evidence.
    pub fn rate(&self, evidence: DraftEvidence) -> f32 {
        let (n_true, n) = self.classes[class(evidence)];
        (n_true / n).min(MAX_ACCEPTANCE)
    }

    /// Records whether a drafted token came true.
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
    fn rates_follow_observations_of_their_class() {
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
        // 0.93 and 0.93: priors are probabilities.
        assert!(
            (0..256).all(|n| (0.0..1.0).contains(&AcceptanceStats::default().rate(DraftEvidence::Match(n))))
        );
    }

    #[test]
    fn longer_matches_and_higher_confidence_have_higher_rates() {
        let stats = AcceptanceStats::default();
        for evidence in [|n: usize| DraftEvidence::Match(n), |n: usize| DraftEvidence::Confidence(n as u8)] {
            let believed: Vec<f32> = (0..=100).map(|n| stats.rate(evidence(n))).collect();
            assert!(believed.is_sorted(), "{believed:?}");
        }
    }
}
