//! AVX2 packing: 8 × 8 transposition of 4-byte groups.

use std::arch::x86_64::*;

use super::{BlockQ8_0x8, BlockQ8Kx8, PACK_TOKENS, PerToken, QuantsX8, token_rows_q8_0, token_rows_q8_k};
use crate::matmul::Activations;
use crate::matmul::simd::avx2::YmmI32;
use crate::matmul::simd::{MAX_ROWS, RowPointers, Simd};

/// Packing multiplies nothing, so VNNI does not matter.
type PackSimd = YmmI32<false>;

/// AVX2 version of the parent's function.
#[target_feature(enable = "avx2,fma,f16c")]
pub fn pack_q8_0(acts: &Activations, first: usize, out: &mut [BlockQ8_0x8]) {
    let rows = token_rows_q8_0(acts, first, out.len());
    for (b, block) in out.iter_mut().enumerate() {
        let mut q = [std::ptr::null(); MAX_ROWS];
        for (t, (bytes, scales, sums)) in rows.iter().enumerate() {
            q[t] = bytes[b].as_ptr().cast();
            block.scales[t] = scales[b];
            block.sums[t] = sums[b] * -128;
        }
        // SAFETY: compiled for AVX2; 32 bytes lie at each of eight pointers, and `i16_sums` holds a register.
        unsafe {
            let [first, second] = pack_quants(&q, &mut block.q);
            _mm256_storeu_si256(block.i16_sums.as_mut_ptr().cast(), _mm256_add_epi16(first, second));
        }
    }
}

/// AVX2 version of the parent's function.
#[target_feature(enable = "avx2,fma,f16c")]
pub fn pack_q8_k(acts: &Activations, first: usize, out: &mut [BlockQ8Kx8]) {
    let rows = token_rows_q8_k(acts, first, out.len());
    for (b, block) in out.iter_mut().enumerate() {
        let (mut q, mut sums) = ([std::ptr::null(); MAX_ROWS], [std::ptr::null::<u8>(); MAX_ROWS]);
        for (t, (bytes, scales, of_blocks)) in rows.iter().enumerate() {
            q[t] = bytes[b].as_ptr().cast::<u8>();
            block.scales[t] = scales[b];
            sums[t] = of_blocks[b].as_ptr().cast();
            for (pairs, sums) in block.pair_sums_32.iter_mut().zip(&of_blocks[b][8..]) {
                pairs[t] = *sums;
            }
        }
        // SAFETY: compiled for AVX2; 256 bytes and eight sums lie at each of eight pointers, and `PerToken`
        // holds a register.
        unsafe {
            let by = _mm256_set1_epi16(-32);
            for (group, to) in block.q.iter_mut().enumerate() {
                let mut of_group = q;
                for of_token in &mut of_group[..PACK_TOKENS] {
                    *of_token = of_token.add(group * 32);
                }
                for (half, short) in pack_quants(&of_group, to).into_iter().enumerate() {
                    let to: &mut PerToken<i32> = &mut block.i16_sums[group * 2 + half];
                    _mm256_storeu_si256(to.as_mut_ptr().cast(), _mm256_mullo_epi16(short, by));
                }
            }
            for (i, pair) in PackSimd::transpose(PackSimd::load_rows32(&sums, 0)).into_iter().enumerate() {
                _mm256_storeu_si256(block.pair_sums_16[i].as_mut_ptr().cast(), pair);
                let (low, high) =
                    (_mm256_srai_epi32::<16>(_mm256_slli_epi32::<16>(pair)), _mm256_srai_epi32::<16>(pair));
                let times = |sum| _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_slli_epi32::<5>(sum));
                _mm256_storeu_si256(block.sums[2 * i].as_mut_ptr().cast(), times(low));
                _mm256_storeu_si256(block.sums[2 * i + 1].as_mut_ptr().cast(), times(high));
            }
        }
    }
}

/// Interleaves 32 bytes of each token into `to`. Returns the `BlockQ8_0x8::i16_sums` of both halves.
///
/// # Safety
/// AVX2; 32 bytes lie at each of eight pointers.
#[inline(always)]
unsafe fn pack_quants(q: &RowPointers, to: &mut QuantsX8) -> [__m256i; 2] {
    // SAFETY: guaranteed by the caller; `QuantsX8` holds eight registers.
    unsafe {
        let ones = _mm256_set1_epi8(1);
        let mut sums = [_mm256_setzero_si256(); 2];
        for (j, four) in PackSimd::transpose(PackSimd::load_rows32(q, 0)).into_iter().enumerate() {
            _mm256_storeu_si256(to.0[j].as_mut_ptr().cast(), four);
            sums[j / 4] = _mm256_add_epi16(sums[j / 4], _mm256_maddubs_epi16(ones, four));
        }
        sums
    }
}
