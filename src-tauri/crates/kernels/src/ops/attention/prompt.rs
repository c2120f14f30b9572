//! The GPU kernel for attention of prompts by cooperative matrices, and when it applies: keys and values in f16, heads of
//! whole matrices. The GPU chooses the order of additions, so a row among many is only close to the row alone.

use crate::graph::{KvDType, KvLayerLayout};
use crate::matmul::cooperative::{LANES, SIDE};
use crate::matmul::partial_sums::ShaderConstants;

/// Subgroups of a workgroup, each with as many rows of one head as a matrix.
const N_SUBGROUPS: u32 = 4;
/// Rows of a workgroup.
pub const ROWS: u32 = N_SUBGROUPS * SIDE;
/// Largest heads: the sums of larger ones exceed the registers of a lane.
const MAX_HEAD_DIM: usize = 256;

/// Returns whether the kernel can read such keys and values. `has_requantized`: some pages have another format.
pub fn supports(layout: &KvLayerLayout, has_requantized: bool) -> bool {
    let is_halved = layout.precision == KvDType::F16.both();
    let is_whole = layout.head_dim.is_multiple_of(SIDE as usize) && layout.head_dim <= MAX_HEAD_DIM;
    is_halved && is_whole && !has_requantized
}

/// Returns the constants of the shader for heads of `head_dim` elements; `ahead` as in `visible.wgsl`.
pub fn constants(head_dim: usize, ahead: u32) -> ShaderConstants {
    let head_dim = head_dim as u32;
    vec![
        ("LANES", N_SUBGROUPS * LANES),
        ("N_ROWS", ROWS),
        ("HEAD_DIM", head_dim),
        ("AHEAD", ahead),
        ("D_STEPS", head_dim / SIDE),
        ("Q_READS", ROWS * head_dim / 4 / (N_SUBGROUPS * LANES)),
    ]
}

/// Returns the bytes of workgroup memory for heads of `head_dim` elements.
pub fn shared_bytes(head_dim: usize) -> u32 {
    // a row of q, of scores and of shares, each with some padding; its visible positions
    ROWS * ((head_dim as u32 + 8) * 2 + 36 * 4 + 40 * 2 + 2 * 4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::KvPrecision;

    #[test]
    fn whole_heads_of_halves_are_supported() {
        let of = |head_dim, precision| KvLayerLayout { n_kv_heads: 2, head_dim, precision, window: None };
        let halves = KvDType::F16.both();
        for head_dim in [16, 64, 80, 128, 256] {
            assert!(supports(&of(head_dim, halves), false), "{head_dim}");
            assert!(shared_bytes(head_dim) <= 49152, "{head_dim}");
        }
        assert!(!supports(&of(100, halves), false) && !supports(&of(512, halves), false));
        assert!(!supports(&of(64, halves), true), "requantized pages");
        let mixed = KvPrecision { keys: KvDType::F16, values: KvDType::Q8_0 };
        assert!(!supports(&of(64, mixed), false) && !supports(&of(64, KvDType::F32.both()), false));
    }
}
