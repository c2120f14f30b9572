//! Q4_0 weights times Q8_0 activations: nibbles with an offset of 8.

use weights::DType;

use super::ActFormat;
use super::blocks32::{Block32, Blocks32, LEN};
use super::lanes::{Lanes, RowPointers};
use super::panel::matmul_rows;
use super::quantize;

/// Scale, then 16 bytes: low nibbles are the first half.
struct Q40;

impl Block32 for Q40 {
    const BYTES: usize = 18;
    const LARGEST: i32 = 15;
    const FARTHEST: i32 = 8;

    #[inline(always)]
    fn offset<L: Lanes>() -> i32 {
        8
    }

    #[inline(always)]
    unsafe fn integers<L: Lanes>(rows: &RowPointers, offset: usize) -> [L::I; 8] {
        // SAFETY: the caller's: 18 bytes at `offset`.
        unsafe { L::nibbles32(rows, offset + 2) }
    }

    #[inline(always)]
    unsafe fn dots<L: Lanes>(rows: &RowPointers, offset: usize, q: &[i8; LEN]) -> L::I {
        // SAFETY: the caller's; `q` has 32 bytes.
        unsafe { L::dot_nibbles(rows, offset + 2, q.as_ptr().cast()) }
    }
}

matmul_rows!(DType::Q4_0, ActFormat::Q8_0, quantize::Q8_0, Blocks32<Q40>);
