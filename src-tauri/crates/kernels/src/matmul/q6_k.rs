//! Q6_K weights times Q8_K activations: six bits with a zero point of 32, a signed scale for each 16
//! elements.

use weights::DType;

use super::ActivationFormat;
use super::blocks256::{Block256, Panel256, Block256Header, ZeroPoint, GroupVisitor, signed_scales};
use super::simd::{Simd, RowPointers};
use super::dispatch::matmul_rows;
use super::quantize;

/// Block layout: low nibbles, high two bits, scales, d.
struct Q6K;

const HIGH: usize = 128;
const SCALES: usize = 192;
const D_AT: usize = 208;

impl Block256 for Q6K {
    const BYTES: usize = 210;
    const SCALES_BY_16: bool = true;
    const ZERO_POINT: ZeroPoint = ZeroPoint::ThirtyTwo;
    const MAX_MAGNITUDE: i32 = 63;

    #[inline(always)]
    unsafe fn header<L: Simd>(rows: &RowPointers, offset: usize) -> Block256Header<L> {
        // SAFETY: guaranteed by the caller: scales and d are the last 18 bytes of the block.
        unsafe {
            let scales = L::columns16(rows, offset + SCALES);
            signed_scales::<L, 24>(scales, L::load_f16(rows, offset + D_AT))
        }
    }

