//! Cost of checking several tokens in one run, relative to a run of one row: what a draft has to earn.
//!
//! Starts from figures measured on one machine and adapts to reported run times. Has no clock.

/// Rows of a run and its relative cost: llama-3.2-1b in Q4_K_M, 2 cores of a Sapphire Rapids.
const MEASURED: [(usize, f32); 7] = [(1, 1.0), (2, 1.2), (4, 1.4), (8, 1.5), (16, 1.9), (32, 3.0), (64, 5.4)];

/// Weight of one run time in the moving average.
const STEP: f32 = 0.25;

/// Bound on how far one run time can move a figure, as a factor.
const MAX_STEP_FACTOR: f32 = 2.0;

/// Bound on how far a draft's cost may be from the expectation, as a factor.
const MAX_DRAFT_CORRECTION: f32 = 16.0;

/// Share by which unobserved figures return to the built-in ones, per run.
const FADE: f32 = 1.0 / 512.0;

/// Relative run costs of one model.
#[derive(Debug, Clone)]
pub struct RunCosts {
    /// Seconds of a run with one row. `None` before the first measurement.
    unit_s: Option<f32>,
    /// Correction of what a draft of a draft block is expected to cost.
    draft_correction: f32,
    /// Corrections of the built-in figures. That of one row stays 1. (MEASURED)
    corrections: [f32; MEASURED.len()],
}

impl Default for RunCosts {
    fn default() -> Self {
        Self { unit_s: None, draft_correction: 1.0, corrections: [1.0; MEASURED.len()] }
    }
}

impl RunCosts {
    /// Returns the cost of a run of `n` rows, between 1 and `n`. One row costs 1.
    pub fn cost(&self, n: usize) -> f32 {
        let n = n.max(1);
        let at = MEASURED.partition_point(|(rows, _)| *rows <= n) - 1;
        let cost = |at: usize| MEASURED[at].1 * self.corrections[at];
        let Some(&(above, _)) = MEASURED.get(at + 1) else {
            return (cost(at) * n as f32 / MEASURED[at].0 as f32).clamp(1.0, n as f32);
        };
        let below = MEASURED[at].0;
        let share = (n - below) as f32 / (above - below) as f32;
        (cost(at) + (cost(at + 1) - cost(at)) * share).clamp(1.0, n as f32)
    }

    /// Returns the cost of a draft of a draft block that should cost `expected`.
    pub fn draft_cost(&self, expected: f32) -> f32 {
        expected * self.draft_correction
    }

    /// Records the time of a run with `n` rows and of `n_drafts` drafts of a draft block before it, which should cost
    /// `expected` each. What differs from the expectation is the drafts' and the rows' in proportion.
    pub fn record_drafted_step(&mut self, n: usize, (n_drafts, expected): (usize, f32), seconds: f32) {
        let (rows, drafts) = (self.cost(n), n_drafts as f32 * self.draft_cost(expected));
        if n_drafts == 0 {
            self.draft_correction += FADE * (1.0 - self.draft_correction);
        }
        if let Some(unit_s) = self.unit_s.filter(|_| drafts > 0.0) {
            let found = seconds / unit_s / (rows + drafts);
            if found > 0.0 && found.is_finite() {
                let found = found.clamp(1.0 / MAX_STEP_FACTOR, MAX_STEP_FACTOR);
                let corrected = self.draft_correction * toward(found);
                self.draft_correction = corrected.clamp(1.0 / MAX_DRAFT_CORRECTION, MAX_DRAFT_CORRECTION);
            }
        }
        self.record_step(n, seconds * rows / (rows + drafts));
    }

    /// Records the time of a run with `n` rows.
    pub fn record_step(&mut self, n: usize, seconds: f32) {
        if n == 0 || !(seconds > 0.0 && seconds.is_finite()) {
            return;
        }
        let unit_s = self.unit_s.unwrap_or(seconds / self.cost(n));
        let found = (seconds / unit_s / self.cost(n)).clamp(1.0 / MAX_STEP_FACTOR, MAX_STEP_FACTOR);
        let nearest = nearest(n);
        self.unit_s = Some(if nearest == 0 { unit_s * toward(found) } else { unit_s });
        for (at, correction) in self.corrections.iter_mut().enumerate().skip(1) {
            match at == nearest {
                true => *correction *= toward(found),
                false => *correction += FADE * (1.0 - *correction),
            }
        }
    }
}

