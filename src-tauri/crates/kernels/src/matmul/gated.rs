//! The shape of the kernel that computes both products of a gated unit and joins them, for one row.

use super::strands::{STRANDS, Sizes};

/// A workgroup whose lanes share sums of pairs: a row of the gate's matrix and one of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pairs {
    /// in a workgroup: whole `STRANDS`
    pub lanes: u32,
    /// that a lane reads x once for
    pub pairs: u32,
}

/// As many rows for a lane as a single product has.
pub const PAIRS: Pairs = Pairs { lanes: 64, pairs: 1 };

impl Pairs {
    /// Outputs of a workgroup.
    pub fn outputs_of_group(&self) -> usize {
        (self.lanes / STRANDS * self.pairs) as usize
    }

    /// What the shader is told.
    pub fn sizes(&self) -> Sizes {
        vec![("LANES", self.lanes), ("LANE_PAIRS", self.pairs), ("SUMS", 2 * self.pairs)]
    }
}
