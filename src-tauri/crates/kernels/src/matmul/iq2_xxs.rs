//! IQ2_XXS weights times Q8_K activations: codebook of 256 eights, a scale for each 32 elements.

use weights::DType;
use weights::quant::{iq_grid::signs_with_parity, iq_grid_tables};

use super::ActivationFormat;
use super::blocks256::Panel256;
use super::iq_codebook::{Codebook, Codebook256, unpack_grid8, u16_at, u32_at, apply_signs};
use super::dispatch::matmul_rows;
use super::quantize;

static GRID: [u64; 256] = unpack_grid8(&iq_grid_tables::IQ2_XXS, [8, 25, 43, 0]);

/// Block layout: d; for each 32 elements four indices, then signs and scale.
struct Iq2Xxs;

impl Codebook for Iq2Xxs {
    const BYTES: usize = 66;
    const SCALES_BY_16: bool = false;
    const D_SCALE: f32 = 0.125;

    #[inline(always)]
    fn d(block: &[u8]) -> u16 {
        u16_at(block, 0)
    }

    #[inline(always)]
    fn scales(block: &[u8]) -> [i32; 16] {
        std::array::from_fn(|i| i32::from(block[2 + i / 2 * 8 + 7] >> 4) * 2 + 1)
    }

    #[inline(always)]
    fn group(block: &[u8], group: usize) -> [u64; 4] {
        let part = &block[2 + group * 8..][..8];
        let signs = u32_at(part, 4);
        std::array::from_fn(|l| apply_signs(GRID[usize::from(part[l])], signs_with_parity(signs >> (7 * l))))
    }
}

matmul_rows!(DType::IQ2_XXS, ActivationFormat::Q8_K, quantize::Q8_K, Panel256<Codebook256<Iq2Xxs>>);
