//! Q4_1 weights times Q8_0 activations: nibbles and a min.

use weights::DType;

use super::ActivationFormat;
use super::blocks32::{Block32, Panel32, LEN};
use super::simd::{Simd, RowPointers};
use super::dispatch::matmul_rows;
use super::quantize;

/// Block layout: scale, min, then 16 bytes, with the first half in the low nibbles.
struct Q4_1;

impl Block32 for Q4_1 {
    const BYTES: usize = 20;
    const MAX_MAGNITUDE: i32 = 15;
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
        // SAFETY: guaranteed by the caller: 20 bytes at `offset`.
        unsafe { L::nibbles32(rows, offset + 4) }
    }

    #[inline(always)]
    unsafe fn dots<L: Simd>(rows: &RowPointers, offset: usize, q: &[i8; LEN]) -> L::I {
        // SAFETY: guaranteed by the caller; `q` has 32 bytes.
        unsafe { L::dot_nibbles(rows, offset + 4, q.as_ptr().cast()) }
    }
}

matmul_rows!(DType::Q4_1, ActivationFormat::Q8_0, quantize::Q8_0, Panel32<Q4_1>);
