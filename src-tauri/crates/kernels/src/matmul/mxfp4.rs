//! MXFP4 weights times Q8_0 activations: nibbles are four-bit floats, with a power of two for each 32
//! elements.

use weights::DType;
use weights::quant::mxfp4::CODES;

use super::ActivationFormat;
use super::blocks32::{Block32, Panel32, LEN};
use super::simd::{Simd, RowPointers};
use super::dispatch::matmul_rows;
use super::quantize;

/// Block layout: exponent, then 16 bytes, with the first half in the low nibbles.
struct MxFp4;

/// Added to the codes so that none is negative.
const ZERO_POINT: i8 = 12;
const SHIFTED: [i8; 16] = {
    let mut shifted = CODES;
    let mut i = 0;
    while i < shifted.len() {
        shifted[i] += ZERO_POINT;
        i += 1;
    }
    shifted
};

impl Block32 for MxFp4 {
    const BYTES: usize = 17;
    const MAX_MAGNITUDE: i32 = 24;
    const MAX_CENTERED_MAGNITUDE: i32 = 12;

    #[inline(always)]
    unsafe fn scale<L: Simd>(rows: &RowPointers, offset: usize) -> L::F {
        // SAFETY: guaranteed by the caller: a byte at `offset`.
        unsafe { power_of_two::<L>(L::load_bytes(rows, offset)) }
    }

    #[inline(always)]
    fn zero_point<L: Simd>() -> i32 {
        i32::from(ZERO_POINT)
    }

    #[inline(always)]
    unsafe fn integers<L: Simd>(rows: &RowPointers, offset: usize) -> [L::I; 8] {
        // SAFETY: guaranteed by the caller: 17 bytes at `offset`.
        unsafe {
            let table = L::load_table(&SHIFTED);
            let mut rows = L::nibbles32(rows, offset + 1);
            for row in &mut rows {
                *row = L::lookup(table, *row);
            }
            rows
        }
    }

    #[inline(always)]
    unsafe fn dots<L: Simd>(rows: &RowPointers, offset: usize, q: &[i8; LEN]) -> L::I {
        // SAFETY: guaranteed by the caller; `q` has 32 bytes.
        unsafe { L::dot_codes(rows, offset + 1, q.as_ptr().cast(), L::load_table(&SHIFTED)) }
    }
}

#[cfg(target_arch = "x86_64")]
impl super::gemv_avx512_block32::GemvBlock32 for MxFp4 {
    const BYTES: usize = <Self as Block32>::BYTES;
    const ZERO_POINT: i32 = ZERO_POINT as i32;

    #[inline(always)]
    unsafe fn dots(rows: &[*const u8; 4], q: *const i8) -> std::arch::x86_64::__m512i {
        use std::arch::x86_64::*;
        // SAFETY: guaranteed by the caller: four blocks of 17 bytes, and 32 activations for each.
        unsafe {
            let four = _mm512_set1_epi8(0x0F);
            let table = _mm512_broadcast_i32x4(_mm_loadu_si128(SHIFTED.as_ptr().cast()));
            let mut integers = [[four; 2]; 4];
            for row in 0..4 {
                let nibbles = nibbles(rows[row]);
                let low = _mm512_and_si512(nibbles, four);
                let high = _mm512_and_si512(_mm512_srli_epi32::<4>(nibbles), four);
                integers[row] = [_mm512_shuffle_epi8(table, low), _mm512_shuffle_epi8(table, high)];
            }
            super::gemv_avx512_block32::dot_nibble_halves(integers, q)
        }
    }

    #[inline(always)]
    unsafe fn scales(rows: &[*const u8; 4]) -> std::arch::x86_64::__m512 {
        use std::arch::x86_64::*;
        // SAFETY: guaranteed by the caller: four blocks of 17 bytes; the exponents at their start are among
        // the first 64 bytes.
        unsafe {
            // The exponents of the second and last block are the upper bytes of a word.
            let words = super::gemv_avx512_block32::gather_words(rows, [0, 8, 17, 25]);
            let down = _mm512_setr_epi32(0, 0, 0, 0, 8, 8, 8, 8, 0, 0, 0, 0, 8, 8, 8, 8);
            let exponents = _mm512_and_si512(_mm512_srlv_epi32(words, down), _mm512_set1_epi32(0xFF));
            power_of_two::<super::simd::avx512::ZmmI32>(exponents)
        }
    }
}

/// Loads the 16 bytes after the exponent of each of four blocks.
///
/// # Safety
/// AVX-512 F, BW; 68 bytes lie at `blocks`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn nibbles(blocks: *const u8) -> std::arch::x86_64::__m512i {
    use std::arch::x86_64::*;
    // SAFETY: guaranteed by the caller.
    unsafe {
        // The odd blocks' nibbles start at bytes 1 and 35: words 0 and 17 of the 64 bytes from 1.
        // The even ones' start at bytes 18 and 52: words 7 and 24 of those from 4, with indices from 32.
        let order: [i16; 32] = const {
            let mut order = [0; 32];
            let mut i = 0;
            while i < 32 {
                order[i] = [0, 32 + 7, 17, 32 + 24][i / 8] + (i % 8) as i16;
                i += 1;
            }
            order
        };
        let order = _mm512_loadu_si512(order.as_ptr().cast());
        let (odd, even) = (_mm512_loadu_si512(blocks.add(1).cast()), _mm512_loadu_si512(blocks.add(4).cast()));
        _mm512_permutex2var_epi16(odd, order, even)
    }
}

/// Returns 2^(e − 128) as a product of two normal floats, so that the smallest become subnormals.
///
/// # Safety
/// Same requirements as `Simd`.
#[inline(always)]
unsafe fn power_of_two<L: Simd>(e: L::I) -> L::F {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let half = L::shift_right::<1>(e);
        // 2^(n − 64) for n within 0..=128 has the exponent bits n + 63.
        let power = |n: L::I| L::bitcast_f(L::shift_left::<23>(L::add(n, L::splat(63))));
        L::mul_f(power(half), power(L::sub(e, half)))
    }
}

#[cfg(target_arch = "x86_64")]
matmul_rows!(
    DType::MXFP4,
    ActivationFormat::Q8_0,
    quantize::Q8_0,
    Panel32<MxFp4>,
    avx2 super::dispatch_x86::no_special_path,
    avx512 super::gemv_avx512_block32::run::<MxFp4>
);
#[cfg(not(target_arch = "x86_64"))]
matmul_rows!(DType::MXFP4, ActivationFormat::Q8_0, quantize::Q8_0, Panel32<MxFp4>);
