//! Q2_K weights times Q8_K activations: two bits per element, a four-bit scale and min for each 16 elements.

use weights::DType;

use super::ActivationFormat;
use super::blocks256::{Block256, Panel256, Block256Header, ZeroPoint, GroupVisitor};
use super::simd::{Simd, RowPointers};
use super::dispatch::matmul_rows;
use super::quantize;

/// Block layout: a byte of scale and min for each 16 elements, two bits each, d, dmin.
struct Q2K;

const QUANTS: usize = 16;
const D_AT: usize = 80;
const DMIN_AT: usize = 82;

impl Block256 for Q2K {
    const BYTES: usize = 84;
    const SCALES_BY_16: bool = true;
    const ZERO_POINT: ZeroPoint = ZeroPoint::Mins;
    const MAX_MAGNITUDE: i32 = 3;

    #[inline(always)]
    unsafe fn header<L: Simd>(rows: &RowPointers, offset: usize) -> Block256Header<L> {
        // SAFETY: guaranteed by the caller: 16 bytes at `offset`; d and dmin are the last four of the block.
        unsafe {
            let bytes = L::columns16(rows, offset);
            let mut header = Block256Header {
                scales: [L::zero(); 16],
                offsets: [L::zero(); 8],
                d: L::load_f16(rows, offset + D_AT),
                dmin: L::mul_f(L::load_f16(rows, offset + DMIN_AT), L::splat_f(-1.0)),
            };
            let nibble = L::splat(15);
            for i in 0..4 {
                let mut rest = bytes[i];
                let mut mins = [L::zero(); 4];
                for j in 0..4 {
                    header.scales[i * 4 + j] = L::and(rest, nibble);
                    mins[j] = L::and(L::shift_right::<4>(rest), nibble);
                    rest = L::shift_right::<8>(rest);
                }
                header.offsets[i * 2] = L::or(mins[0], L::shift_left::<16>(mins[1]));
                header.offsets[i * 2 + 1] = L::or(mins[2], L::shift_left::<16>(mins[3]));
            }
            header
        }
    }

    #[inline(always)]
    unsafe fn visit_groups<L: Simd, T: GroupVisitor<L>>(rows: &RowPointers, offset: usize, visitor: &mut T) {
        // SAFETY: guaranteed by the caller: 64 bytes of integers at `offset` + 16.
        unsafe {
            let two = L::splat(0x0303_0303);
            for half in 0..2 {
                let mut bytes = T::arrange(L::load_rows32(rows, offset + QUANTS + half * 32));
                for group in 0..4 {
                    let mut out = bytes;
                    for i in 0..8 {
                        out[i] = L::and(bytes[i], two);
                        bytes[i] = L::shift_right::<2>(bytes[i]);
                    }
                    visitor.visit(half * 4 + group, out);
                }
            }
        }
    }
}

matmul_rows!(DType::Q2_K, ActivationFormat::Q8_K, quantize::Q8_K, Panel256<Q2K>);
