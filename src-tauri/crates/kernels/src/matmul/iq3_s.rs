//! IQ3_S weights times Q8_K activations: codebook of 512 fours, a scale for each 32 elements.

use weights::DType;
use weights::quant::iq_grid_tables;

use super::ActivationFormat;
use super::blocks256::Panel256;
use super::iq_codebook::{Codebook, Codebook256, unpack_grid4, nibble_scales, u16_at, apply_signs};
use super::dispatch::matmul_rows;
use super::quantize;

static GRID: [u32; 512] = unpack_grid4(&iq_grid_tables::IQ3_S, [1, 3, 5, 7, 9, 11, 13, 15]);

/// Block layout: d, low index bits, ninth bits, signs, scales.
struct Iq3S;

impl Codebook for Iq3S {
    const BYTES: usize = 110;
    const SCALES_BY_16: bool = false;
    const D_SCALE: f32 = 1.0;

    #[inline(always)]
    fn d(block: &[u8]) -> u16 {
        u16_at(block, 0)
    }

    #[inline(always)]
    fn scales(block: &[u8]) -> [i32; 16] {
        // A nibble for each 32 elements.
        let of_32 = nibble_scales(&[block[106], block[107], block[108], block[109], 0, 0, 0, 0]);
        std::array::from_fn(|i| of_32[i / 2])
    }

    #[inline(always)]
    fn group(block: &[u8], group: usize) -> [u64; 4] {
        let ninth = block[66 + group];
        std::array::from_fn(|l| {
            let at = |j: usize| {
                let upper = usize::from(ninth >> (l * 2 + j) & 1);
                u64::from(GRID[usize::from(block[2 + group * 8 + l * 2 + j]) | upper << 8])
            };
            apply_signs(at(0) | at(1) << 32, block[74 + group * 4 + l])
        })
    }
}

matmul_rows!(DType::IQ3_S, ActivationFormat::Q8_K, quantize::Q8_K, Panel256<Codebook256<Iq3S>>);
