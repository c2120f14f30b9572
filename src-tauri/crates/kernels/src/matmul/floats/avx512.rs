//! Sixteen floats: AVX-512.

use std::arch::x86_64::*;

use super::SimdF32;
use crate::matmul::simd::instructions;

/// AVX-512 F and BW.
pub struct ZmmF32;

impl SimdF32 for ZmmF32 {
    const WIDTH: usize = 16;
    const ROWS: usize = 4;
    type F = __m512;

    instructions! {
        fn zero() -> __m512 { _mm512_setzero_ps() }
        fn f32s(from: *const u8) -> __m512 { _mm512_loadu_ps(from.cast()) }
        fn f16s(from: *const u8) -> __m512 { _mm512_cvtph_ps(_mm256_loadu_si256(from.cast())) }
        fn bf16s(from: *const u8) -> __m512 {
            let wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(from.cast()));
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(wide))
        }
        fn fma(a: __m512, b: __m512, c: __m512) -> __m512 { _mm512_fmadd_ps(a, b, c) }
        fn sum_lanes(a: __m512) -> f32 {
            let eight = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps::<1>(a));
            let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
        }
    }
}
