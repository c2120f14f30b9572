//! IQ3_XXS weights times Q8_K activations: codebook of 256 fours, a scale for each 32 elements.

use weights::DType;
use weights::quant::{iq_grid::signs_with_parity, iq_grid_tables};

use super::ActivationFormat;
use super::blocks256::Panel256;
use super::iq_codebook::{Codebook, Codebook256, unpack_grid4, u16_at, u32_at, apply_signs};
use super::dispatch::matmul_rows;
use super::quantize;

static GRID: [u32; 256] = unpack_grid4(&iq_grid_tables::IQ3_XXS, [4, 12, 20, 28, 36, 44, 52, 62]);

/// Block layout: d, indices, signs with scales.
struct Iq3Xxs;

const SIGNS: usize = 66;

impl Codebook for Iq3Xxs {
    const BYTES: usize = 98;
    const SCALES_BY_16: bool = false;
    const D_SCALE: f32 = 0.25;

    #[inline(always)]
    fn d(block: &[u8]) -> u16 {
        u16_at(block, 0)
    }

    #[inline(always)]
    fn scales(block: &[u8]) -> [i32; 16] {
        std::array::from_fn(|i| i32::from(block[SIGNS + i / 2 * 4 + 3] >> 4) * 2 + 1)
    }

    #[inline(always)]
    fn group(block: &[u8], group: usize) -> [u64; 4] {
        let signs = u32_at(block, SIGNS + group * 4);
        std::array::from_fn(|l| {
            let at = |j: usize| u64::from(GRID[usize::from(block[2 + group * 8 + l * 2 + j])]);
            apply_signs(at(0) | at(1) << 32, signs_with_parity(signs >> (7 * l)))
        })
    }
}

matmul_rows!(DType::IQ3_XXS, ActivationFormat::Q8_K, quantize::Q8_K, Panel256<Codebook256<Iq3Xxs>>);
