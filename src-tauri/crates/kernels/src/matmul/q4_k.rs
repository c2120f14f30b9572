//! Q4_K weights times Q8_K activations: nibbles, a six-bit scale and min for each 32 elements.

use weights::DType;

use super::ActivationFormat;
use super::blocks256::{Block256, Panel256, Block256Header, ZeroPoint, GroupVisitor};
use super::simd::{Simd, RowPointers};
use super::dispatch::matmul_rows;
use super::quantize;

/// Block layout: d, dmin, packed scales and mins, nibbles.
struct Q4K;

impl Block256 for Q4K {
    const BYTES: usize = 144;
    const SCALES_BY_16: bool = false;
    const ZERO_POINT: ZeroPoint = ZeroPoint::Mins;
    const MAX_MAGNITUDE: i32 = 15;

    #[inline(always)]
    unsafe fn header<L: Simd>(rows: &RowPointers, offset: usize) -> Block256Header<L> {
        // SAFETY: guaranteed by the caller: 16 bytes of header at `offset`.
        unsafe { header(rows, offset) }
    }

    #[inline(always)]
    unsafe fn visit_groups<L: Simd, T: GroupVisitor<L>>(rows: &RowPointers, offset: usize, visitor: &mut T) {
        // SAFETY: guaranteed by the caller: 128 bytes of nibbles after the header.
        unsafe {
            let four = L::splat(0x0F0F_0F0F);
            for pair in 0..4 {
                let bytes = T::arrange(L::load_rows32(rows, offset + 16 + pair * 32));
                let (mut low, mut high) = (bytes, bytes);
                for i in 0..8 {
                    low[i] = L::and(bytes[i], four);
                    high[i] = L::and(L::shift_right::<4>(bytes[i]), four);
                }
                visitor.visit(pair * 2, low);
                visitor.visit(pair * 2 + 1, high);
            }
        }
    }
}

/// Decodes the first 16 bytes of a block, which Q5_K has too.
///
/// # Safety
/// Same requirements as `Simd`; 16 bytes lie at `offset` of each row.
#[inline(always)]
pub unsafe fn header<L: Simd>(rows: &RowPointers, offset: usize) -> Block256Header<L> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let [factors, a, b, c] = L::columns16(rows, offset);
        // Four bytes in each lane. Scales 0..4 are the low six bits of `a`, mins 0..4 those of `b`.
        // Scales 4..8 are the low nibbles of `c` below the top two bits of `a`, mins 4..8 its high nibbles
        // below those of `b`.
        let (six, four, two) = (L::splat(0x3F3F_3F3F), L::splat(0x0F0F_0F0F), L::splat(0x0303_0303));
        let top = |v: L::I| L::shift_left::<4>(L::and(L::shift_right::<6>(v), two));
        let scales = [L::and(a, six), L::or(L::and(c, four), top(a))];
        let mins = [L::and(b, six), L::or(L::and(L::shift_right::<4>(c), four), top(b))];
        let byte = L::splat(0xFF);
        let mut header = Block256Header {
            scales: [L::zero(); 16],
            offsets: [L::zero(); 8],
            d: L::f16_low(factors),
            dmin: L::mul_f(L::f16_high(factors), L::splat_f(-1.0)),
        };
        for half in 0..2 {
            let each = [
                scales[half],
                L::shift_right::<8>(scales[half]),
                L::shift_right::<16>(scales[half]),
                L::shift_right::<24>(scales[half]),
            ];
            for i in 0..4 {
                header.scales[half * 8 + i * 2] = L::and(each[i], byte);
            }
            // Widen two bytes at a time to an i16 each.
            for (i, two) in [mins[half], L::shift_right::<16>(mins[half])].into_iter().enumerate() {
                let upper = L::shift_left::<8>(L::and(two, L::splat(0xFF00)));
                header.offsets[half * 2 + i] = L::or(L::and(two, byte), upper);
            }
        }
        header
    }
}

#[cfg(target_arch = "x86_64")]
impl super::gemv_avx2_rows8::GemvRows8 for Q4K {
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
        // SAFETY: guaranteed by the caller: 128 bytes of nibbles after the header.
        unsafe {
            let at = block.add(16 + half * 64);
            let four = _mm256_set1_epi8(0x0F);
            let (a, b) = (_mm256_loadu_si256(at.cast()), _mm256_loadu_si256(at.add(32).cast()));
            let upper = |bytes| _mm256_and_si256(_mm256_srli_epi32::<4>(bytes), four);
            [_mm256_and_si256(a, four), upper(a), _mm256_and_si256(b, four), upper(b)]
        }
    }

    #[inline(always)]
    unsafe fn multiplier(scales: &Self::Scales, row: usize, group: usize) -> std::arch::x86_64::__m256i {
        // SAFETY: guaranteed by the caller.
        unsafe { std::arch::x86_64::_mm256_set1_epi32(scales[group][row]) }
    }
}

#[cfg(target_arch = "x86_64")]
impl super::gemv_avx512_block256::GemvBlock256 for Q4K {
    const BYTES: usize = <Self as Block256>::BYTES;

    #[inline(always)]
    unsafe fn integers(block: *const u8) -> [std::arch::x86_64::__m512i; 4] {
        use std::arch::x86_64::*;
        // SAFETY: guaranteed by the caller: 128 bytes of nibbles after the header.
        unsafe {
            let four = _mm512_set1_epi8(0x0F);
            let (a, b) = (_mm512_loadu_si512(block.add(16).cast()), _mm512_loadu_si512(block.add(80).cast()));
            let upper = |bytes| _mm512_and_si512(_mm512_srli_epi32::<4>(bytes), four);
            [_mm512_and_si512(a, four), upper(a), _mm512_and_si512(b, four), upper(b)]
        }
    }
}

#[cfg(target_arch = "x86_64")]
matmul_rows!(
    DType::Q4_K,
    ActivationFormat::Q8_K,
    quantize::Q8_K,
    Panel256<Q4K>,
    avx2 super::gemv_avx2_rows8::run::<Q4K>,
    avx512 super::gemv_avx512_block256::run::<Q4K>
);
#[cfg(not(target_arch = "x86_64"))]
matmul_rows!(DType::Q4_K, ActivationFormat::Q8_K, quantize::Q8_K, Panel256<Q4K>);
