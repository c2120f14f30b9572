//! Octets by AVX2: eight bytes wide and eight tokens high, numbers are turned as a matrix.

use std::arch::x86_64::*;

use super::{Each, Group, LEN, Octet32, Octet256, rows_32, rows_256};
use crate::matmul::Acts;
use crate::matmul::lanes::avx2::Ymm;
use crate::matmul::lanes::{Lanes, MAX_ROWS, RowPointers};

/// Nothing is multiplied here that VNNI has an instruction for.
type Y = Ymm<false>;

/// As the function of that name in the parent.
#[target_feature(enable = "avx2,fma,f16c")]
pub fn fill_32(acts: &Acts, first: usize, out: &mut [Octet32]) {
    let rows = rows_32(acts, first, out.len());
    for (b, octet) in out.iter_mut().enumerate() {
        let mut q = [std::ptr::null(); MAX_ROWS];
        for (t, (bytes, scales, sums)) in rows.iter().enumerate() {
            q[t] = bytes[b].as_ptr().cast();
            octet.scales[t] = scales[b];
            octet.sums[t] = sums[b] * -128;
        }
        // SAFETY: compiled for AVX2; 32 bytes lie at each of eight pointers, and `short_sums` has room for a register.
        unsafe {
            let [first, second] = fill_group(&q, &mut octet.q);
            _mm256_storeu_si256(octet.short_sums.as_mut_ptr().cast(), _mm256_add_epi16(first, second));
        }
    }
}

/// As the function of that name in the parent.
#[target_feature(enable = "avx2,fma,f16c")]
pub fn fill_256(acts: &Acts, first: usize, out: &mut [Octet256]) {
    let rows = rows_256(acts, first, out.len());
    for (b, octet) in out.iter_mut().enumerate() {
        let (mut q, mut sums) = ([std::ptr::null(); MAX_ROWS], [std::ptr::null::<u8>(); MAX_ROWS]);
        for (t, (bytes, scales, of_blocks)) in rows.iter().enumerate() {
            q[t] = bytes[b].as_ptr().cast::<u8>();
            octet.scales[t] = scales[b];
            sums[t] = of_blocks[b].as_ptr().cast();
            for (pairs, sums) in octet.pairs_of_32.iter_mut().zip(&of_blocks[b][8..]) {
                pairs[t] = *sums;
            }
        }
        // SAFETY: compiled for AVX2; 256 bytes and eight sums lie at each of eight pointers, and `Each` has room for a
        // register.
        unsafe {
            let by = _mm256_set1_epi16(-32);
            for (group, to) in octet.q.iter_mut().enumerate() {
                let mut of_group = q;
                for of_token in &mut of_group[..LEN] {
                    *of_token = of_token.add(group * 32);
                }
                for (half, short) in fill_group(&of_group, to).into_iter().enumerate() {
                    let to: &mut Each<i32> = &mut octet.short_sums[group * 2 + half];
                    _mm256_storeu_si256(to.as_mut_ptr().cast(), _mm256_mullo_epi16(short, by));
                }
            }
            for (i, pair) in Y::transpose(Y::rows32(&sums, 0)).into_iter().enumerate() {
                _mm256_storeu_si256(octet.pairs_of_16[i].as_mut_ptr().cast(), pair);
                let (low, high) =
                    (_mm256_srai_epi32::<16>(_mm256_slli_epi32::<16>(pair)), _mm256_srai_epi32::<16>(pair));
                let times = |sum| _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_slli_epi32::<5>(sum));
                _mm256_storeu_si256(octet.sums[2 * i].as_mut_ptr().cast(), times(low));
                _mm256_storeu_si256(octet.sums[2 * i + 1].as_mut_ptr().cast(), times(high));
            }
        }
    }
}

/// 32 bytes of each token, and of both halves of them what `Octet32::short_sums` says.
///
/// # Safety
/// AVX2; 32 bytes lie at each of eight pointers.
#[inline(always)]
unsafe fn fill_group(q: &RowPointers, to: &mut Group) -> [__m256i; 2] {
    // SAFETY: the caller's; a group has room for eight registers.
    unsafe {
        let ones = _mm256_set1_epi8(1);
        let mut sums = [_mm256_setzero_si256(); 2];
        for (j, four) in Y::transpose(Y::rows32(q, 0)).into_iter().enumerate() {
            _mm256_storeu_si256(to.0[j].as_mut_ptr().cast(), four);
            sums[j / 4] = _mm256_add_epi16(sums[j / 4], _mm256_maddubs_epi16(ones, four));
        }
        sums
    }
}
