//! The order of additions of a card's products, and the shape of the kernels whose lanes share them.
//!
//! Elements come in blocks of `BLOCK`. Block b of a row belongs to strand b % `PARTIAL_SUMS`; a strand adds its products up
//! in rising order, each fused with its addition, and strands are added in pairs: neighbours, then pairs of them, and
//! so on. What an output comes to depends on `k` alone: where lanes are strands they meet by distance 1, 2, 4 …; a
//! lane that has an output by itself goes through the strands in turn and keeps what waits for its pair.
//! So a row gets the same bits alone, among few and among many, with subgroups and without.

/// Elements that are decoded together, from loads of four words.
pub const BLOCK: usize = 32;
/// Parts of a sum: as many as lanes run together on most cards.
pub const PARTIAL_SUMS: u32 = 32;

/// Numbers that a shader is given by name.
pub type ShaderConstants = Vec<(&'static str, u32)>;

/// A workgroup whose lanes share sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReductionLanes {
    /// in a workgroup: whole `PARTIAL_SUMS`
    pub lanes: u32,
    /// that a lane reads x once for
    pub outputs: u32,
    /// that a decoded weight is used for
    pub rows: u32,
}

/// Decoding: weights are read once, by as many lanes as there can be.
pub const ONE_ROW: ReductionLanes = ReductionLanes { lanes: 64, outputs: 2, rows: 1 };
/// A few sequences, or a draft that is checked.
pub const FEW_ROWS: ReductionLanes = ReductionLanes { lanes: 64, outputs: 2, rows: 8 };

impl ReductionLanes {
    /// Outputs of a workgroup.
    pub fn outputs_per_group(&self) -> usize {
        (self.lanes / PARTIAL_SUMS * self.outputs) as usize
    }

    /// What the shader is told. A lane writes one of its group's sums at most.
    pub fn constants(&self) -> ShaderConstants {
        let sums = self.outputs * self.rows;
        debug_assert!(sums <= PARTIAL_SUMS && self.lanes.is_multiple_of(PARTIAL_SUMS));
        vec![("LANES", self.lanes), ("LANE_OUTPUTS", self.outputs), ("LANE_ROWS", self.rows), ("SUMS", sums)]
    }
}
