//! Q5_0 weights times Q8_0 activations: nibbles with a fifth bit, and an offset of 16.

use weights::DType;

use super::ActFormat;
use super::blocks32::{Block32, Blocks32, LEN, dot_integers};
use super::lanes::{Lanes, RowPointers};
use super::panel::matmul_rows;
use super::quantize;

/// Scale, fifth bits, then 16 bytes: low nibbles are the first half.
struct Q50;

/// Nibbles at `offset` + 4 with the fifth bits before them.
///
/// # Safety
/// As for `Lanes`; 20 bytes lie at `offset` of each row.
#[inline(always)]
pub unsafe fn five_bits<L: Lanes>(rows: &RowPointers, offset: usize) -> [L::I; 8] {
    // SAFETY: the caller's.
    unsafe {
        let fifth = L::bits32(rows, offset);
        let bit = L::splat(0x1010_1010);
        let mut integers = L::nibbles32(rows, offset + 4);
        for i in 0..8 {
            integers[i] = L::or(integers[i], L::and(fifth[i], bit));
        }
        integers
    }
}

impl Block32 for Q50 {
    const BYTES: usize = 22;
    const LARGEST: i32 = 31;
    const FARTHEST: i32 = 16;

    #[inline(always)]
    fn offset<L: Lanes>() -> i32 {
        16
    }

    #[inline(always)]
    unsafe fn integers<L: Lanes>(rows: &RowPointers, offset: usize) -> [L::I; 8] {
        // SAFETY: the caller's: 22 bytes at `offset`.
        unsafe { five_bits::<L>(rows, offset + 2) }
    }

    #[inline(always)]
    unsafe fn dots<L: Lanes>(rows: &RowPointers, offset: usize, q: &[i8; LEN]) -> L::I {
        // SAFETY: the caller's.
        unsafe { dot_integers::<Self, L>(rows, offset, q) }
    }
}

matmul_rows!(DType::Q5_0, ActFormat::Q8_0, quantize::Q8_0, Blocks32<Q50>);
