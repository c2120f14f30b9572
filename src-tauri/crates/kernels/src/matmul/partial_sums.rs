//! The order of additions in GPU matrix products, and the shape of kernels whose lanes share a sum.
//!
//! Elements come in blocks of `BLOCK`. Block b of a row belongs to partial sum b % `PARTIAL_SUMS`, which adds
//! its products in rising order with fused multiply-adds. Partial sums are added pairwise: neighbours, then
//! pairs of them, and so on.
//! A result depends on `k` alone. Lanes that hold partial sums combine at distance 1, 2, 4 …. A lane that
//! computes a whole output makes the partial sums one after the other and keeps those that wait for their
//! pair.
//! Guarantees: a row gets the same bits alone, among few and among many, with subgroups and without.

/// Elements that are decoded together, from loads of four words.
pub const BLOCK: usize = 32;
/// Partial sums of an output: as many as the lanes of a subgroup on most GPUs.
pub const PARTIAL_SUMS: u32 = 32;

/// Named constants of a shader.
pub type ShaderConstants = Vec<(&'static str, u32)>;

/// A workgroup whose lanes each hold a partial sum of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReductionLanes {
    /// Lanes of a workgroup, a multiple of `PARTIAL_SUMS`.
    pub lanes: u32,
    /// Outputs for which a lane reads x once.
    pub outputs: u32,
    /// Rows for which a lane decodes a weight once.
    pub rows: u32,
    /// Blocks per lane of a row of x that are in workgroup memory at a time. 0: lanes read x from its buffer.
    pub stages: u32,
}

/// Decoding: each weight is read once, by as many lanes as possible, which share x.
pub const ONE_ROW: ReductionLanes = ReductionLanes { lanes: 256, outputs: 1, rows: 1, stages: 2 };
/// A row by small workgroups whose lanes read x from its buffer: where sharing does not pay, and for experts.
pub const ONE_ROW_UNSTAGED: ReductionLanes = ReductionLanes { lanes: 64, outputs: 2, rows: 1, stages: 0 };
/// A few sequences, or a draft under verification.
pub const FEW_ROWS: ReductionLanes = ReductionLanes { lanes: 64, outputs: 2, rows: 8, stages: 0 };

impl ReductionLanes {
    /// Returns the outputs of a workgroup.
    pub fn outputs_per_group(&self) -> usize {
        (self.lanes / PARTIAL_SUMS * self.outputs) as usize
    }

    /// Returns the constants of the shader. A lane writes at most one of its group's sums.
    pub fn constants(&self) -> ShaderConstants {
        let sums = self.outputs * self.rows;
        debug_assert!(sums <= PARTIAL_SUMS && self.lanes.is_multiple_of(PARTIAL_SUMS));
        debug_assert!(self.stages == 0 || self.rows == 1);
        let mut constants = vec![
            ("LANES", self.lanes),
            ("LANE_OUTPUTS", self.outputs),
            ("LANE_ROWS", self.rows),
            ("SUMS", sums),
        ];
        constants.extend((self.stages > 0).then_some(("STAGES", self.stages)));
        constants
    }
}
