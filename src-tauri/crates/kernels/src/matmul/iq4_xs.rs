//! IQ4_XS weights times Q8_K activations: nibbles index a table of unevenly spaced values, a signed six-bit
//! scale for each 32 elements.

use weights::DType;
use weights::quant::iq4_nl::CODES;

use super::ActivationFormat;
use super::blocks256::{Block256, Panel256, Block256Header, ZeroPoint, GroupVisitor};
use super::simd::{Simd, RowPointers};
use super::dispatch::matmul_rows;
use super::quantize;

/// Block layout: d, high bits of the scales, low bits, nibbles.
struct Iq4Xs;

const QUANTS: usize = 8;

impl Block256 for Iq4Xs {
    const BYTES: usize = 136;
    const SCALES_BY_16: bool = false;
    const ZERO_POINT: ZeroPoint = ZeroPoint::Signed;
    const MAX_MAGNITUDE: i32 = 127;

    #[inline(always)]
    unsafe fn header<L: Simd>(rows: &RowPointers, offset: usize) -> Block256Header<L> {
        // SAFETY: guaranteed by the caller: 8 bytes of header and more at `offset`.
        unsafe {
            let [first, mut lower, _, _] = L::columns16(rows, offset);
            let mut upper = L::shift_right::<16>(first);
            let mut header = Block256Header {
                scales: [L::zero(); 16],
                offsets: [L::zero(); 8],
                d: L::f16_low(first),
                dmin: L::zero_f(),
            };
            let (nibble, two, half) = (L::splat(15), L::splat(3), L::splat(32));
            for group in 0..8 {
                let stored = L::or(L::and(lower, nibble), L::shift_left::<4>(L::and(upper, two)));
                let scale = L::sub(stored, half);
                header.scales[group * 2] = scale;
                header.offsets[group] =
                    L::or(L::and(scale, L::splat(0xFFFF)), L::shift_left::<16>(scale));
                lower = L::shift_right::<4>(lower);
                upper = L::shift_right::<2>(upper);
            }
            header
        }
    }

    #[inline(always)]
    unsafe fn visit_groups<L: Simd, T: GroupVisitor<L>>(rows: &RowPointers, offset: usize, visitor: &mut T) {
        // SAFETY: guaranteed by the caller: 128 bytes of nibbles after the header.
        unsafe {
            let table = L::bias_signed(L::load_table(&CODES));
            for group in 0..8 {
                let mut codes = T::arrange(L::nibbles32(rows, offset + QUANTS + group * 16));
                for code in &mut codes {
                    *code = L::lookup(table, *code);
                }
                visitor.visit(group, codes);
            }
        }
    }
}

matmul_rows!(DType::IQ4_XS, ActivationFormat::Q8_K, quantize::Q8_K, Panel256<Iq4Xs>);
