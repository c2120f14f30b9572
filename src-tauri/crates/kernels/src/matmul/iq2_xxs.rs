//! IQ2_XXS weights times Q8_K activations: eights out of a lattice of 256, a scale for each 32.

use weights::DType;
use weights::quant::{iq_grid_tables, iq_grid::signs_with_parity};

use super::ActFormat;
use super::blocks256::Blocks256;
use super::lattice::{Lattice, OfLattice, eights, u16_at, u32_at, with_signs};
use super::panel::matmul_rows;
use super::quantize;

static EIGHTS: [u64; 256] = eights(&iq_grid_tables::IQ2_XXS, [8, 25, 43, 0]);

/// Factor; for each 32 elements four indices, then signs and scale.
struct Iq2Xxs;

impl Lattice for Iq2Xxs {
    const BYTES: usize = 66;
    const SCALES_BY_16: bool = false;
    const UNIT: f32 = 0.125;

    #[inline(always)]
    fn factor(block: &[u8]) -> u16 {
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
        std::array::from_fn(|l| with_signs(EIGHTS[usize::from(part[l])], signs_with_parity(signs >> (7 * l))))
    }
}

matmul_rows!(DType::IQ2_XXS, ActFormat::Q8_K, quantize::Q8_K, Blocks256<OfLattice<Iq2Xxs>>);
