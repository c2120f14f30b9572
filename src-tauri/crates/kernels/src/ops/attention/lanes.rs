//! The workgroup of the GPU's attention kernel. `lanes.wgsl` combines what its lanes find, in the order of a binary tree,
//! whatever the size of a subgroup.

/// Lanes of a workgroup, as in `attention.wgsl`.
pub const LANES: usize = 128;
/// Longest head: four elements for each lane.
pub const MAX_HEAD_DIM: usize = 4 * LANES;

/// Positions whose values are summed in parallel: as many as there are lanes for, at four elements per lane.
pub fn value_strands(head_dim: usize) -> u32 {
    let n = LANES / head_dim.div_ceil(4);
    1 << n.ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strands_are_a_power_of_two_that_lanes_suffice_for() {
        for (head_dim, expected) in [(32, 16), (64, 8), (80, 4), (96, 4), (128, 4), (256, 2), (512, 1)] {
            assert_eq!(value_strands(head_dim), expected, "{head_dim}");
        }
        assert_eq!(value_strands(MAX_HEAD_DIM), 1);
    }
}
