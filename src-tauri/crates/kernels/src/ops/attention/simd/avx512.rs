//! Sixteen floats: AVX-512 with VNNI.

use std::arch::x86_64::*;

use super::formats::{PageFormat, page_kernels};
use super::rows::{RowsF16, RowsF32, RowsI4, RowsI8};
use super::{PageSimd, instructions};
use crate::ops::attention::page_operands::{PageKernels, PageQueries, ROUND, ValueWeights};

/// AVX-512 F, BW, VL, DQ, VNNI.
pub struct PageAvx512;

impl PageSimd for PageAvx512 {
    const LEN: usize = 16;
    type F = __m512;
    type I = __m512i;

    instructions! {
        fn zero() -> __m512 { _mm512_setzero_ps() }
        fn splat(x: f32) -> __m512 { _mm512_set1_ps(x) }
        fn load(from: *const f32) -> __m512 { _mm512_loadu_ps(from) }
        fn store(to: *mut f32, x: __m512) -> () { _mm512_storeu_ps(to, x) }
        fn mul(a: __m512, b: __m512) -> __m512 { _mm512_mul_ps(a, b) }
        fn fma(a: __m512, b: __m512, c: __m512) -> __m512 { _mm512_fmadd_ps(a, b, c) }
        fn halves(from: *const u16) -> __m512 { _mm512_cvtph_ps(_mm256_loadu_si256(from.cast())) }
        fn bytes(from: *const i8) -> __m512 {
            _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(from.cast())))
        }
        fn nibbles(from: *const u8, shift: u32) -> __m512 {
            // The table is looked up by the low four bits of each lane.
            let table = _mm512_setr_ps(
                -8.0, -7.0, -6.0, -5.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0,
            );
            let bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128(from.cast()));
            let nibbles = _mm512_srl_epi32(bytes, _mm_cvtsi32_si128(shift as i32));
            _mm512_permutexvar_ps(nibbles, table)
        }

        fn zero_i() -> __m512i { _mm512_setzero_si512() }
        fn to_f(x: __m512i) -> __m512 { _mm512_cvtepi32_ps(x) }
        fn splat_pair(from: *const i16) -> __m512i { _mm512_set1_epi32(from.cast::<i32>().read_unaligned()) }
        fn byte_pairs(from: *const i8) -> __m512i { _mm512_cvtepi8_epi16(_mm256_loadu_si256(from.cast())) }
        fn nibble_pairs(from: *const u8, shift: u32) -> __m512i {
            let bytes = _mm512_cvtepu8_epi16(_mm256_loadu_si256(from.cast()));
            let nibbles = _mm512_srl_epi16(bytes, _mm_cvtsi32_si128(shift as i32));
            _mm512_sub_epi16(_mm512_and_si512(nibbles, _mm512_set1_epi16(15)), _mm512_set1_epi16(8))
        }
        fn dot_pairs(acc: __m512i, a: __m512i, b: __m512i) -> __m512i { _mm512_dpwssd_epi32(acc, a, b) }

        fn prefetch(at: *const u8) -> () { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }
    }
}

page_kernels!(PageAvx512, "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni", avx512);
