//! The workgroup of the GPU's attention kernel. `lanes.wgsl` combines what its lanes find, in the order of a binary tree,
//! whatever the size of a subgroup.

use super::CHUNK;
use crate::matmul::partial_sums::ShaderConstants;

/// Lanes of a workgroup, as in `attention.wgsl`.
const LANES: usize = 256;
/// Longest head: of longer ones, four queries exceed the workgroup memory that common GPUs have.
pub const MAX_HEAD_DIM: usize = 512;
/// Bytes of what describes queries, pages and sums.
const SMALL_BYTES: usize = 512;

/// What a kernel is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Specialization {
    /// Elements of a head.
    pub head_dim: usize,
    /// Rows of a workgroup.
    pub n_rows: usize,
    /// Whether scores are capped.
    pub is_capped: bool,
    /// Whether each head has a sink.
    pub has_sinks: bool,
    /// The mask, as in `visible.wgsl`.
    pub ahead: u32,
    /// Whether each workgroup takes one chunk of positions, for `merge.wgsl`.
    pub is_part: bool,
}

impl Specialization {
    /// Returns the constants of the shader.
    pub fn constants(&self) -> ShaderConstants {
        vec![
            ("HEAD_DIM", self.head_dim as u32),
            ("STRANDS", value_strands(self.head_dim)),
            ("N_ROWS", self.n_rows as u32),
            ("CAPPED", u32::from(self.is_capped)),
            ("HAS_SINKS", u32::from(self.has_sinks)),
            ("AHEAD", self.ahead),
            ("IS_PART", u32::from(self.is_part)),
        ]
    }
}

/// Positions whose values are summed in parallel: as many as there are lanes for, at four elements per lane.
fn value_strands(head_dim: usize) -> u32 {
    let n = LANES / head_dim.div_ceil(4);
    1 << n.ilog2()
}

/// Returns the bytes of workgroup memory for `n_queries` queries of `head_dim` elements, at most: lanes without subgroups
/// need the most.
pub fn shared_bytes(head_dim: usize, n_queries: usize) -> u32 {
    let floats = (head_dim.next_multiple_of(4) + CHUNK + LANES + LANES / 16) * n_queries;
    (floats * size_of::<f32>() + SMALL_BYTES) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strands_are_a_power_of_two_that_lanes_suffice_for() {
        for (head_dim, expected) in [(32, 32), (64, 16), (80, 8), (96, 8), (128, 8), (256, 4), (512, 2)] {
            assert_eq!(value_strands(head_dim), expected, "{head_dim}");
        }
    }

    #[test]
    fn four_queries_of_common_heads_fit_everywhere() {
        assert!(shared_bytes(256, 4) <= 16_384 && shared_bytes(128, 8) <= 32_768);
        assert!(shared_bytes(MAX_HEAD_DIM, 4) <= 32_768);
    }
}
