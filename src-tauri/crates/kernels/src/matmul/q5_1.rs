//! Q5_1 weights times Q8_0 activations: nibbles with a fifth bit, and a min.

use weights::DType;

use super::ActivationFormat;
use super::blocks32::{Block32, Panel32, LEN, dot_integers};
use super::simd::{Simd, RowPointers};
use super::dispatch::matmul_rows;
use super::q5_0::five_bits;
use super::quantize;

/// Block layout: scale, min, fifth bits, then 16 bytes, with the first half in the low nibbles.
struct Q5_1;

impl Block32 for Q5_1 {
    const BYTES: usize = 24;
    const MAX_MAGNITUDE: i32 = 31;
    const HAS_MIN: bool = true;

    #[inline(always)]
    unsafe fn block_min<L: Simd>(rows: &RowPointers, offset: usize) -> L::F {
        // SAFETY: guaranteed by the caller: an f16 after the scale.
        unsafe { L::load_f16(rows, offset + 2) }
    }

    #[inline(always)]
    fn zero_point<L: Simd>() -> i32 {
        0
    }

    #[inline(always)]
    unsafe fn integers<L: Simd>(rows: &RowPointers, offset: usize) -> [L::I; 8] {
        // SAFETY: guaranteed by the caller: 24 bytes at `offset`.
        unsafe { five_bits::<L>(rows, offset + 4) }
    }

    #[inline(always)]
    unsafe fn dots<L: Simd>(rows: &RowPointers, offset: usize, q: &[i8; LEN]) -> L::I {
        // SAFETY: guaranteed by the caller.
        unsafe { dot_integers::<Self, L>(rows, offset, q) }
    }
}

matmul_rows!(DType::Q5_1, ActivationFormat::Q8_0, quantize::Q8_0, Panel32<Q5_1>);
