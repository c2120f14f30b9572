//! MXFP4 weights times Q8_0 activations: nibbles that stand for four-bit floats, a power of two for each 32.

use weights::DType;
use weights::quant::mxfp4::CODES;

use super::ActFormat;
use super::blocks32::{Block32, Blocks32, LEN};
use super::lanes::{Lanes, RowPointers};
use super::panel::matmul_rows;
use super::quantize;

/// Exponent, then 16 bytes: low nibbles are the first half.
struct MxFp4;

/// What is added to the codes so that none is negative.
const OFFSET: i8 = 12;
const SHIFTED: [i8; 16] = {
    let mut shifted = CODES;
    let mut i = 0;
    while i < shifted.len() {
        shifted[i] += OFFSET;
        i += 1;
    }
    shifted
};

impl Block32 for MxFp4 {
    const BYTES: usize = 17;
    const LARGEST: i32 = 24;
    const FARTHEST: i32 = 12;

    /// 2^(e − 128) as a product of two normal floats, so that the smallest come out as subnormals.
    #[inline(always)]
    unsafe fn scale<L: Lanes>(rows: &RowPointers, offset: usize) -> L::F {
        // SAFETY: the caller's: a byte at `offset`.
        unsafe {
            let e = L::bytes(rows, offset);
            let half = L::shift_right::<1>(e);
            // 2^(n − 64) for n within 0..=128 has the exponent bits n + 63.
            let power = |n: L::I| L::as_f(L::shift_left::<23>(L::add(n, L::splat(63))));
            L::mul_f(power(half), power(L::sub(e, half)))
        }
    }

    #[inline(always)]
    fn offset<L: Lanes>() -> i32 {
        i32::from(OFFSET)
    }

    #[inline(always)]
    unsafe fn integers<L: Lanes>(rows: &RowPointers, offset: usize) -> [L::I; 8] {
        // SAFETY: the caller's: 17 bytes at `offset`.
        unsafe {
            let table = L::table(&SHIFTED);
            let mut rows = L::nibbles32(rows, offset + 1);
            for row in &mut rows {
                *row = L::lookup(table, *row);
            }
            rows
        }
    }

    #[inline(always)]
    unsafe fn dots<L: Lanes>(rows: &RowPointers, offset: usize, q: &[i8; LEN]) -> L::I {
        // SAFETY: the caller's; `q` has 32 bytes.
        unsafe { L::dot_codes(rows, offset + 1, q.as_ptr().cast(), L::table(&SHIFTED)) }
    }
}

matmul_rows!(DType::MXFP4, ActFormat::Q8_0, quantize::Q8_0, Blocks32<MxFp4>);
