//! IQ2_XS weights times Q8_K activations: codebook of 512 eights, a scale for each 16 elements.

use weights::DType;
use weights::quant::{iq_grid::signs_with_parity, iq_grid_tables};

use super::ActivationFormat;
use super::blocks256::Panel256;
use super::iq_codebook::{Codebook, Codebook256, unpack_grid8, nibble_scales, u16_at, apply_signs};
use super::dispatch::matmul_rows;
use super::quantize;

static GRID: [u64; 512] = unpack_grid8(&iq_grid_tables::IQ2_XS, [8, 25, 43, 0]);

/// Block layout: d, indices with signs, scales.
struct Iq2Xs;

impl Codebook for Iq2Xs {
    const BYTES: usize = 74;
    const SCALES_BY_16: bool = true;
    const D_SCALE: f32 = 0.125;

    #[inline(always)]
    fn d(block: &[u8]) -> u16 {
        u16_at(block, 0)
    }

    #[inline(always)]
    fn scales(block: &[u8]) -> [i32; 16] {
        nibble_scales(&block[66..74])
    }

    #[inline(always)]
    fn group(block: &[u8], group: usize) -> [u64; 4] {
        std::array::from_fn(|l| {
            let code = u16_at(block, 2 + group * 8 + l * 2);
            apply_signs(GRID[usize::from(code & 511)], signs_with_parity(u32::from(code >> 9)))
        })
    }
}

matmul_rows!(DType::IQ2_XS, ActivationFormat::Q8_K, quantize::Q8_K, Panel256<Codebook256<Iq2Xs>>);
