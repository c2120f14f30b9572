//! What a device had to be told, and how long the telling took: of a card, what the processor does for each token
//! besides. Whoever holds a clock asks for it.

use std::sync::Arc;
use std::time::Duration;

/// Reads a clock that only ever goes on.
pub type Now = Arc<dyn Fn() -> Duration + Send + Sync>;

/// Since it was last asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    pub n_runs: u64,
    /// kernels that were told to run
    pub n_kernels: u64,
    /// sending inputs, encoding, submitting: not the waiting
    pub time: Duration,
}

impl std::ops::Add for Effort {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let (n_runs, n_kernels) = (self.n_runs + other.n_runs, self.n_kernels + other.n_kernels);
        Self { n_runs, n_kernels, time: self.time + other.time }
    }
}