    #[inline(always)]
    unsafe fn visit_groups<L: Simd, T: GroupVisitor<L>>(rows: &RowPointers, offset: usize, visitor: &mut T) {
        // SAFETY: guaranteed by the caller: 128 bytes of nibbles and 64 of upper bits at `offset`.
        unsafe {
            let (four, upper) = (L::splat(0x0F0F_0F0F), L::splat(0x3030_3030));
            for half in 0..2 {
                let h = T::arrange(L::load_rows32(rows, offset + HIGH + half * 32));
                let a = T::arrange(L::load_rows32(rows, offset + half * 64));
                let mut out = a;
                for i in 0..8 {
                    out[i] = L::or(L::and(a[i], four), L::and(L::shift_left::<4>(h[i]), upper));
                }
                visitor.visit(half * 4, out);
                for i in 0..8 {
                    out[i] = L::or(L::and(L::shift_right::<4>(a[i]), four), L::and(h[i], upper));
                }
                visitor.visit(half * 4 + 2, out);
                let b = T::arrange(L::load_rows32(rows, offset + half * 64 + 32));
                for i in 0..8 {
                    out[i] = L::or(L::and(b[i], four), L::and(L::shift_left::<2>(h[i]), upper));
                }
                visitor.visit(half * 4 + 1, out);
                for i in 0..8 {
                    let upper = L::and(L::shift_right::<2>(h[i]), upper);
                    out[i] = L::or(L::and(L::shift_right::<4>(b[i]), four), upper);
                }
                visitor.visit(half * 4 + 3, out);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl super::gemv_avx512::GemvRowMajor for Q6K {
    const BYTES: usize = <Self as Block256>::BYTES;
    const ZERO_POINT_LOG2: i32 = 5;

    #[inline(always)]
    unsafe fn block(block: *const u8) -> super::gemv_avx512::RowMajorBlock {
        use std::arch::x86_64::*;
        // SAFETY: guaranteed by the caller: 128 bytes of nibbles, 64 of upper bits, scales and d.
        unsafe {
            let (low, upper) = (_mm512_set1_epi8(0x0F), _mm512_set1_epi8(0x30));
            let shifts = |first: i32, second: i32| {
                let (first, second) = (_mm256_set1_epi32(first), _mm256_set1_epi32(second));
                _mm512_inserti64x4::<1>(_mm512_castsi256_si512(first), second)
            };
            let mut integers = [low; 4];
            for half in 0..2 {
                let nibbles = _mm512_loadu_si512(block.add(half * 64).cast());
                let bits = _mm512_broadcast_i64x4(_mm256_loadu_si256(block.add(HIGH + half * 32).cast()));
                // Two bits of each byte for the first 32 elements, the next two for the second 32, and so on.
                let pairs = [_mm512_sllv_epi32(bits, shifts(4, 2)), _mm512_srlv_epi32(bits, shifts(0, 2))];
                let nibbles = [nibbles, _mm512_srli_epi32::<4>(nibbles)];
                for i in 0..2 {
                    let bits = _mm512_and_si512(pairs[i], upper);
                    // low ? nibbles : bits
                    integers[half * 2 + i] = _mm512_ternarylogic_epi32::<0xCA>(low, nibbles[i], bits);
                }
            }
            super::gemv_avx512::RowMajorBlock {
                integers,
                scales: _mm_loadu_si128(block.add(SCALES).cast()),
                d: block.add(D_AT).cast::<u16>().read_unaligned(),
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl super::gemv_avx2_rows8::GemvRows8 for Q6K {
    const BYTES: usize = <Self as Block256>::BYTES;
    type Scales = super::gemv_avx2_rows8::ScalesPer16;

    #[inline(always)]
    unsafe fn header(
        rows: &RowPointers,
        offset: usize,
        sums: &[i32; 12],
    ) -> super::gemv_avx2_rows8::Rows8Header<Self::Scales> {
        use std::arch::x86_64::*;
        // SAFETY: guaranteed by the caller: scales and d are the last 18 bytes of the block.
        unsafe {
            let of_16 = _mm256_loadu_si256(sums.as_ptr().cast());
            let zero = _mm256_setzero_si256();
            let (mut bytes, mut initial_sums) = ([_mm_setzero_si128(); 8], [zero; 8]);
            for row in 0..8 {
                bytes[row] = _mm_loadu_si128(rows[row].add(offset + SCALES).cast());
                let offsets = _mm256_madd_epi16(_mm256_cvtepi8_epi16(bytes[row]), of_16);
                initial_sums[row] = _mm256_sub_epi32(zero, _mm256_slli_epi32::<5>(offsets));
            }
            let scales = super::gemv_avx2_rows8::ScalesPer16::of(bytes);
            let d = super::simd::avx2::YmmI32::<false>::load_f16(rows, offset + D_AT);
            super::gemv_avx2_rows8::Rows8Header { scales, sums: initial_sums, d, mins: None }
        }
    }

    #[inline(always)]
    unsafe fn half(block: *const u8, half: usize) -> [std::arch::x86_64::__m256i; 4] {
        use std::arch::x86_64::*;
        // SAFETY: guaranteed by the caller: 128 bytes of nibbles and 64 of upper bits.
        unsafe {
            let (four, upper) = (_mm256_set1_epi8(0x0F), _mm256_set1_epi8(0x30));
            let at = block.add(half * 64);
            let (a, b) = (_mm256_loadu_si256(at.cast()), _mm256_loadu_si256(at.add(32).cast()));
            let h = _mm256_loadu_si256(block.add(HIGH + half * 32).cast());
            let six = |nibbles, bits| _mm256_or_si256(_mm256_and_si256(nibbles, four), _mm256_and_si256(bits, upper));
            [
                six(a, _mm256_slli_epi32::<4>(h)),
                six(b, _mm256_slli_epi32::<2>(h)),
                six(_mm256_srli_epi32::<4>(a), h),
                six(_mm256_srli_epi32::<4>(b), _mm256_srli_epi32::<2>(h)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn multiplier(scales: &Self::Scales, row: usize, group: usize) -> std::arch::x86_64::__m256i {
        // SAFETY: guaranteed by the caller.
        unsafe { scales.multiplier(row, group) }
    }
}

#[cfg(target_arch = "x86_64")]
matmul_rows!(
    DType::Q6_K,
    ActivationFormat::Q8_K,
    quantize::Q8_K,
    Panel256<Q6K>,
    avx2 super::gemv_avx2_rows8::run::<Q6K>,
    avx512 super::gemv_avx512::run::<Q6K>
);
#[cfg(not(target_arch = "x86_64"))]
matmul_rows!(DType::Q6_K, ActivationFormat::Q8_K, quantize::Q8_K, Panel256<Q6K>);
