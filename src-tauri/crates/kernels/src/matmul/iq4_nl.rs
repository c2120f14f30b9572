//! IQ4_NL weights times Q8_0 activations: nibbles that stand for unevenly spaced numbers.

use weights::DType;
use weights::quant::iq4_nl::CODES;

use super::ActivationFormat;
use super::blocks32::{Block32, Panel32, LEN, dot_integers};
use super::simd::{Simd, RowPointers};
use super::panel::matmul_rows;
use super::quantize;

/// Scale, then 16 bytes: low nibbles are the first half.
struct Iq4Nl;

impl Block32 for Iq4Nl {
    const BYTES: usize = 18;
    const MAX_MAGNITUDE: i32 = 127;
    const SIGNED: bool = true;

    #[inline(always)]
    fn zero_point<L: Simd>() -> i32 {
        L::SIGNED_BIAS
    }

    #[inline(always)]
    unsafe fn integers<L: Simd>(rows: &RowPointers, offset: usize) -> [L::I; 8] {
        // SAFETY: the caller's: 18 bytes at `offset`.
        unsafe {
            let table = L::bias_signed(L::load_table(&CODES));
            let mut rows = L::nibbles32(rows, offset + 2);
            for row in &mut rows {
                *row = L::lookup(table, *row);
            }
            rows
        }
    }

    #[inline(always)]
    unsafe fn dots<L: Simd>(rows: &RowPointers, offset: usize, q: &[i8; LEN]) -> L::I {
        // SAFETY: the caller's.
        unsafe { dot_integers::<Self, L>(rows, offset, q) }
    }
}

matmul_rows!(DType::IQ4_NL, ActivationFormat::Q8_0, quantize::Q8_0, Panel32<Iq4Nl>);
