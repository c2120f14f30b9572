//! The shape of the kernel that computes both products of a gated unit and joins them, for one row.

use super::partial_sums::{PARTIAL_SUMS, ShaderConstants};

/// A workgroup whose lanes share pairs of sums: one row of the gate's matrix and one of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatedLanes {
    /// Lanes of a workgroup, a multiple of `PARTIAL_SUMS`.
    pub lanes: u32,
    /// Pairs for which a lane reads x once.
    pub pairs: u32,
    /// Blocks per lane of x that are in workgroup memory at a time.
    pub stages: u32,
}

/// Lanes that share x.
pub const GATED_LANES: GatedLanes = GatedLanes { lanes: 256, pairs: 1, stages: 1 };

impl GatedLanes {
    /// Returns the outputs of a workgroup.
    pub fn outputs_per_group(&self) -> usize {
        (self.lanes / PARTIAL_SUMS * self.pairs) as usize
    }

    /// Returns the constants of the shader.
    pub fn constants(&self) -> ShaderConstants {
        vec![
            ("LANES", self.lanes),
            ("LANE_PAIRS", self.pairs),
            ("SUMS", 2 * self.pairs),
            ("STAGES", self.stages),
        ]
    }
}
