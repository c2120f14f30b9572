//! IQ2_S weights times Q8_K activations: codebook of 1024 eights, a scale for each 16 elements.

use weights::DType;
use weights::quant::iq_grid_tables;

use super::ActivationFormat;
use super::blocks256::Panel256;
use super::iq_codebook::{Codebook, Codebook256, unpack_grid8, nibble_scales, u16_at, apply_signs};
use super::dispatch::matmul_rows;
use super::quantize;

static GRID: [u64; 1024] = unpack_grid8(&iq_grid_tables::IQ2_S, [8, 25, 43, 0]);

/// Block layout: d, low index bits, signs, high index bits, scales.
struct Iq2S;

impl Codebook for Iq2S {
    const BYTES: usize = 82;
    const SCALES_BY_16: bool = true;
    const D_SCALE: f32 = 0.125;

    #[inline(always)]
    fn d(block: &[u8]) -> u16 {
        u16_at(block, 0)
    }

    #[inline(always)]
    fn scales(block: &[u8]) -> [i32; 16] {
        nibble_scales(&block[74..82])
    }

    #[inline(always)]
    fn group(block: &[u8], group: usize) -> [u64; 4] {
        std::array::from_fn(|l| {
            let i = group * 4 + l;
            let upper = usize::from(block[66 + group] >> (l * 2) & 3);
            apply_signs(GRID[usize::from(block[2 + i]) | upper << 8], block[34 + i])
        })
    }
}

matmul_rows!(DType::IQ2_S, ActivationFormat::Q8_K, quantize::Q8_K, Panel256<Codebook256<Iq2S>>);
