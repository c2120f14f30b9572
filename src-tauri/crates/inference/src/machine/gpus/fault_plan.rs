//! The kernels' plan for a GPU fault that a test requested.

use contract::{GpuFaultKind, PlannedGpuFault};
use kernels::{FaultPlan, GpuFault};

/// The plan that makes the fault happen.
pub fn plan(planned: PlannedGpuFault) -> FaultPlan {
    let fault = match planned.kind {
        GpuFaultKind::Lost => GpuFault::Lost,
        GpuFaultKind::Memory => GpuFault::Memory,
        GpuFaultKind::Invalid => GpuFault::Invalid,
        GpuFaultKind::TimeOut => GpuFault::TimeOut,
        GpuFaultKind::Wrong => GpuFault::Wrong,
    };
    FaultPlan::repeated(planned.before, fault, planned.n_times)
}
