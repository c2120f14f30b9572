//! CPU-side cost of driving a device: submissions, kernel launches and encoding time.

use std::sync::Arc;
use std::time::Duration;

/// Reads a monotonic clock.
pub type MonotonicClock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// What was submitted to a device since the last reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubmissionStats {
    /// number of runs
    pub n_runs: u64,
    /// number of kernel launches
    pub n_kernels: u64,
    /// time spent uploading inputs, encoding and submitting; excludes waiting for results
    pub time: Duration,
}

impl std::ops::Add for SubmissionStats {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let (n_runs, n_kernels) = (self.n_runs + other.n_runs, self.n_kernels + other.n_kernels);
        Self { n_runs, n_kernels, time: self.time + other.time }
    }
}
