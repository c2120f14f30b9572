//! The shape of the kernel that computes both products of a gated unit and joins them, for one row.

use super::partial_sums::{PARTIAL_SUMS, ShaderConstants};

/// A workgroup whose lanes share sums of pairs: a row of the gate's matrix and one of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatedLanes {
    /// in a workgroup: whole `PARTIAL_SUMS`
    pub lanes: u32,
    /// that a lane reads x once for
    pub pairs: u32,
}

/// As many rows for a lane as a single product has.
pub const GATED_LANES: GatedLanes = GatedLanes { lanes: 64, pairs: 1 };

impl GatedLanes {
    /// Outputs of a workgroup.
    pub fn outputs_per_group(&self) -> usize {
        (self.lanes / PARTIAL_SUMS * self.pairs) as usize
    }

    /// What the shader is told.
    pub fn constants(&self) -> ShaderConstants {
        vec![("LANES", self.lanes), ("LANE_PAIRS", self.pairs), ("SUMS", 2 * self.pairs)]
    }
}
