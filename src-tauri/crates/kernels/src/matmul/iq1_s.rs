//! IQ1_S weights times Q8_K activations: codebook of 2048 eights, a scale and a shift for each 32 elements.

use weights::DType;
use weights::quant::iq_grid_tables;

use super::ActivationFormat;
use super::blocks256::Panel256;
use super::iq_codebook::{Codebook, Codebook256, unpack_grid8, u16_at};
use super::dispatch::matmul_rows;
use super::quantize;

/// Eight times a codebook entry, shifted up, then down: 8 · entry ± 1.
pub static SHIFTED: [[u64; 2048]; 2] =
    [unpack_grid8(&iq_grid_tables::IQ1_S, [-7, 1, 9, 0]), unpack_grid8(&iq_grid_tables::IQ1_S, [-9, -1, 7, 0])];

/// Block layout: d, low index bits, high index bits with scales and shifts.
struct Iq1S;

const UPPER: usize = 34;

impl Codebook for Iq1S {
    const BYTES: usize = 50;
    const SCALES_BY_16: bool = false;
    const D_SCALE: f32 = 0.125;

    #[inline(always)]
    fn d(block: &[u8]) -> u16 {
        u16_at(block, 0)
    }

    #[inline(always)]
    fn scales(block: &[u8]) -> [i32; 16] {
        std::array::from_fn(|i| i32::from(u16_at(block, UPPER + i / 2 * 2) >> 12 & 7) * 2 + 1)
    }

    #[inline(always)]
    fn group(block: &[u8], group: usize) -> [u64; 4] {
        let upper = u16_at(block, UPPER + group * 2);
        let points = &SHIFTED[usize::from(upper >> 15)];
        std::array::from_fn(|l| {
            let index = u16::from(block[2 + group * 4 + l]) | (upper >> (l * 3) & 7) << 8;
            points[usize::from(index)]
        })
    }
}

matmul_rows!(DType::IQ1_S, ActivationFormat::Q8_K, quantize::Q8_K, Panel256<Codebook256<Iq1S>>);
