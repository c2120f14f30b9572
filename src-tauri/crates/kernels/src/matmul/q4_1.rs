//! Q4_1 weights times Q8_0 activations: nibbles and a minimum.

use weights::DType;

use super::ActFormat;
use super::blocks32::{Block32, Blocks32, LEN};
use super::lanes::{Lanes, RowPointers};
use super::panel::matmul_rows;
use super::quantize;

/// Scale, minimum, then 16 bytes: low nibbles are the first half.
struct Q41;

impl Block32 for Q41 {
    const BYTES: usize = 20;
    const LARGEST: i32 = 15;
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
        // SAFETY: the caller's: 20 bytes at `offset`.
        unsafe { L::nibbles32(rows, offset + 4) }
    }

    #[inline(always)]
    unsafe fn dots<L: Lanes>(rows: &RowPointers, offset: usize, q: &[i8; LEN]) -> L::I {
        // SAFETY: the caller's; `q` has 32 bytes.
        unsafe { L::dot_nibbles(rows, offset + 4, q.as_ptr().cast()) }
    }
}

matmul_rows!(DType::Q4_1, ActFormat::Q8_0, quantize::Q8_0, Blocks32<Q41>);
