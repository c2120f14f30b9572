//! IQ4_NL weights times Q8_0 activations: nibbles index a table of unevenly spaced values.

use weights::DType;
use weights::quant::iq4_nl::CODES;

use super::ActivationFormat;
use super::blocks32::{Block32, Panel32, LEN, dot_integers};
use super::simd::{Simd, RowPointers};
use super::dispatch::matmul_rows;
use super::quantize;

/// Block layout: scale, then 16 bytes, with the first half in the low nibbles.
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
        // SAFETY: guaranteed by the caller: 18 bytes at `offset`.
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
        // SAFETY: guaranteed by the caller.
        unsafe { dot_integers::<Self, L>(rows, offset, q) }
    }
}

matmul_rows!(DType::IQ4_NL, ActivationFormat::Q8_0, quantize::Q8_0, Panel32<Iq4Nl>);
