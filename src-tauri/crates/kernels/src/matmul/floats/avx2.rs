//! Eight floats: AVX2 with FMA and F16C.

use std::arch::x86_64::*;

use super::SimdF32;
use crate::matmul::simd::instructions;

/// AVX2, FMA, F16C.
pub struct YmmF32;

impl SimdF32 for YmmF32 {
    const WIDTH: usize = 8;
    const ROWS: usize = 2;
    type F = __m256;

    instructions! {
        fn zero() -> __m256 { _mm256_setzero_ps() }
        fn f32s(from: *const u8) -> __m256 { _mm256_loadu_ps(from.cast()) }
        fn f16s(from: *const u8) -> __m256 { _mm256_cvtph_ps(_mm_loadu_si128(from.cast())) }
        fn bf16s(from: *const u8) -> __m256 {
            let wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(from.cast()));
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(wide))
        }
        fn fma(a: __m256, b: __m256, c: __m256) -> __m256 { _mm256_fmadd_ps(a, b, c) }
        fn sum_lanes(a: __m256) -> f32 {
            let four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
        }
    }
}
