//! Prefill budget: how many prompt rows a step takes. Many, so that weights are read seldom, but no more than other
//! answers can wait for.
//!
//! Without a clock: the caller reports how long steps took.

/// Longest wait of a running answer for a prompt in the same step, about.
const GAP_S: f32 = 0.25;

/// Longest step, so that a cancellation does not wait longer.
const STEP_S: f32 = 1.0;

/// Below this, all weights would be read for too few rows.
pub const MIN_PREFILL_ROWS: usize = 16;

/// Weight of a new measurement in the moving average.
const SHARE: f32 = 0.5;

/// Measured cost of a prompt row on this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct PrefillBudget {
    /// `None` before the first measurement.
    row_s: Option<f32>,
}

impl PrefillBudget {
    /// Returns the prompt rows of the next step, at most `max_rows`.
    pub fn rows(&self, beside_answers: bool, max_rows: usize) -> usize {
        let Some(row_s) = self.row_s else { return max_rows };
        let bound_s = if beside_answers { GAP_S } else { STEP_S };
        // The cast saturates: non-finite and large values become bounds of usize.
        ((bound_s / row_s) as usize).max(MIN_PREFILL_ROWS).min(max_rows)
    }

    /// Records the time of a step with `n_rows` rows.
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
    fn prefill_is_bounded_by_what_others_can_wait() {
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
