//! How many rows of prompts a step takes: many, so that weights are read seldom, but no more than others can wait for.
//! Knows no clock: how long steps record_step is said by whoever has one.

/// An answer that is being written waits no longer than about this for a prompt beside it.
const GAP_S: f32 = 0.25;

/// Nor does a cancel for the end of a step.
const STEP_S: f32 = 1.0;

/// Fewer rows would read all weights for too little.
pub const MIN_PREFILL_ROWS: usize = 16;

/// A measured step moves the figure by this share of the way.
const SHARE: f32 = 0.5;

/// What a row of a prompt takes on this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct PrefillBudget {
    /// None: nothing was measured yet, or nobody measures.
    row_s: Option<f32>,
}

impl PrefillBudget {
    /// Rows of prompts in the next step, of at most `max_rows`.
    pub fn rows(&self, beside_answers: bool, max_rows: usize) -> usize {
        let Some(row_s) = self.row_s else { return max_rows };
        let bound_s = if beside_answers { GAP_S } else { STEP_S };
        // a float that is too large, or no number, becomes a bound of usize
        ((bound_s / row_s) as usize).max(MIN_PREFILL_ROWS).min(max_rows)
    }

    /// A step of `n_rows` record_step so long.
    pub fn record_step(&mut self, n_rows: usize, seconds: f32) {
        if n_rows < MIN_PREFILL_ROWS || !(seconds > 0.0 && seconds.is_finite()) {
            return;
        }
        let found = seconds / n_rows as f32;
        self.row_s = Some(self.row_s.map_or(found, |row_s| row_s + SHARE * (found - row_s)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_take_what_others_can_wait_for() {
        let check = |record_step: &[(usize, f32)], beside: bool, expected: usize| {
            let mut prefill_budget = PrefillBudget::default();
            record_step.iter().for_each(|&(n, s)| prefill_budget.record_step(n, s));
            assert_eq!(prefill_budget.rows(beside, 128), expected, "{record_step:?}");
        };
        check(&[], true, 128);
        check(&[(128, 0.128)], true, 128);
        check(&[(128, 1.28)], true, 25);
        check(&[(128, 1.28)], false, 100);
        check(&[(128, 128.0)], false, MIN_PREFILL_ROWS);
        check(&[(128, 1.28), (1, 9.0), (64, f32::NAN), (64, 0.0)], true, 25);
        check(&[(100, 3.0), (100, 1.0)], false, 50);
        assert_eq!(PrefillBudget::default().rows(true, 4), 4);
    }
}
