//! Q3_K weights times Q8_K activations: three bits with a zero point of 4, a signed six-bit scale for each 16
//! elements.

use weights::DType;

use super::ActivationFormat;
use super::blocks256::{Block256, Panel256, Block256Header, ZeroPoint, GroupVisitor, signed_scales};
use super::simd::{Simd, RowPointers};
use super::dispatch::matmul_rows;
use super::quantize;

/// Block layout: high bits, low two bits, packed scales, d.
struct Q3K;

const LOWER: usize = 32;
/// The last 16 bytes of the block: two of low bits, twelve of scales, d.
const TAIL: usize = 94;

impl Block256 for Q3K {
    const BYTES: usize = 110;
    const SCALES_BY_16: bool = true;
    const ZERO_POINT: ZeroPoint = ZeroPoint::Four;
    const MAX_MAGNITUDE: i32 = 7;

    #[inline(always)]
    unsafe fn header<L: Simd>(rows: &RowPointers, offset: usize) -> Block256Header<L> {
        // SAFETY: guaranteed by the caller: scales and d are the last 14 bytes of the block.
        unsafe {
            let tail = L::columns16(rows, offset + TAIL);
            let four = |i: usize| L::or(L::shift_right::<16>(tail[i]), L::shift_left::<16>(tail[i + 1]));
            let lower = [four(0), four(1)];
            let upper = four(2);
            let (nibble, two) = (L::splat(0x0F0F_0F0F), L::splat(0x3030_3030));
            let low = |v: L::I| L::and(v, nibble);
            let high = |v: L::I| L::and(L::shift_right::<4>(v), nibble);
            let mut scales = [
                L::or(low(lower[0]), L::and(L::shift_left::<4>(upper), two)),
                L::or(low(lower[1]), L::and(L::shift_left::<2>(upper), two)),
                L::or(high(lower[0]), L::and(upper, two)),
                L::or(high(lower[1]), L::and(L::shift_right::<2>(upper), two)),
            ];
            // Subtract 32: six bits with a sign, at the upper end of each byte.
            let less = |v: L::I| L::and(L::add(v, L::splat(0x2020_2020)), L::splat(0x3F3F_3F3F));
            for scales in &mut scales {
                *scales = L::shift_left::<2>(less(*scales));
            }
            signed_scales::<L, 26>(scales, L::f16_high(tail[3]))
        }
    }

    #[inline(always)]
    unsafe fn visit_groups<L: Simd, T: GroupVisitor<L>>(rows: &RowPointers, offset: usize, visitor: &mut T) {
        // SAFETY: guaranteed by the caller: 32 bytes of upper bits and 64 of lower ones at `offset`.
        unsafe {
            let upper = T::arrange(L::load_rows32(rows, offset));
            let lower = T::arrange(L::load_rows32(rows, offset + LOWER));
            visitor.visit(0, three_bits::<L, 0, 2, 0>(&lower, &upper));
            visitor.visit(1, three_bits::<L, 2, 1, 0>(&lower, &upper));
            visitor.visit(2, three_bits::<L, 4, 0, 0>(&lower, &upper));
            visitor.visit(3, three_bits::<L, 6, 0, 1>(&lower, &upper));
            let lower = T::arrange(L::load_rows32(rows, offset + LOWER + 32));
            visitor.visit(4, three_bits::<L, 0, 0, 2>(&lower, &upper));
            visitor.visit(5, three_bits::<L, 2, 0, 3>(&lower, &upper));
            visitor.visit(6, three_bits::<L, 4, 0, 4>(&lower, &upper));
            visitor.visit(7, three_bits::<L, 6, 0, 5>(&lower, &upper));
        }
    }
}

/// Combines a group: `lower` shifted down, `upper` shifted up or down so that its bit becomes the third.
///
/// # Safety
/// Same requirements as `Simd`.
#[inline(always)]
unsafe fn three_bits<L: Simd, const LOWER: u32, const UP: u32, const DOWN: u32>(
    lower: &[L::I; 8],
    upper: &[L::I; 8],
) -> [L::I; 8] {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let (two, third) = (L::splat(0x0303_0303), L::splat(0x0404_0404));
        let mut out = *lower;
        for i in 0..8 {
            let upper = L::and(L::shift_right::<DOWN>(L::shift_left::<UP>(upper[i])), third);
            out[i] = L::or(L::and(L::shift_right::<LOWER>(lower[i]), two), upper);
        }
        out
    }
}

matmul_rows!(DType::Q3_K, ActivationFormat::Q8_K, quantize::Q8_K, Panel256<Q3K>);
