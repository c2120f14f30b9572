//! Eight lanes in two registers: NEON, which every 64-bit ARM processor has, with or without `sdot` and
//! `smmla`.
//! All variants give the same integers and differ in speed only.

#![allow(clippy::needless_range_loop)] // counted loops over registers unroll; iterators may not

use std::arch::aarch64::*;
use std::arch::asm;

use super::{Simd, RowPointers, instructions};

/// NEON; with `DOT` also `sdot`, with `HAS_SMMLA` also `smmla`.
pub struct NeonI32<const DOT: bool, const HAS_SMMLA: bool>;

/// Lanes 0 to 3, lanes 4 to 7.
type I32x8 = (int32x4_t, int32x4_t);
type F32x8 = (float32x4_t, float32x4_t);

impl<const DOT: bool, const HAS_SMMLA: bool> NeonI32<DOT, HAS_SMMLA> {
    instructions! {
        /// Returns acc + the dot product of the four bytes in each lane.
        fn dot4(acc: int32x4_t, w: int8x16_t, a: int8x16_t) -> int32x4_t {
            if DOT {
                let mut sum = acc;
                asm!(
                    ".arch_extension dotprod",
                    "sdot {sum:v}.4s, {w:v}.16b, {a:v}.16b",
                    sum = inout(vreg) sum, w = in(vreg) w, a = in(vreg) a,
                    options(pure, nomem, nostack, preserves_flags)
                );
                return sum;
            }
            // a product is at most 128 · 127 < 2¹⁵, and pairs are added in 32 bits
            let first = vpaddlq_s16(vmull_s8(vget_low_s8(w), vget_low_s8(a)));
            let second = vpaddlq_s16(vmull_high_s8(w, a));
            vaddq_s32(acc, vpaddq_s32(first, second))
        }

        /// Returns acc + two rows of eight bytes times two tokens: lane 2r + t is row r times token t.
        fn smmla4(acc: int32x4_t, w: int8x16_t, a: int8x16_t) -> int32x4_t {
            let mut sum = acc;
            asm!(
                ".arch_extension i8mm",
                "smmla {sum:v}.4s, {w:v}.16b, {a:v}.16b",
                sum = inout(vreg) sum, w = in(vreg) w, a = in(vreg) a,
                options(pure, nomem, nostack, preserves_flags)
            );
            sum
        }

        fn bytes_of(a: int32x4_t) -> int8x16_t { vreinterpretq_s8_s32(a) }
        fn lanes_of(a: int8x16_t) -> int32x4_t { vreinterpretq_s32_s8(a) }
        fn load16(from: *const u8) -> int8x16_t { vld1q_s8(from.cast()) }

        /// Returns the low nibbles.
        fn low4(a: int8x16_t) -> int8x16_t { vandq_s8(a, vdupq_n_s8(15)) }
        /// Returns the high nibbles.
        fn high4(a: int8x16_t) -> int8x16_t { vreinterpretq_s8_u8(vshrq_n_u8::<4>(vreinterpretq_u8_s8(a))) }

        /// Sums registers: lane i becomes the sum of the four lanes of register i.
        fn sum4(a: int32x4_t, b: int32x4_t, c: int32x4_t, d: int32x4_t) -> int32x4_t {
            vpaddq_s32(vpaddq_s32(a, b), vpaddq_s32(c, d))
        }

        fn transpose4(v: [int32x4_t; 4]) -> [int32x4_t; 4] {
            let wide = |a: int32x4_t| vreinterpretq_s64_s32(a);
            let narrow = |a: int64x2_t| vreinterpretq_s32_s64(a);
            let (a, b) = (wide(vtrn1q_s32(v[0], v[1])), wide(vtrn2q_s32(v[0], v[1])));
            let (c, d) = (wide(vtrn1q_s32(v[2], v[3])), wide(vtrn2q_s32(v[2], v[3])));
            [
                narrow(vtrn1q_s64(a, c)),
                narrow(vtrn1q_s64(b, d)),
                narrow(vtrn2q_s64(a, c)),
                narrow(vtrn2q_s64(b, d)),
            ]
        }

        /// Interleaves 32 bytes of two rows by eight bytes.
        fn eights(a: I32x8, b: I32x8) -> [int32x4_t; 4] {
            let wide = |a: int32x4_t| vreinterpretq_s64_s32(a);
            let narrow = |a: int64x2_t| vreinterpretq_s32_s64(a);
            [
                narrow(vtrn1q_s64(wide(a.0), wide(b.0))),
                narrow(vtrn2q_s64(wide(a.0), wide(b.0))),
                narrow(vtrn1q_s64(wide(a.1), wide(b.1))),
                narrow(vtrn2q_s64(wide(a.1), wide(b.1))),
            ]
        }

        /// Arranges rows for `smmla`: registers 2i, 2i + 1 are bytes 8i..8i+8 of all rows, one after the
        /// other.
        fn smmla_layout(rows: [I32x8; 8]) -> [I32x8; 8] {
            let mut out = rows;
            for half in 0..2 {
                let first = Self::eights(rows[4 * half], rows[4 * half + 1]);
                let second = Self::eights(rows[4 * half + 2], rows[4 * half + 3]);
                for i in 0..4 {
                    out[2 * i + half] = (first[i], second[i]);
                }
            }
            out
        }

        /// Converts four f16.
        fn halves4(a: int16x4_t) -> float32x4_t {
            let out: float32x4_t;
            asm!(
                "fcvtl {out:v}.4s, {a:v}.4h",
                out = out(vreg) out, a = in(vreg) a,
                options(pure, nomem, nostack, preserves_flags)
            );
            out
        }

        /// Multiplies 16 bytes of each row, as 32 nibbles or their `table` entries, with 32 activations.
        fn dots(rows: &RowPointers, offset: usize, a: *const u8, table: Option<int8x16_t>) -> I32x8 {
            let (first, second) = (Self::load16(a), Self::load16(a.add(16)));
            let mut dots = [vdupq_n_s32(0); 8];
            for i in 0..8 {
                let both = Self::load16(rows[i].add(offset));
                let (mut low, mut high) = (Self::low4(both), Self::high4(both));
                if let Some(table) = table {
                    low = vqtbl1q_s8(table, vreinterpretq_u8_s8(low));
                    high = vqtbl1q_s8(table, vreinterpretq_u8_s8(high));
                }
                dots[i] = Self::dot4(Self::dot4(dots[i], low, first), high, second);
            }
            (Self::sum4(dots[0], dots[1], dots[2], dots[3]), Self::sum4(dots[4], dots[5], dots[6], dots[7]))
        }
    }
}