/// Returns the step towards a figure `found` times as large.
fn toward(found: f32) -> f32 {
    1.0 + STEP * (found - 1.0)
}

/// Returns the index of the figure with the nearest number of rows, by ratio.
fn nearest(n: usize) -> usize {
    MEASURED.iter().skip(1).take_while(|(rows, _)| n * n * 2 > rows * rows).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initial_costs_are_matched_and_interpolated() {
        let costs = RunCosts::default();
        for (rows, cost) in MEASURED {
            assert_eq!(costs.cost(rows), cost);
        }
        assert_eq!(costs.cost(0), 1.0);
        assert!(costs.cost(3) > costs.cost(2) && costs.cost(3) < costs.cost(4));
        assert_eq!(costs.cost(128), 2.0 * costs.cost(64));
        assert!((1..300).all(|n| costs.cost(n) <= costs.cost(n + 1) && costs.cost(n) <= n as f32));
        assert_eq!([1, 2, 3, 4, 5, 6, 11, 12, 64, 999].map(nearest), [0, 1, 2, 2, 2, 3, 3, 4, 6, 6]);
    }

    #[test]
    fn costs_follow_runs_and_decay_without_them() {
        let mut costs = RunCosts::default();
        // A machine on which a row costs a row, such as a mixture of experts.
        for n in [1, 2, 4, 8, 16].repeat(40) {
            costs.record_step(n, 0.03 * n as f32);
        }
        for n in [2, 4, 8, 16] {
            assert!((costs.cost(n) / n as f32 - 1.0).abs() < 0.1, "{n}: {}", costs.cost(n));
        }
        assert_eq!(costs.cost(64), MEASURED[6].1, "was never seen");
        let before = costs.cost(16);
        (0..2000).for_each(|_| costs.record_step(1, 0.03));
        assert!(costs.cost(16) < before * 0.35, "{}", costs.cost(16));
        // A deeper context: everything takes longer, nothing costs more.
        (0..50).for_each(|_| costs.record_step(1, 0.06));
        (0..50).for_each(|_| costs.record_step(4, 0.06 * 1.7));
        assert!((costs.cost(4) - 1.7).abs() < 0.2, "{}", costs.cost(4));
    }

    #[test]
    fn the_cost_of_drafts_follows_the_time_of_their_steps() {
        let mut costs = RunCosts::default();
        (0..20).for_each(|_| costs.record_step(1, 0.03));
        let before = costs.cost(4) + 3.0 * costs.draft_cost(0.1);
        assert!((costs.draft_cost(0.1) - 0.1).abs() < 1e-6);
        // Steps of four rows and three drafts take twice as long as expected.
        (0..60).for_each(|_| costs.record_drafted_step(4, (3, 0.1), 2.0 * before * 0.03));
        let after = costs.cost(4) + 3.0 * costs.draft_cost(0.1);
        assert!((after / before - 2.0).abs() < 0.1, "{after} and {before}");
        for seconds in [0.0, f32::NAN, -1.0] {
            costs.record_drafted_step(4, (3, 0.1), seconds);
        }
        assert_eq!(costs.cost(4) + 3.0 * costs.draft_cost(0.1), after);
    }

    #[test]
    fn outliers_count_little_and_invalid_times_not_at_all() {
        let mut costs = RunCosts::default();
        (0..20).for_each(|_| costs.record_step(1, 0.03));
        costs.record_step(8, 30.0);
        assert!(costs.cost(8) <= MEASURED[3].1 * 1.25 + 1e-4);
        let before = costs.cost(8);
        for seconds in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            costs.record_step(8, seconds);
        }
        costs.record_step(0, 1.0);
        assert_eq!(costs.cost(8), before);
    }
}
