//! Eight floats: AVX2 with FMA and F16C.

use std::arch::x86_64::*;

use super::formats::{PageFormat, page_kernels};
use super::rows::{RowsF16, RowsF32, RowsI4, RowsI8};
use super::{PageSimd, instructions};
use crate::ops::attention::page_operands::{PageKernels, PageQueries, ROUND, ValueWeights};

/// AVX2, FMA, F16C.
pub struct PageAvx2;

impl PageSimd for PageAvx2 {
    const LEN: usize = 8;
    type F = __m256;
    type I = __m256i;

    instructions! {
        fn zero() -> __m256 { _mm256_setzero_ps() }
        fn splat(x: f32) -> __m256 { _mm256_set1_ps(x) }
        fn load(from: *const f32) -> __m256 { _mm256_loadu_ps(from) }
        fn store(to: *mut f32, x: __m256) -> () { _mm256_storeu_ps(to, x) }
        fn mul(a: __m256, b: __m256) -> __m256 { _mm256_mul_ps(a, b) }
        fn fma(a: __m256, b: __m256, c: __m256) -> __m256 { _mm256_fmadd_ps(a, b, c) }
        fn halves(from: *const u16) -> __m256 { _mm256_cvtph_ps(_mm_loadu_si128(from.cast())) }
        fn bytes(from: *const i8) -> __m256 {
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(from.cast())))
        }
        fn nibbles(from: *const u8, shift: u32) -> __m256 {
            let bytes = _mm256_cvtepu8_epi32(_mm_loadl_epi64(from.cast()));
            let nibbles = _mm256_srl_epi32(bytes, _mm_cvtsi32_si128(shift as i32));
            let nibbles = _mm256_and_si256(nibbles, _mm256_set1_epi32(15));
            _mm256_cvtepi32_ps(_mm256_sub_epi32(nibbles, _mm256_set1_epi32(8)))
        }

        fn zero_i() -> __m256i { _mm256_setzero_si256() }
        fn to_f(x: __m256i) -> __m256 { _mm256_cvtepi32_ps(x) }
        fn splat_pair(from: *const i16) -> __m256i { _mm256_set1_epi32(from.cast::<i32>().read_unaligned()) }
        fn byte_pairs(from: *const i8) -> __m256i { _mm256_cvtepi8_epi16(_mm_loadu_si128(from.cast())) }
        fn nibble_pairs(from: *const u8, shift: u32) -> __m256i {
            let bytes = _mm256_cvtepu8_epi16(_mm_loadu_si128(from.cast()));
            let nibbles = _mm256_srl_epi16(bytes, _mm_cvtsi32_si128(shift as i32));
            _mm256_sub_epi16(_mm256_and_si256(nibbles, _mm256_set1_epi16(15)), _mm256_set1_epi16(8))
        }
        fn dot_pairs(acc: __m256i, a: __m256i, b: __m256i) -> __m256i {
            _mm256_add_epi32(acc, _mm256_madd_epi16(a, b))
        }

        fn prefetch(at: *const u8) -> () { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }
    }
}

page_kernels!(PageAvx2, "avx2,fma,f16c", avx2);
