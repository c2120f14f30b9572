//! Q3_K weights times Q8_K activations: three bits with an offset of 4, a signed six-bit scale for each 16.

use weights::DType;

use super::ActFormat;
use super::blocks256::{Block256, Blocks256, Header, Offset, Take, signed_scales};
use super::lanes::{Lanes, RowPointers};
use super::panel::matmul_rows;
use super::quantize;

/// Upper bits, lower two bits, packed scales, factor.
struct Q3K;

const LOWER: usize = 32;
/// The last 16 bytes of the block: two of the lower bits, twelve of scales, the factor.
const TAIL: usize = 94;

impl Block256 for Q3K {
    const BYTES: usize = 110;
    const SCALES_BY_16: bool = true;
    const OFFSET: Offset = Offset::Four;

    #[inline(always)]
    unsafe fn header<L: Lanes>(rows: &RowPointers, offset: usize) -> Header<L> {
        // SAFETY: the caller's: scales and factor are the last 14 bytes of the block.
        unsafe {
            let tail = L::columns16(rows, offset + TAIL);
            let four = |i: usize| L::or(L::shift_right::<16>(tail[i]), L::shift_left::<16>(tail[i + 1]));
            let lower = [four(0), four(1)];
            let upper = four(2);
            let (nibble, two) = (L::splat(0x0F0F_0F0F), L::splat(0x3030_3030));
            let low = |v: L::I| L::and(v, nibble);
            let high = |v: L::I| L::and(L::shift_right::<4>(v), nibble);
            let scales = [
                L::or(low(lower[0]), L::and(L::shift_left::<4>(upper), two)),
                L::or(low(lower[1]), L::and(L::shift_left::<2>(upper), two)),
                L::or(high(lower[0]), L::and(upper, two)),
                L::or(high(lower[1]), L::and(L::shift_right::<2>(upper), two)),
            ];
            // Less 32, as six bits with a sign, at the upper end of each byte.
            let less = |v: L::I| L::and(L::add(v, L::splat(0x2020_2020)), L::splat(0x3F3F_3F3F));
            let scales = scales.map(|v| L::shift_left::<2>(less(v)));
            signed_scales::<L, 26>(scales, L::high_half(tail[3]))
        }
    }

    #[inline(always)]
    unsafe fn groups<L: Lanes, T: Take<L>>(rows: &RowPointers, offset: usize, take: &mut T) {
        // SAFETY: the caller's: 32 bytes of upper bits and 64 of lower ones at `offset`.
        unsafe {
            let (two, third) = (L::splat(0x0303_0303), L::splat(0x0404_0404));
            let upper = T::arrange(L::rows32(rows, offset));
            for half in 0..2 {
                // Bit 2 of each byte is that of the next group.
                let mut upper = upper;
                for upper in &mut upper {
                    *upper =
                        if half == 0 { L::shift_left::<2>(*upper) } else { L::shift_right::<2>(*upper) };
                }
                let mut lower = T::arrange(L::rows32(rows, offset + LOWER + half * 32));
                for group in 0..4 {
                    let mut out = lower;
                    for i in 0..8 {
                        out[i] = L::or(L::and(lower[i], two), L::and(upper[i], third));
                        lower[i] = L::shift_right::<2>(lower[i]);
                        upper[i] = L::shift_right::<1>(upper[i]);
                    }
                    take.group(half * 4 + group, out);
                }
            }
        }
    }
}

matmul_rows!(DType::Q3_K, ActFormat::Q8_K, quantize::Q8_K, Blocks256<Q3K>);
