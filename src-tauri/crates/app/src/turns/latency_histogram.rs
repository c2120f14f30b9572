//! A histogram of times, in the form that Prometheus reads.

use serde::{Deserialize, Serialize};

/// Upper bounds of the buckets in seconds: from a cached prompt to a long one on a slow computer.
const BOUNDS_S: [f64; 14] =
    [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

/// Times that were observed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyHistogram {
    /// Times of each bucket alone; the last bucket has no bound.
    counts: [u64; BOUNDS_S.len() + 1],
    /// Sum of all times, in seconds.
    pub sum_s: f64,
}

impl LatencyHistogram {
    /// Counts a time.
    pub fn observe(&mut self, seconds: f64) {
        let bucket = BOUNDS_S.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS_S.len());
        self.counts[bucket] += 1;
        self.sum_s += seconds;
    }

    /// Number of times.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Each bound with the number of times that are no longer.
    pub fn cumulative(&self) -> Vec<(f64, u64)> {
        let sums = self.counts.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        BOUNDS_S.into_iter().zip(sums).collect()
    }

    /// The time that the share `quantile` of all times does not exceed, linear within its bucket. `None` without times;
    /// the last bound for times beyond it.
    pub fn quantile_s(&self, quantile: f64) -> Option<f64> {
        let wanted = quantile * self.count() as f64;
        let (mut below, mut from) = (0.0, 0.0);
        for (count, bound) in self.counts.iter().zip(BOUNDS_S) {
            let count = *count as f64;
            if count > 0.0 && below + count >= wanted {
                return Some(from + (bound - from) * ((wanted - below) / count).clamp(0.0, 1.0));
            }
            (below, from) = (below + count, bound);
        }
        (self.count() > 0).then_some(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counted_by_bound() {
        let mut times = LatencyHistogram::default();
        assert_eq!((times.count(), times.quantile_s(0.5)), (0, None));
        [0.005, 0.01, 0.02, 0.3, 1000.0].into_iter().for_each(|time| times.observe(time));
        let cumulative = times.cumulative();
        assert_eq!(cumulative[..3], [(0.01, 2), (0.025, 3), (0.05, 3)]);
        assert_eq!((cumulative.last(), times.count()), (Some(&(300.0, 4)), 5));
        assert!((times.sum_s - 1000.335).abs() < 1e-9);
        // two of five are within the first bucket
        assert_eq!(times.quantile_s(0.4), Some(0.01));
        assert_eq!(times.quantile_s(0.2), Some(0.005));
        assert_eq!(times.quantile_s(1.0), Some(300.0));
    }
}
