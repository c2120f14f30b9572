//! Q8_0 weights times Q8_0 activations: signed bytes on both sides.

use weights::DType;

use super::ActivationFormat;
use super::blocks32::{Block32, Panel32, LEN, dot_integers};
use super::simd::{Simd, RowPointers};
use super::dispatch::matmul_rows;
use super::quantize;

/// Block layout: scale, then 32 signed bytes.
struct Q8_0;

impl Block32 for Q8_0 {
    const BYTES: usize = 34;
    const MAX_MAGNITUDE: i32 = 128;
    const SIGNED: bool = true;

    #[inline(always)]
    fn zero_point<L: Simd>() -> i32 {
        L::SIGNED_BIAS
    }

    #[inline(always)]
    unsafe fn integers<L: Simd>(rows: &RowPointers, offset: usize) -> [L::I; 8] {
        // SAFETY: guaranteed by the caller: 34 bytes at `offset`.
        unsafe {
            let mut rows = L::load_rows32(rows, offset + 2);
            for row in &mut rows {
                *row = L::bias_signed(*row);
            }
            rows
        }
    }

    #[inline(always)]
    unsafe fn dots<L: Simd>(rows: &RowPointers, offset: usize, q: &[i8; LEN]) -> L::I {
        // SAFETY: guaranteed by the caller.
        unsafe { dot_integers::<Self, L>(rows, offset, q) }
    }
}

#[cfg(target_arch = "x86_64")]
impl super::gemv_avx512_block32::GemvBlock32 for Q8_0 {
    const BYTES: usize = <Self as Block32>::BYTES;
    const ZERO_POINT: i32 = 128;

    #[inline(always)]
    unsafe fn dots(rows: &[*const u8; 4], q: *const i8) -> std::arch::x86_64::__m512i {
        use super::simd::avx512::ZmmI32;
        use std::arch::x86_64::*;
        // SAFETY: guaranteed by the caller: 34 bytes of each of four blocks, and 32 activations for each.
        unsafe {
            let mut halves = [_mm512_setzero_si512(); 2];
            for (i, half) in halves.iter_mut().enumerate() {
                let q = _mm512_loadu_si512(q.add(i * 64).cast());
                let mut dots = [_mm512_setzero_si512(); 4];
                for row in 0..4 {
                    let at = rows[row].add(i * 68 + 2);
                    let low = _mm512_castsi256_si512(_mm256_loadu_si256(at.cast()));
                    let both = _mm512_inserti64x4::<1>(low, _mm256_loadu_si256(at.add(34).cast()));
                    dots[row] = _mm512_dpbusd_epi32(dots[row], ZmmI32::bias_signed(both), q);
                }
                *half = ZmmI32::sum4(dots[0], dots[1], dots[2], dots[3]);
            }
            let [a, b] = halves;
            let even = _mm512_shuffle_i32x4::<0b10_00_10_00>(a, b);
            _mm512_add_epi32(even, _mm512_shuffle_i32x4::<0b11_01_11_01>(a, b))
        }
    }

    #[inline(always)]
    unsafe fn scales(rows: &[*const u8; 4]) -> std::arch::x86_64::__m512 {
        use std::arch::x86_64::*;
        // SAFETY: guaranteed by the caller: each of four blocks begins with an f16.
        unsafe {
            let of = |row: usize, block: usize| rows[row].add(block * 34).cast::<i16>().read_unaligned();
            let two = |a: usize, b: usize| {
                _mm_setr_epi16(of(0, a), of(1, a), of(2, a), of(3, a), of(0, b), of(1, b), of(2, b), of(3, b))
            };
            _mm512_cvtph_ps(_mm256_inserti128_si256::<1>(_mm256_castsi128_si256(two(0, 1)), two(2, 3)))
        }
    }
}

#[cfg(target_arch = "x86_64")]
matmul_rows!(
    DType::Q8_0,
    ActivationFormat::Q8_0,
    quantize::Q8_0,
    Panel32<Q8_0>,
    avx2 super::dispatch_x86::no_special_path,
    avx512 super::gemv_avx512_block32::run::<Q8_0>
);
#[cfg(not(target_arch = "x86_64"))]
matmul_rows!(DType::Q8_0, ActivationFormat::Q8_0, quantize::Q8_0, Panel32<Q8_0>);
