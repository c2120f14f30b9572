//! Draft plan: how many drafted tokens of each text the next run checks.
//!
//! Takes the most likely tokens first, as many as maximize expected tokens per cost. If drafts seldom come true,
//! none.

use super::costs::RunCosts;

/// A drafted token that may be checked. Earlier tokens of its text are more likely, so they are chosen first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DraftCandidate {
    /// Index of its text.
    pub text: usize,
    /// Probability that it and all before it are accepted.
    pub chance: f32,
}

/// The run without drafts.
#[derive(Debug, Clone, Copy)]
pub struct UndraftedRun {
    /// Rows of all texts.
    pub n_rows: usize,
    /// Texts that get a token in any case.
    pub n_texts: usize,
    /// Rows left for drafts.
    pub n_free: usize,
    /// Accepted tokens must be recomputed if the rest of a draft is rejected.
    pub recomputes: bool,
}

/// Expectation for the draft of one text.
#[derive(Debug, Clone, Copy)]
struct ExpectedDraft {
    /// Probability that all of it is accepted.
    chance: f32,
    /// Expected tokens.
    n_tokens: f32,
}

/// Reused buffers of the choice.
#[derive(Debug, Default)]
pub struct DraftPlan {
    pub candidates: Vec<DraftCandidate>,
    drafted: Vec<ExpectedDraft>,
    /// Drafted tokens to check. (texts)
    pub lengths: Vec<usize>,
}

impl DraftPlan {
    /// Clears the candidates, for `n_texts` texts.
    pub fn clear(&mut self, n_texts: usize) {
        self.candidates.clear();
        self.lengths.clear();
        self.lengths.resize(n_texts, 0);
    }

    /// Fills `lengths` with the candidates that pay. Certain ones are always checked.
    pub fn choose(&mut self, base: UndraftedRun, costs: &RunCosts) {
        let Self { candidates, drafted, lengths } = self;
        drafted.clear();
        drafted.resize(lengths.len(), ExpectedDraft { chance: 1.0, n_tokens: 1.0 });
        candidates.sort_unstable_by(|a, b| b.chance.total_cmp(&a.chance).then(a.text.cmp(&b.text)));
        let row = costs.cost(2) - costs.cost(1);
        let again = |text: &ExpectedDraft| match base.recomputes {
            true => (1.0 - text.chance) * text.n_tokens * row,
            false => 0.0,
        };
        let (mut n_tokens, mut n_again) = (base.n_texts as f32, 0.0);
        let (mut best, mut n_chosen) = (n_tokens / costs.cost(base.n_rows), 0);
        for (n, candidate) in (1..=base.n_free).zip(candidates.iter()) {
            let text = &mut drafted[candidate.text];
            n_again -= again(text);
            text.chance = candidate.chance;
            text.n_tokens += candidate.chance;
            n_tokens += candidate.chance;
            n_again += again(text);
            let speed = n_tokens / (costs.cost(base.n_rows + n) + n_again);
            if speed > best * WORTH || candidate.chance >= 1.0 {
                (best, n_chosen) = (speed, n);
            }
        }
        for candidate in &candidates[..n_chosen] {
            lengths[candidate.text] += 1;
        }
    }
}

/// A longer draft must promise this speedup: estimates are rough, and a plain step is certain.
const WORTH: f32 = 1.02;

#[cfg(test)]
mod tests {
    use super::*;

    /// Lengths chosen for texts whose tokens are accepted at the given rates.
    fn check(odds: &[f32], n_most: usize, recomputes: bool, expected: impl Fn(&[usize]) -> bool) {
        let mut plan = DraftPlan::default();
        plan.clear(odds.len());
        for (text, p) in odds.iter().enumerate() {
            let chances = (1..=n_most as i32).map(|n| DraftCandidate { text, chance: p.powi(n) });
            plan.candidates.extend(chances);
        }
        plan.choose(
            UndraftedRun { n_rows: odds.len(), n_texts: odds.len(), n_free: 60, recomputes },
            &RunCosts::default(),
        );
        assert!(expected(&plan.lengths), "{odds:?}: {:?}", plan.lengths);
    }

    #[test]
    fn as_many_drafts_are_checked_as_pay() {
        check(&[0.0], 16, false, |n| n == [0]);
        check(&[0.2], 16, false, |n| n == [0]);
        check(&[0.6], 16, false, |n| (1..5).contains(&n[0]));
        check(&[0.99], 16, false, |n| n == [16]);
        check(&[0.9], 16, false, |n| (4..16).contains(&n[0]));
        check(&[], 16, false, |n| n.is_empty());
        check(&[0.9], 0, false, |n| n == [0]);
        // Rows go to the text with the better drafts.
        check(&[0.1, 0.95, 0.7], 16, false, |n| n[0] == 0 && n[1] > n[2]);
        // The cost of a rejection makes drafts shorter.
        let of = |recomputes| {
            let mut found = 0;
            check(&[0.8], 16, recomputes, |_| true);
            for n in 0..=16 {
                let mut plan = DraftPlan::default();
                plan.clear(1);
                plan.candidates.extend((1..=n).map(|n| DraftCandidate { text: 0, chance: 0.8f32.powi(n) }));
                plan.choose(
                    UndraftedRun { n_rows: 1, n_texts: 1, n_free: 60, recomputes },
                    &RunCosts::default(),
                );
                found = found.max(plan.lengths[0]);
            }
            found
        };
        assert!(of(true) <= of(false));
    }
}
