//! Eight floats in two registers: NEON, which every 64-bit ARM processor has.

use std::arch::aarch64::*;
use std::arch::asm;

use super::SimdF32;
use crate::matmul::simd::instructions;

/// Two registers of four.
pub struct NeonF32;

impl SimdF32 for NeonF32 {
    const WIDTH: usize = 8;
    const ROWS: usize = 2;
    type F = (float32x4_t, float32x4_t);

    instructions! {
        fn zero() -> (float32x4_t, float32x4_t) { (vdupq_n_f32(0.0), vdupq_n_f32(0.0)) }
        fn f32s(from: *const u8) -> (float32x4_t, float32x4_t) {
            (vld1q_f32(from.cast()), vld1q_f32(from.add(16).cast()))
        }
        fn f16s(from: *const u8) -> (float32x4_t, float32x4_t) {
            let (first, second): (float32x4_t, float32x4_t);
            asm!(
                "fcvtl {first:v}.4s, {a:v}.4h",
                "fcvtl2 {second:v}.4s, {a:v}.8h",
                first = out(vreg) first, second = lateout(vreg) second, a = in(vreg) vld1q_s16(from.cast()),
                options(pure, nomem, nostack, preserves_flags)
            );
            (first, second)
        }
        fn bf16s(from: *const u8) -> (float32x4_t, float32x4_t) {
            let all = vld1q_u16(from.cast());
            let wide = |half| vreinterpretq_f32_u32(vshlq_n_u32::<16>(vmovl_u16(half)));
            (wide(vget_low_u16(all)), wide(vget_high_u16(all)))
        }
        fn fma(
            a: (float32x4_t, float32x4_t),
            b: (float32x4_t, float32x4_t),
            c: (float32x4_t, float32x4_t)
        ) -> (float32x4_t, float32x4_t) {
            (vfmaq_f32(c.0, a.0, b.0), vfmaq_f32(c.1, a.1, b.1))
        }
        fn sum_lanes(a: (float32x4_t, float32x4_t)) -> f32 {
            let four = vaddq_f32(a.0, a.1);
            let two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
            vget_lane_f32::<0>(two) + vget_lane_f32::<1>(two)
        }
    }
}
