//! IQ1_M weights times Q8_K activations: codebook of IQ1_S, a scale for each 16 elements, a shift for each
//! eight.

use weights::DType;

use super::ActivationFormat;
use super::blocks256::Panel256;
use super::iq1_s::SHIFTED;
use super::iq_codebook::{Codebook, Codebook256, u16_at};
use super::dispatch::matmul_rows;
use super::quantize;

/// Block layout: low index bits, high index bits with shifts, scales with a quarter of d each.
struct Iq1M;

const SCALES: usize = 48;

impl Codebook for Iq1M {
    const BYTES: usize = 56;
    const SCALES_BY_16: bool = true;
    const D_SCALE: f32 = 0.125;

    #[inline(always)]
    fn d(block: &[u8]) -> u16 {
        (0..4).fold(0, |bits, i| bits | u16_at(block, SCALES + i * 2) >> 12 << (4 * i))
    }

    #[inline(always)]
    fn scales(block: &[u8]) -> [i32; 16] {
        std::array::from_fn(|i| i32::from(u16_at(block, SCALES + i / 4 * 2) >> (i % 4 * 3) & 7) * 2 + 1)
    }

    #[inline(always)]
    fn group(block: &[u8], group: usize) -> [u64; 4] {
        std::array::from_fn(|l| {
            let i = group * 4 + l;
            let nibble = block[32 + i / 2] >> (i % 2 * 4) & 15;
            let index = u16::from(block[i]) | u16::from(nibble & 7) << 8;
            SHIFTED[usize::from(nibble >> 3)][usize::from(index)]
        })
    }
}

matmul_rows!(DType::IQ1_M, ActivationFormat::Q8_K, quantize::Q8_K, Panel256<Codebook256<Iq1M>>);
