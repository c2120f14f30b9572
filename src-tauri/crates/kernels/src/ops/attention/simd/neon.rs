//! Eight floats in two registers: NEON, which every 64-bit ARM has.

use std::arch::aarch64::*;
use std::arch::asm;

use super::formats::{PageFormat, page_kernels};
use super::rows::{RowsF16, RowsF32, RowsI4, RowsI8};
use super::{PageSimd, instructions};
use crate::ops::attention::page_operands::{PageKernels, PageQueries, ROUND, ValueWeights};

/// Two registers of four.
pub struct PageNeon;

type PageF32x8 = (float32x4_t, float32x4_t);
type PageI32x8 = (int32x4_t, int32x4_t);

/// Eight i16 as floats.
///
/// # Safety
/// As for `PageSimd`.
#[inline(always)]
unsafe fn wide(x: int16x8_t) -> PageF32x8 {
    // SAFETY: the caller's.
    unsafe { (vcvtq_f32_s32(vmovl_s16(vget_low_s16(x))), vcvtq_f32_s32(vmovl_high_s16(x))) }
}

/// acc + the dot product of the two i16 in each lane.
///
/// # Safety
/// As for `PageSimd`.
#[inline(always)]
unsafe fn dot4(acc: int32x4_t, a: int32x4_t, b: int32x4_t) -> int32x4_t {
    // SAFETY: the caller's.
    unsafe {
        let (a, b) = (vreinterpretq_s16_s32(a), vreinterpretq_s16_s32(b));
        let first = vmull_s16(vget_low_s16(a), vget_low_s16(b));
        vaddq_s32(acc, vpaddq_s32(first, vmull_high_s16(a, b)))
    }
}

impl PageSimd for PageNeon {
    const LEN: usize = 8;
    type F = PageF32x8;
    type I = PageI32x8;

    instructions! {
        fn zero() -> PageF32x8 { Self::splat(0.0) }
        fn splat(x: f32) -> PageF32x8 { (vdupq_n_f32(x), vdupq_n_f32(x)) }
        fn load(from: *const f32) -> PageF32x8 { (vld1q_f32(from), vld1q_f32(from.add(4))) }
        fn store(to: *mut f32, x: PageF32x8) -> () {
            vst1q_f32(to, x.0);
            vst1q_f32(to.add(4), x.1);
        }
        fn mul(a: PageF32x8, b: PageF32x8) -> PageF32x8 { (vmulq_f32(a.0, b.0), vmulq_f32(a.1, b.1)) }
        fn fma(a: PageF32x8, b: PageF32x8, c: PageF32x8) -> PageF32x8 { (vfmaq_f32(c.0, a.0, b.0), vfmaq_f32(c.1, a.1, b.1)) }
        fn halves(from: *const u16) -> PageF32x8 {
            let (first, second): (float32x4_t, float32x4_t);
            asm!(
                "fcvtl {first:v}.4s, {a:v}.4h",
                "fcvtl2 {second:v}.4s, {a:v}.8h",
                first = out(vreg) first, second = lateout(vreg) second, a = in(vreg) vld1q_u16(from),
                options(pure, nomem, nostack, preserves_flags)
            );
            (first, second)
        }
        fn bytes(from: *const i8) -> PageF32x8 { wide(vmovl_s8(vld1_s8(from))) }
        fn nibbles(from: *const u8, shift: u32) -> PageF32x8 {
            let nibbles = vand_u8(vshl_u8(vld1_u8(from), vdup_n_s8(-(shift as i8))), vdup_n_u8(15));
            wide(vsubq_s16(vreinterpretq_s16_u16(vmovl_u8(nibbles)), vdupq_n_s16(8)))
        }

        fn zero_i() -> PageI32x8 { (vdupq_n_s32(0), vdupq_n_s32(0)) }
        fn to_f(x: PageI32x8) -> PageF32x8 { (vcvtq_f32_s32(x.0), vcvtq_f32_s32(x.1)) }
        fn splat_pair(from: *const i16) -> PageI32x8 {
            let pair = vdupq_n_s32(from.cast::<i32>().read_unaligned());
            (pair, pair)
        }
        fn byte_pairs(from: *const i8) -> PageI32x8 {
            let bytes = vld1q_s8(from);
            let pairs = |x| vreinterpretq_s32_s16(x);
            (pairs(vmovl_s8(vget_low_s8(bytes))), pairs(vmovl_high_s8(bytes)))
        }
        fn nibble_pairs(from: *const u8, shift: u32) -> PageI32x8 {
            let nibbles = vandq_u8(vshlq_u8(vld1q_u8(from), vdupq_n_s8(-(shift as i8))), vdupq_n_u8(15));
            let pairs = |x| vreinterpretq_s32_s16(vsubq_s16(vreinterpretq_s16_u16(x), vdupq_n_s16(8)));
            (pairs(vmovl_u8(vget_low_u8(nibbles))), pairs(vmovl_high_u8(nibbles)))
        }
        fn dot_pairs(acc: PageI32x8, a: PageI32x8, b: PageI32x8) -> PageI32x8 {
            (dot4(acc.0, a.0, b.0), dot4(acc.1, a.1, b.1))
        }

        fn prefetch(at: *const u8) -> () {
            asm!("prfm pldl2keep, [{at}]", at = in(reg) at, options(nostack, preserves_flags, readonly));
        }
    }
}

page_kernels!(PageNeon, "neon", neon);
