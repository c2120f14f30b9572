//! Q6_K weights times Q8_K activations: six bits with an offset of 32, a signed scale for each 16.

use weights::DType;

use super::ActFormat;
use super::blocks256::{Block256, Blocks256, Header, Offset, Take, signed_scales};
use super::lanes::{Lanes, RowPointers};
use super::panel::matmul_rows;
use super::quantize;

/// Low nibbles, upper two bits, scales, factor.
struct Q6K;

const HIGH: usize = 128;
const SCALES: usize = 192;
const FACTOR: usize = 208;

impl Block256 for Q6K {
    const BYTES: usize = 210;
    const SCALES_BY_16: bool = true;
    const OFFSET: Offset = Offset::ThirtyTwo;

    #[inline(always)]
    unsafe fn header<L: Lanes>(rows: &RowPointers, offset: usize) -> Header<L> {
        // SAFETY: the caller's: scales and factor are the last 18 bytes of the block.
        unsafe {
            let scales = L::columns16(rows, offset + SCALES);
            signed_scales::<L, 24>(scales, L::halves(rows, offset + FACTOR))
        }
    }

    #[inline(always)]
    unsafe fn groups<L: Lanes, T: Take<L>>(rows: &RowPointers, offset: usize, take: &mut T) {
        // SAFETY: the caller's: 128 bytes of nibbles and 64 of upper bits at `offset`.
        unsafe {
            let (four, upper) = (L::splat(0x0F0F_0F0F), L::splat(0x3030_3030));
            for half in 0..2 {
                let h = T::arrange(L::rows32(rows, offset + HIGH + half * 32));
                let a = T::arrange(L::rows32(rows, offset + half * 64));
                let mut out = a;
                for i in 0..8 {
                    out[i] = L::or(L::and(a[i], four), L::and(L::shift_left::<4>(h[i]), upper));
                }
                take.group(half * 4, out);
                for i in 0..8 {
                    out[i] = L::or(L::and(L::shift_right::<4>(a[i]), four), L::and(h[i], upper));
                }
                take.group(half * 4 + 2, out);
                let b = T::arrange(L::rows32(rows, offset + half * 64 + 32));
                for i in 0..8 {
                    out[i] = L::or(L::and(b[i], four), L::and(L::shift_left::<2>(h[i]), upper));
                }
                take.group(half * 4 + 1, out);
                for i in 0..8 {
                    let upper = L::and(L::shift_right::<2>(h[i]), upper);
                    out[i] = L::or(L::and(L::shift_right::<4>(b[i]), four), upper);
                }
                take.group(half * 4 + 3, out);
            }
        }
    }
}

matmul_rows!(DType::Q6_K, ActFormat::Q8_K, quantize::Q8_K, Blocks256<Q6K>);
