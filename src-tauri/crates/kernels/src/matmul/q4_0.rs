//! Q4_0 weights times Q8_0 activations: nibbles with a zero point of 8.

use weights::DType;

use super::ActivationFormat;
use super::blocks32::{Block32, Panel32, LEN};
use super::simd::{Simd, RowPointers};
use super::dispatch::matmul_rows;
use super::quantize;

/// Block layout: scale, then 16 bytes, with the first half in the low nibbles.
struct Q4_0;

impl Block32 for Q4_0 {
    const BYTES: usize = 18;
    const MAX_MAGNITUDE: i32 = 15;
    const MAX_CENTERED_MAGNITUDE: i32 = 8;

    #[inline(always)]
    fn zero_point<L: Simd>() -> i32 {
        8
    }

    #[inline(always)]
    unsafe fn integers<L: Simd>(rows: &RowPointers, offset: usize) -> [L::I; 8] {
        // SAFETY: guaranteed by the caller: 18 bytes at `offset`.
        unsafe { L::nibbles32(rows, offset + 2) }
    }

    #[inline(always)]
    unsafe fn dots<L: Simd>(rows: &RowPointers, offset: usize, q: &[i8; LEN]) -> L::I {
        // SAFETY: guaranteed by the caller; `q` has 32 bytes.
        unsafe { L::dot_nibbles(rows, offset + 2, q.as_ptr().cast()) }
    }
}

#[cfg(target_arch = "x86_64")]
impl super::gemv_avx512_block32::GemvBlock32 for Q4_0 {
    const BYTES: usize = <Self as Block32>::BYTES;
    const ZERO_POINT: i32 = 8;

    #[inline(always)]
    unsafe fn dots(rows: &[*const u8; 4], q: *const i8) -> std::arch::x86_64::__m512i {
        use std::arch::x86_64::*;
        // SAFETY: guaranteed by the caller: four blocks of 18 bytes, and 32 activations for each.
        unsafe {
            let four = _mm512_set1_epi8(0x0F);
            let mut integers = [[four; 2]; 4];
            for row in 0..4 {
                let nibbles = nibbles(rows[row]);
                integers[row] =
                    [_mm512_and_si512(nibbles, four), _mm512_and_si512(_mm512_srli_epi32::<4>(nibbles), four)];
            }
            super::gemv_avx512_block32::dot_nibble_halves(integers, q)
        }
    }

    #[inline(always)]
    unsafe fn scales(rows: &[*const u8; 4]) -> std::arch::x86_64::__m512 {
        use std::arch::x86_64::*;
        // SAFETY: guaranteed by the caller: four blocks of 18 bytes; the f16 at their start are among the
        // first 64 bytes.
        unsafe { _mm512_cvtph_ps(_mm512_cvtepi32_epi16(super::gemv_avx512_block32::gather_words(rows, [0, 9, 18, 27]))) }
    }
}

/// Loads the 16 bytes after the scale of each of four blocks.
///
/// # Safety
/// AVX-512 F, BW; 72 bytes lie at `blocks`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn nibbles(blocks: *const u8) -> std::arch::x86_64::__m512i {
    use std::arch::x86_64::*;
    // SAFETY: guaranteed by the caller.
    unsafe {
        // Words of the first 64 bytes, then (from index 32) of the last 64, which start 4 words later.
        let order: [i16; 32] = const {
            let mut order = [0; 32];
            let mut i = 0;
            while i < 32 {
                let word = i / 8 * 9 + 1 + i % 8;
                order[i] = if word < 32 { word } else { word - 4 + 32 } as i16;
                i += 1;
            }
            order
        };
        let order = _mm512_loadu_si512(order.as_ptr().cast());
        let (first, last) = (_mm512_loadu_si512(blocks.cast()), _mm512_loadu_si512(blocks.add(8).cast()));
        _mm512_permutex2var_epi16(first, order, last)
    }
}

#[cfg(target_arch = "x86_64")]
matmul_rows!(
    DType::Q4_0,
    ActivationFormat::Q8_0,
    quantize::Q8_0,
    Panel32<Q4_0>,
    avx2 super::dispatch_x86::no_special_path,
    avx512 super::gemv_avx512_block32::run::<Q4_0>
);
#[cfg(not(target_arch = "x86_64"))]
matmul_rows!(DType::Q4_0, ActivationFormat::Q8_0, quantize::Q8_0, Panel32<Q4_0>);
