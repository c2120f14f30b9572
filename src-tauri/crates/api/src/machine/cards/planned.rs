//! A failure of a graphics card that a test wants, as plain data: it has to reach the process that computes.

use kernels::{FaultPlan, GpuFault};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedFault {
    pub kind: FaultKind,
    /// The submission that it comes before, counted from 0 for each load of a model, and as far from it the next ones.
    pub before: u64,
    pub n_times: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    Lost,
    Memory,
    Invalid,
    TimeOut,
    Wrong,
}

impl PlannedFault {
    pub fn plan(self) -> FaultPlan {
        let fault = match self.kind {
            FaultKind::Lost => GpuFault::Lost,
            FaultKind::Memory => GpuFault::Memory,
            FaultKind::Invalid => GpuFault::Invalid,
            FaultKind::TimeOut => GpuFault::TimeOut,
            FaultKind::Wrong => GpuFault::Wrong,
        };
        FaultPlan::repeated(self.before, fault, self.n_times)
    }
}
