//! IQ2_XS weights times Q8_K activations: eights out of a lattice of 512, a scale for each 16.

use weights::DType;
use weights::quant::{iq_grid_tables, iq_grid::signs_with_parity};

use super::ActFormat;
use super::blocks256::Blocks256;
use super::lattice::{Lattice, OfLattice, eights, nibble_scales, u16_at, with_signs};
use super::panel::matmul_rows;
use super::quantize;

static EIGHTS: [u64; 512] = eights(&iq_grid_tables::IQ2_XS, [8, 25, 43, 0]);

/// Factor, indices with signs, scales.
struct Iq2Xs;

impl Lattice for Iq2Xs {
    const BYTES: usize = 74;
    const SCALES_BY_16: bool = true;
    const UNIT: f32 = 0.125;

    #[inline(always)]
    fn factor(block: &[u8]) -> u16 {
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
            with_signs(EIGHTS[usize::from(code & 511)], signs_with_parity(u32::from(code >> 9)))
        })
    }
}

matmul_rows!(DType::IQ2_XS, ActFormat::Q8_K, quantize::Q8_K, Blocks256<OfLattice<Iq2Xs>>);
