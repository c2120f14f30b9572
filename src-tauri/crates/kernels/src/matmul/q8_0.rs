//! Q8_0 weights times Q8_0 activations: signed bytes on both sides.

use weights::DType;

use super::ActFormat;
use super::blocks32::{Block32, Blocks32, LEN, dot_integers};
use super::lanes::{Lanes, RowPointers};
use super::panel::matmul_rows;
use super::quantize;

/// Scale, then 32 signed bytes.
struct Q80;

impl Block32 for Q80 {
    const BYTES: usize = 34;
    const LARGEST: i32 = 128;
    const SIGNED: bool = true;

    #[inline(always)]
    fn offset<L: Lanes>() -> i32 {
        L::SIGNED_BIAS
    }

    #[inline(always)]
    unsafe fn integers<L: Lanes>(rows: &RowPointers, offset: usize) -> [L::I; 8] {
        // SAFETY: the caller's: 34 bytes at `offset`.
        unsafe {
            let mut rows = L::rows32(rows, offset + 2);
            for row in &mut rows {
                *row = L::signed(*row);
            }
            rows
        }
    }

    #[inline(always)]
    unsafe fn dots<L: Lanes>(rows: &RowPointers, offset: usize, q: &[i8; LEN]) -> L::I {
        // SAFETY: the caller's.
        unsafe { dot_integers::<Self, L>(rows, offset, q) }
    }
}

#[cfg(target_arch = "x86_64")]
matmul_rows!(
    DType::Q8_0,
    ActFormat::Q8_0,
    quantize::Q8_0,
    Blocks32<Q80>,
    avx2 super::levels::no_other_way,
    avx512 super::sweep32::run
);
#[cfg(not(target_arch = "x86_64"))]
matmul_rows!(DType::Q8_0, ActFormat::Q8_0, quantize::Q8_0, Blocks32<Q80>);
