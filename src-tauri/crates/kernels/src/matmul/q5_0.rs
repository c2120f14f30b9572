//! Q5_0 weights times Q8_0 activations: nibbles with a fifth bit, and a zero point of 16.

use weights::DType;

use super::ActivationFormat;
use super::blocks32::{Block32, Panel32, LEN, dot_integers};
use super::simd::{Simd, RowPointers};
use super::dispatch::matmul_rows;
use super::quantize;

/// Block layout: scale, fifth bits, then 16 bytes, with the first half in the low nibbles.
struct Q5_0;

/// Combines the nibbles at `offset` + 4 with the fifth bits before them.
///
/// # Safety
/// Same requirements as `Simd`; 20 bytes lie at `offset` of each row.
#[inline(always)]
pub unsafe fn five_bits<L: Simd>(rows: &RowPointers, offset: usize) -> [L::I; 8] {
    // SAFETY: guaranteed by the caller.
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

impl Block32 for Q5_0 {
    const BYTES: usize = 22;
    const MAX_MAGNITUDE: i32 = 31;
    const MAX_CENTERED_MAGNITUDE: i32 = 16;

    #[inline(always)]
    fn zero_point<L: Simd>() -> i32 {
        16
    }

    #[inline(always)]
    unsafe fn integers<L: Simd>(rows: &RowPointers, offset: usize) -> [L::I; 8] {
        // SAFETY: guaranteed by the caller: 22 bytes at `offset`.
        unsafe { five_bits::<L>(rows, offset + 2) }
    }

    #[inline(always)]
    unsafe fn dots<L: Simd>(rows: &RowPointers, offset: usize, q: &[i8; LEN]) -> L::I {
        // SAFETY: guaranteed by the caller.
        unsafe { dot_integers::<Self, L>(rows, offset, q) }
    }
}

matmul_rows!(DType::Q5_0, ActivationFormat::Q8_0, quantize::Q8_0, Panel32<Q5_0>);
