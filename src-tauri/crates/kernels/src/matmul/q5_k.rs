//! Q5_K weights times Q8_K activations: as Q4_K, with a fifth bit for each element.

use weights::DType;

use super::ActivationFormat;
use super::blocks256::{Block256, Panel256, Block256Header, ZeroPoint, GroupVisitor};
use super::simd::{Simd, RowPointers};
use super::dispatch::matmul_rows;
use super::{q4_k, quantize};

/// Block layout: d, dmin, packed scales and mins, fifth bits, nibbles.
struct Q5K;

const FIFTH: usize = 16;
const LOWER: usize = 48;

impl Block256 for Q5K {
    const BYTES: usize = 176;
    const SCALES_BY_16: bool = false;
    const ZERO_POINT: ZeroPoint = ZeroPoint::Mins;
    const MAX_MAGNITUDE: i32 = 31;

    #[inline(always)]
    unsafe fn header<L: Simd>(rows: &RowPointers, offset: usize) -> Block256Header<L> {
        // SAFETY: guaranteed by the caller: 16 bytes of header at `offset`.
        unsafe { q4_k::header(rows, offset) }
    }

    #[inline(always)]
    unsafe fn visit_groups<L: Simd, T: GroupVisitor<L>>(rows: &RowPointers, offset: usize, visitor: &mut T) {
        // SAFETY: guaranteed by the caller: 32 bytes of fifth bits and 128 of nibbles after the header.
        unsafe {
            let (four, fifth) = (L::splat(0x0F0F_0F0F), L::splat(0x1010_1010));
            let bits = T::arrange(L::load_rows32(rows, offset + FIFTH));
            for half in 0..2 {
                // Bit 4 of each byte belongs to the next group.
                let mut bits = bits;
                for bits in &mut bits {
                    if half == 0 {
                        *bits = L::shift_left::<4>(*bits);
                    }
                }
                for pair in 0..2 {
                    let bytes = T::arrange(L::load_rows32(rows, offset + LOWER + (half * 2 + pair) * 32));
                    let (mut low, mut high) = (bytes, bytes);
                    for i in 0..8 {
                        low[i] = L::or(L::and(bytes[i], four), L::and(bits[i], fifth));
                        let next = L::shift_right::<1>(bits[i]);
                        high[i] = L::or(L::and(L::shift_right::<4>(bytes[i]), four), L::and(next, fifth));
                        bits[i] = L::shift_right::<2>(bits[i]);
                    }
                    visitor.visit(half * 4 + pair * 2, low);
                    visitor.visit(half * 4 + pair * 2 + 1, high);
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl super::gemv_avx2_rows8::GemvRows8 for Q5K {
    const BYTES: usize = <Self as Block256>::BYTES;
    type Scales = super::gemv_avx2_rows8::ScalesPer32;

    #[inline(always)]
    unsafe fn header(
        rows: &RowPointers,
        offset: usize,
        sums: &[i32; 12],
    ) -> super::gemv_avx2_rows8::Rows8Header<Self::Scales> {
        // SAFETY: guaranteed by the caller: 16 bytes of header at `offset`.
        unsafe { super::gemv_avx2_rows8::decode_q4_k_header(rows, offset, sums) }
    }

    #[inline(always)]
    unsafe fn half(block: *const u8, half: usize) -> [std::arch::x86_64::__m256i; 4] {
        use std::arch::x86_64::*;
        // SAFETY: guaranteed by the caller: 32 bytes of fifth bits and 128 of nibbles after the header.
        unsafe {
            let (four, fifth) = (_mm256_set1_epi8(0x0F), _mm256_set1_epi8(0x10));
            let at = block.add(LOWER + half * 64);
            let (a, b) = (_mm256_loadu_si256(at.cast()), _mm256_loadu_si256(at.add(32).cast()));
            let bits = _mm256_loadu_si256(block.add(FIFTH).cast());
            // Bit i of a byte belongs to group i.
            let bits = match half {
                0 => [
                    _mm256_slli_epi32::<4>(bits),
                    _mm256_slli_epi32::<3>(bits),
                    _mm256_slli_epi32::<2>(bits),
                    _mm256_slli_epi32::<1>(bits),
                ],
                _ => [bits, _mm256_srli_epi32::<1>(bits), _mm256_srli_epi32::<2>(bits), _mm256_srli_epi32::<3>(bits)],
            };
            let nibbles = [a, _mm256_srli_epi32::<4>(a), b, _mm256_srli_epi32::<4>(b)];
            let mut integers = nibbles;
            for i in 0..4 {
                let (lower, bit) = (_mm256_and_si256(nibbles[i], four), _mm256_and_si256(bits[i], fifth));
                integers[i] = _mm256_or_si256(lower, bit);
            }
            integers
        }
    }

    #[inline(always)]
    unsafe fn multiplier(scales: &Self::Scales, row: usize, group: usize) -> std::arch::x86_64::__m256i {
        // SAFETY: guaranteed by the caller.
        unsafe { std::arch::x86_64::_mm256_set1_epi32(scales[group][row]) }
    }
}

#[cfg(target_arch = "x86_64")]
impl super::gemv_avx512_block256::GemvBlock256 for Q5K {
    const BYTES: usize = <Self as Block256>::BYTES;

    #[inline(always)]
    unsafe fn integers(block: *const u8) -> [std::arch::x86_64::__m512i; 4] {
        use std::arch::x86_64::*;
        // SAFETY: guaranteed by the caller: 32 bytes of fifth bits and 128 of nibbles after the header.
        unsafe {
            let (four, fifth) = (_mm512_set1_epi8(0x0F), _mm512_set1_epi8(0x10));
            let shifts = |first: i32, second: i32| {
                let (first, second) = (_mm256_set1_epi32(first), _mm256_set1_epi32(second));
                _mm512_inserti64x4::<1>(_mm512_castsi256_si512(first), second)
            };
            let bits = _mm512_broadcast_i64x4(_mm256_loadu_si256(block.add(FIFTH).cast()));
            // Bit i of a byte belongs to group i.
            let bits = [
                _mm512_sllv_epi32(bits, shifts(4, 2)),
                _mm512_sllv_epi32(bits, shifts(3, 1)),
                _mm512_srlv_epi32(bits, shifts(0, 2)),
                _mm512_srlv_epi32(bits, shifts(1, 3)),
            ];
            let a = _mm512_loadu_si512(block.add(LOWER).cast());
            let b = _mm512_loadu_si512(block.add(LOWER + 64).cast());
            let mut integers = [a, _mm512_srli_epi32::<4>(a), b, _mm512_srli_epi32::<4>(b)];
            for i in 0..4 {
                let bit = _mm512_and_si512(bits[i], fifth);
                // four ? nibbles : bit
                integers[i] = _mm512_ternarylogic_epi32::<0xCA>(four, integers[i], bit);
            }
            integers
        }
    }
}

#[cfg(target_arch = "x86_64")]
matmul_rows!(
    DType::Q5_K,
    ActivationFormat::Q8_K,
    quantize::Q8_K,
    Panel256<Q5K>,
    avx2 super::gemv_avx2_rows8::run::<Q5K>,
    avx512 super::gemv_avx512_block256::run::<Q5K>
);
#[cfg(not(target_arch = "x86_64"))]
matmul_rows!(DType::Q5_K, ActivationFormat::Q8_K, quantize::Q8_K, Panel256<Q5K>);