impl<const DOT: bool, const HAS_SMMLA: bool> Simd for NeonI32<DOT, HAS_SMMLA> {
    const ROWS: usize = 8;
    const PANELS: usize = 1;
    const I16_SUMS: bool = false;
    const HAS_SMMLA: bool = HAS_SMMLA;
    const SIGNED_BIAS: i32 = 0;
    type I = I32x8;
    type F = F32x8;

    instructions! {
        fn zero() -> I32x8 { Self::splat(0) }
        fn zero_f() -> F32x8 { Self::splat_f(0.0) }
        fn splat(v: i32) -> I32x8 { (vdupq_n_s32(v), vdupq_n_s32(v)) }
        fn splat_f(v: f32) -> F32x8 { (vdupq_n_f32(v), vdupq_n_f32(v)) }
        fn load(from: *const i32) -> I32x8 { (vld1q_s32(from), vld1q_s32(from.add(4))) }
        fn store(to: *mut i32, v: I32x8) -> () {
            vst1q_s32(to, v.0);
            vst1q_s32(to.add(4), v.1);
        }
        fn load_f(from: *const f32) -> F32x8 { (vld1q_f32(from), vld1q_f32(from.add(4))) }
        fn store_f(to: *mut f32, v: F32x8) -> () {
            vst1q_f32(to, v.0);
            vst1q_f32(to.add(4), v.1);
        }
        fn add(a: I32x8, b: I32x8) -> I32x8 { (vaddq_s32(a.0, b.0), vaddq_s32(a.1, b.1)) }
        fn sub(a: I32x8, b: I32x8) -> I32x8 { (vsubq_s32(a.0, b.0), vsubq_s32(a.1, b.1)) }
        fn mul(a: I32x8, b: I32x8) -> I32x8 { (vmulq_s32(a.0, b.0), vmulq_s32(a.1, b.1)) }
        fn and(a: I32x8, b: I32x8) -> I32x8 { (vandq_s32(a.0, b.0), vandq_s32(a.1, b.1)) }
        fn or(a: I32x8, b: I32x8) -> I32x8 { (vorrq_s32(a.0, b.0), vorrq_s32(a.1, b.1)) }
        fn shift_left<const N: u32>(a: I32x8) -> I32x8 {
            let by = vdupq_n_s32(N as i32);
            (vshlq_s32(a.0, by), vshlq_s32(a.1, by))
        }
        fn shift_right<const N: u32>(a: I32x8) -> I32x8 {
            let by = vdupq_n_s32(-(N as i32));
            let shift = |a: int32x4_t| vreinterpretq_s32_u32(vshlq_u32(vreinterpretq_u32_s32(a), by));
            (shift(a.0), shift(a.1))
        }
        fn shift_right_signed<const N: u32>(a: I32x8) -> I32x8 {
            let by = vdupq_n_s32(-(N as i32));
            (vshlq_s32(a.0, by), vshlq_s32(a.1, by))
        }
        fn to_f(a: I32x8) -> F32x8 { (vcvtq_f32_s32(a.0), vcvtq_f32_s32(a.1)) }
        fn mul_f(a: F32x8, b: F32x8) -> F32x8 { (vmulq_f32(a.0, b.0), vmulq_f32(a.1, b.1)) }
        fn fma(a: F32x8, b: F32x8, c: F32x8) -> F32x8 { (vfmaq_f32(c.0, a.0, b.0), vfmaq_f32(c.1, a.1, b.1)) }
        fn f16_low(a: I32x8) -> F32x8 {
            (Self::halves4(vmovn_s32(a.0)), Self::halves4(vmovn_s32(a.1)))
        }
        fn f16_high(a: I32x8) -> F32x8 {
            (Self::halves4(vshrn_n_s32::<16>(a.0)), Self::halves4(vshrn_n_s32::<16>(a.1)))
        }
        fn load_f16(rows: &RowPointers, offset: usize) -> F32x8 {
            let at = |i: usize| rows[i].add(offset).cast::<i16>().read_unaligned();
            let all = [at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)];
            (Self::halves4(vld1_s16(all.as_ptr())), Self::halves4(vld1_s16(all.as_ptr().add(4))))
        }
        fn load_bytes(rows: &RowPointers, offset: usize) -> I32x8 {
            let at = |i: usize| i32::from(rows[i].add(offset).read());
            Self::load([at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)].as_ptr())
        }
        fn bitcast_f(a: I32x8) -> F32x8 { (vreinterpretq_f32_s32(a.0), vreinterpretq_f32_s32(a.1)) }
        fn load_table(codes: &[i8; 16]) -> I32x8 {
            let table = Self::lanes_of(vld1q_s8(codes.as_ptr()));
            (table, table)
        }
        fn lookup(table: I32x8, indices: I32x8) -> I32x8 {
            let index = |a: int32x4_t| vreinterpretq_u8_s32(a);
            let first = vqtbl1q_s8(Self::bytes_of(table.0), index(indices.0));
            let second = vqtbl1q_s8(Self::bytes_of(table.1), index(indices.1));
            (Self::lanes_of(first), Self::lanes_of(second))
        }

        fn prefetch(at: *const u8) -> () {
            asm!("prfm pldl2keep, [{at}]", at = in(reg) at, options(nostack, preserves_flags, readonly));
        }

        fn dot(acc: I32x8, w: I32x8, a: I32x8) -> I32x8 {
            let dot = |acc, w, a| Self::dot4(acc, Self::bytes_of(w), Self::bytes_of(a));
            (dot(acc.0, w.0, a.0), dot(acc.1, w.1, a.1))
        }
        fn bias_signed(w: I32x8) -> I32x8 { w }
        fn dot_signed(acc: I32x8, w: I32x8, a: I32x8) -> I32x8 { Self::dot(acc, w, a) }
        fn store_scale(to: *mut i32, scale: I32x8) -> () {
            if !HAS_SMMLA {
                return Self::store(to, scale);
            }
            let twice = |a: int32x4_t| (vzip1q_s32(a, a), vzip2q_s32(a, a));
            Self::store(to, twice(scale.0));
            Self::store(to.add(8), twice(scale.1));
        }
        fn smmla(acc: I32x8, w: I32x8, a: I32x8) -> I32x8 {
            let multiply = |acc, w, a| Self::smmla4(acc, Self::bytes_of(w), Self::bytes_of(a));
            (multiply(acc.0, w.0, a.0), multiply(acc.1, w.1, a.1))
        }
        fn splat_pair(from: *const i32) -> I32x8 {
            let both = vreinterpretq_s32_s64(vdupq_n_s64(from.cast::<i64>().read_unaligned()));
            (both, both)
        }
        fn split_tokens(first: I32x8, second: I32x8) -> [I32x8; 2] {
            [
                (vuzp1q_s32(first.0, first.1), vuzp1q_s32(second.0, second.1)),
                (vuzp2q_s32(first.0, first.1), vuzp2q_s32(second.0, second.1)),
            ]
        }
        fn dot_pairs(acc: I32x8, w: I32x8, a: I32x8) -> I32x8 {
            let dot = |acc, w: int32x4_t, a: int32x4_t| {
                let (w, a) = (vreinterpretq_s16_s32(w), vreinterpretq_s16_s32(a));
                let first = vmull_s16(vget_low_s16(w), vget_low_s16(a));
                vaddq_s32(acc, vpaddq_s32(first, vmull_high_s16(w, a)))
            };
            (dot(acc.0, w.0, a.0), dot(acc.1, w.1, a.1))
        }

        fn broadcast32(from: *const u8) -> I32x8 {
            (Self::lanes_of(Self::load16(from)), Self::lanes_of(Self::load16(from.add(16))))
        }
        fn load_rows32(rows: &RowPointers, offset: usize) -> [I32x8; 8] {
            let mut out = [Self::zero(); 8];
            for i in 0..8 {
                out[i] = Self::broadcast32(rows[i].add(offset));
            }
            out
        }
        fn nibbles32(rows: &RowPointers, offset: usize) -> [I32x8; 8] {
            let mut out = [Self::zero(); 8];
            for i in 0..8 {
                let both = Self::load16(rows[i].add(offset));
                out[i] = (Self::lanes_of(Self::low4(both)), Self::lanes_of(Self::high4(both)));
            }
            out
        }
        fn bits32(rows: &RowPointers, offset: usize) -> [I32x8; 8] {
            let bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040_2010_0804_0201));
            let spread = |first: u64, second: u64| {
                const EACH: u64 = 0x0101_0101_0101_0101;
                vreinterpretq_u8_u64(vcombine_u64(vcreate_u64(first * EACH), vcreate_u64(second * EACH)))
            };
            let (first, second) = (spread(0, 1), spread(2, 3));
            let mut out = [Self::zero(); 8];
            for i in 0..8 {
                let all = rows[i].add(offset).cast::<u32>().read_unaligned();
                let all = vreinterpretq_u8_u32(vdupq_n_u32(all));
                let test = |spread| vreinterpretq_s32_u8(vtstq_u8(vqtbl1q_u8(all, spread), bit));
                out[i] = (test(first), test(second));
            }
            out
        }
        fn dot_nibbles(rows: &RowPointers, offset: usize, a: *const u8) -> I32x8 {
            Self::dots(rows, offset, a, None)
        }
        fn dot_codes(rows: &RowPointers, offset: usize, a: *const u8, table: I32x8) -> I32x8 {
            Self::dots(rows, offset, a, Some(Self::bytes_of(table.0)))
        }
        fn columns16(rows: &RowPointers, offset: usize) -> [I32x8; 4] {
            let at = |i: usize| Self::lanes_of(Self::load16(rows[i].add(offset)));
            let first = Self::transpose4([at(0), at(1), at(2), at(3)]);
            let second = Self::transpose4([at(4), at(5), at(6), at(7)]);
            let mut out = [Self::zero(); 4];
            for j in 0..4 {
                out[j] = (first[j], second[j]);
            }
            out
        }
        fn transpose(rows: [I32x8; 8]) -> [I32x8; 8] {
            if HAS_SMMLA {
                return Self::smmla_layout(rows);
            }
            let mut out = [Self::zero(); 8];
            let first = Self::transpose4([rows[0].0, rows[1].0, rows[2].0, rows[3].0]);
            let second = Self::transpose4([rows[4].0, rows[5].0, rows[6].0, rows[7].0]);
            for j in 0..4 {
                out[j] = (first[j], second[j]);
            }
            let first = Self::transpose4([rows[0].1, rows[1].1, rows[2].1, rows[3].1]);
            let second = Self::transpose4([rows[4].1, rows[5].1, rows[6].1, rows[7].1]);
            for j in 0..4 {
                out[4 + j] = (first[j], second[j]);
            }
            out
        }
        fn reduce(rows: [I32x8; 8]) -> (I32x8, I32x8) {
            let r = rows;
            (
                (Self::sum4(r[0].0, r[1].0, r[2].0, r[3].0), Self::sum4(r[4].0, r[5].0, r[6].0, r[7].0)),
                (Self::sum4(r[0].1, r[1].1, r[2].1, r[3].1), Self::sum4(r[4].1, r[5].1, r[6].1, r[7].1)),
            )
        }
    }
}
