//! Q5_1 weights times Q8_0 activations: nibbles with a fifth bit, and a minimum.

use weights::DType;

use super::ActFormat;
use super::blocks32::{Block32, Blocks32, LEN, dot_integers};
use super::lanes::{Lanes, RowPointers};
use super::panel::matmul_rows;
use super::q5_0::five_bits;
use super::quantize;

/// Scale, minimum, then fifth bits, then 16 bytes: low nibbles are the first half.
struct Q51;

impl Block32 for Q51 {
    const BYTES: usize = 24;
    const LARGEST: i32 = 31;
    const HAS_MINIMUM: bool = true;

    #[inline(always)]
    unsafe fn minimum<L: Lanes>(rows: &RowPointers, offset: usize) -> L::F {
        // SAFETY: the caller's: an f16 after the scale.
        unsafe { L::halves(rows, offset + 2) }
    }

    #[inline(always)]
    fn offset<L: Lanes>() -> i32 {
        0
    }

    #[inline(always)]
    unsafe fn integers<L: Lanes>(rows: &RowPointers, offset: usize) -> [L::I; 8] {
        // SAFETY: the caller's: 24 bytes at `offset`.
        unsafe { five_bits::<L>(rows, offset + 4) }
    }

    #[inline(always)]
    unsafe fn dots<L: Lanes>(rows: &RowPointers, offset: usize, q: &[i8; LEN]) -> L::I {
        // SAFETY: the caller's.
        unsafe { dot_integers::<Self, L>(rows, offset, q) }
    }
}

matmul_rows!(DType::Q5_1, ActFormat::Q8_0, quantize::Q8_0, Blocks32<Q51>);
