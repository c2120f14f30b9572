//! How many rows of prompts a step takes: many, so that weights are read seldom, but no more than others can wait for.
//! Knows no clock: how long steps took is said by whoever has one.

/// An answer that is being written waits no longer than about this for a prompt beside it.
const GAP_S: f32 = 0.25;

/// Nor does a cancel for the end of a step.
const STEP_S: f32 = 1.0;

/// Fewer rows would read all weights for too little.
pub const LEAST_ROWS: usize = 16;

/// A measured step moves the figure by this share of the way.
const SHARE: f32 = 0.5;

/// What a row of a prompt takes on this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pace {
    /// None: nothing was measured yet, or nobody measures.
    row_s: Option<f32>,
}

impl Pace {
    /// Rows of prompts in the next step, of at most `max_rows`.
    pub fn rows(&self, beside_answers: bool, max_rows: usize) -> usize {
        let Some(row_s) = self.row_s else { return max_rows };
        let bound_s = if beside_answers { GAP_S } else { STEP_S };
        // a float that is too large, or no number, becomes a bound of usize
        ((bound_s / row_s) as usize).max(LEAST_ROWS).min(max_rows)
    }

    /// A step of `n_rows` took so long.
    pub fn took(&mut self, n_rows: usize, seconds: f32) {
        if n_rows < LEAST_ROWS || !(seconds > 0.0 && seconds.is_finite()) {
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
        let check = |took: &[(usize, f32)], beside: bool, expected: usize| {
            let mut pace = Pace::default();
            took.iter().for_each(|&(n, s)| pace.took(n, s));
            assert_eq!(pace.rows(beside, 128), expected, "{took:?}");
        };
        check(&[], true, 128);
        check(&[(128, 0.128)], true, 128);
        check(&[(128, 1.28)], true, 25);
        check(&[(128, 1.28)], false, 100);
        check(&[(128, 128.0)], false, LEAST_ROWS);
        check(&[(128, 1.28), (1, 9.0), (64, f32::NAN), (64, 0.0)], true, 25);
        check(&[(100, 3.0), (100, 1.0)], false, 50);
        assert_eq!(Pace::default().rows(true, 4), 4);
    }
}
