//! IQ3_XXS weights times Q8_K activations: fours out of a lattice of 256, a scale for each 32.

use weights::DType;
use weights::quant::{iq_grid_tables, iq_grid::signs_with_parity};

use super::ActFormat;
use super::blocks256::Blocks256;
use super::lattice::{Lattice, OfLattice, fours, u16_at, u32_at, with_signs};
use super::panel::matmul_rows;
use super::quantize;

static FOURS: [u32; 256] = fours(&iq_grid_tables::IQ3_XXS, [4, 12, 20, 28, 36, 44, 52, 62]);

/// Factor, indices, signs with scales.
struct Iq3Xxs;

const SIGNS: usize = 66;

impl Lattice for Iq3Xxs {
    const BYTES: usize = 98;
    const SCALES_BY_16: bool = false;
    const UNIT: f32 = 0.25;

    #[inline(always)]
    fn factor(block: &[u8]) -> u16 {
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
            let at = |j: usize| u64::from(FOURS[usize::from(block[2 + group * 8 + l * 2 + j])]);
            with_signs(at(0) | at(1) << 32, signs_with_parity(signs >> (7 * l)))
        })
    }
}

matmul_rows!(DType::IQ3_XXS, ActFormat::Q8_K, quantize::Q8_K, Blocks256<OfLattice<Iq3Xxs>>);
