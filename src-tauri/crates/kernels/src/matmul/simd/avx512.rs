//! Sixteen lanes: AVX-512 with VNNI.

#![allow(clippy::needless_range_loop)] // counted loops over registers unroll; iterators may not

use std::arch::x86_64::*;

use super::{Simd, RowPointers, instructions};

/// AVX-512 F, BW, VL, DQ, VNNI.
pub struct ZmmI32;

impl ZmmI32 {
    instructions! {
        /// Loads 16 bits of eight rows from `first`.
        fn eight16(rows: &RowPointers, first: usize, offset: usize) -> __m128i {
            let at = |i: usize| rows[first + i].add(offset).cast::<i16>().read_unaligned();
            _mm_setr_epi16(at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7))
        }

        /// Loads 16 bytes of each of four rows.
        pub fn quarters(a: *const u8, b: *const u8, c: *const u8, d: *const u8) -> __m512i {
            let v = _mm512_castsi128_si512(_mm_loadu_si128(a.cast()));
            let v = _mm512_inserti32x4::<1>(v, _mm_loadu_si128(b.cast()));
            let v = _mm512_inserti32x4::<2>(v, _mm_loadu_si128(c.cast()));
            _mm512_inserti32x4::<3>(v, _mm_loadu_si128(d.cast()))
        }

        /// Loads 16 bytes of each row: register i holds rows i, i + 4, i + 8, i + 12.
        fn fourths(rows: &RowPointers, offset: usize) -> [__m512i; 4] {
            let mut out = [_mm512_setzero_si512(); 4];
            for i in 0..4 {
                let (a, b) = (rows[i].add(offset), rows[i + 4].add(offset));
                out[i] = Self::quarters(a, b, rows[i + 8].add(offset), rows[i + 12].add(offset));
            }
            out
        }

        /// Transposes 4 × 4 lanes within each 128 bits.
        fn transpose4(v: [__m512i; 4]) -> [__m512i; 4] {
            let (a, b) = (_mm512_unpacklo_epi32(v[0], v[1]), _mm512_unpackhi_epi32(v[0], v[1]));
            let (c, d) = (_mm512_unpacklo_epi32(v[2], v[3]), _mm512_unpackhi_epi32(v[2], v[3]));
            [
                _mm512_unpacklo_epi64(a, c),
                _mm512_unpackhi_epi64(a, c),
                _mm512_unpacklo_epi64(b, d),
                _mm512_unpackhi_epi64(b, d),
            ]
        }

        /// Sums within each 128 bits: lane i becomes the sum of the four lanes of register i.
        pub fn sum4(a: __m512i, b: __m512i, c: __m512i, d: __m512i) -> __m512i {
            let ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
            let cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
            _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd))
        }

        /// Interleaves the even 128-bit parts of two registers.
        pub fn even(a: __m512i, b: __m512i) -> __m512i {
            let order = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
            _mm512_permutex2var_epi64(a, order, b)
        }
        /// Interleaves the odd 128-bit parts of two registers.
        pub fn odd(a: __m512i, b: __m512i) -> __m512i {
            let order = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
            _mm512_permutex2var_epi64(a, order, b)
        }
    }
}

impl Simd for ZmmI32 {
    const ROWS: usize = 16;
    const PANELS: usize = 2;
    const I16_SUMS: bool = false;
    const SIGNED_BIAS: i32 = 128;
    type I = __m512i;
    type F = __m512;

    instructions! {
        fn zero() -> __m512i { _mm512_setzero_si512() }
        fn zero_f() -> __m512 { _mm512_setzero_ps() }
        fn splat(v: i32) -> __m512i { _mm512_set1_epi32(v) }
        fn splat_f(v: f32) -> __m512 { _mm512_set1_ps(v) }
        fn load(from: *const i32) -> __m512i { _mm512_loadu_si512(from.cast()) }
        fn store(to: *mut i32, v: __m512i) -> () { _mm512_storeu_si512(to.cast(), v) }
        fn load_f(from: *const f32) -> __m512 { _mm512_loadu_ps(from) }
        fn store_f(to: *mut f32, v: __m512) -> () { _mm512_storeu_ps(to, v) }
        fn add(a: __m512i, b: __m512i) -> __m512i { _mm512_add_epi32(a, b) }
        fn sub(a: __m512i, b: __m512i) -> __m512i { _mm512_sub_epi32(a, b) }
        fn mul(a: __m512i, b: __m512i) -> __m512i { _mm512_mullo_epi32(a, b) }
        fn and(a: __m512i, b: __m512i) -> __m512i { _mm512_and_si512(a, b) }
        fn or(a: __m512i, b: __m512i) -> __m512i { _mm512_or_si512(a, b) }
        fn shift_left<const N: u32>(a: __m512i) -> __m512i { _mm512_slli_epi32::<N>(a) }
        fn shift_right<const N: u32>(a: __m512i) -> __m512i { _mm512_srli_epi32::<N>(a) }
        fn shift_right_signed<const N: u32>(a: __m512i) -> __m512i { _mm512_srai_epi32::<N>(a) }
        fn to_f(a: __m512i) -> __m512 { _mm512_cvtepi32_ps(a) }
        fn mul_f(a: __m512, b: __m512) -> __m512 { _mm512_mul_ps(a, b) }
        fn fma(a: __m512, b: __m512, c: __m512) -> __m512 { _mm512_fmadd_ps(a, b, c) }
        fn f16_low(a: __m512i) -> __m512 { _mm512_cvtph_ps(_mm512_cvtepi32_epi16(a)) }
        fn f16_high(a: __m512i) -> __m512 { Self::f16_low(_mm512_srli_epi32::<16>(a)) }
        fn load_f16(rows: &RowPointers, offset: usize) -> __m512 {
            // Inserted one by one: one load after sixteen stores would stall on store forwarding.
            let (low, high) = (Self::eight16(rows, 0, offset), Self::eight16(rows, 8, offset));
            _mm512_cvtph_ps(_mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high))
        }

        fn load_bytes(rows: &RowPointers, offset: usize) -> __m512i {
            let at = |i: usize| rows[i].add(offset).read() as i8;
            let low = _mm_setr_epi8(at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7), 0, 0, 0, 0, 0, 0, 0, 0);
            let high =
                _mm_setr_epi8(at(8), at(9), at(10), at(11), at(12), at(13), at(14), at(15), 0, 0, 0, 0, 0, 0, 0, 0);
            _mm512_cvtepu8_epi32(_mm_unpacklo_epi64(low, high))
        }
        fn bitcast_f(a: __m512i) -> __m512 { _mm512_castsi512_ps(a) }
        fn load_table(codes: &[i8; 16]) -> __m512i {
            _mm512_broadcast_i32x4(_mm_loadu_si128(codes.as_ptr().cast()))
        }
        fn lookup(table: __m512i, indices: __m512i) -> __m512i { _mm512_shuffle_epi8(table, indices) }

        fn prefetch(at: *const u8) -> () { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }

        fn dot(acc: __m512i, w: __m512i, a: __m512i) -> __m512i { _mm512_dpbusd_epi32(acc, w, a) }
        fn bias_signed(w: __m512i) -> __m512i { _mm512_xor_si512(w, _mm512_set1_epi8(-128)) }
        fn dot_signed(acc: __m512i, w: __m512i, a: __m512i) -> __m512i { _mm512_dpbusd_epi32(acc, w, a) }
        fn dot_pairs(acc: __m512i, w: __m512i, a: __m512i) -> __m512i { _mm512_dpwssd_epi32(acc, w, a) }

        fn broadcast32(from: *const u8) -> __m512i {
            _mm512_broadcast_i64x4(_mm256_loadu_si256(from.cast()))
        }
        fn load_rows32(rows: &RowPointers, offset: usize) -> [__m512i; 8] {
            let mut out = [_mm512_setzero_si512(); 8];
            for i in 0..8 {
                let low = _mm256_loadu_si256(rows[i].add(offset).cast());
                let high = _mm256_loadu_si256(rows[i + 8].add(offset).cast());
                out[i] = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
            }
            out
        }
        fn nibbles32(rows: &RowPointers, offset: usize) -> [__m512i; 8] {
            let shifts = _mm512_setr_epi64(0, 0, 4, 4, 0, 0, 4, 4);
            let mask = _mm512_set1_epi8(15);
            let mut out = [_mm512_setzero_si512(); 8];
            for i in 0..8 {
                let low = _mm256_broadcastsi128_si256(_mm_loadu_si128(rows[i].add(offset).cast()));
                let high = _mm256_broadcastsi128_si256(_mm_loadu_si128(rows[i + 8].add(offset).cast()));
                let both = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
                out[i] = _mm512_and_si512(_mm512_srlv_epi64(both, shifts), mask);
            }
            out
        }
        fn bits32(rows: &RowPointers, offset: usize) -> [__m512i; 8] {
            let at = |i: usize| u64::from(rows[i].add(offset).cast::<u32>().read_unaligned());
            let mut out = [_mm512_setzero_si512(); 8];
            for i in 0..8 {
                out[i] = _mm512_movm_epi8(at(i) | at(i + 8) << 32);
            }
            out
        }
        fn dot_nibbles(rows: &RowPointers, offset: usize, a: *const u8) -> __m512i {
            let first = _mm512_broadcast_i32x4(_mm_loadu_si128(a.cast()));
            let second = _mm512_broadcast_i32x4(_mm_loadu_si128(a.add(16).cast()));
            let mask = _mm512_set1_epi8(15);
            let mut dots = Self::fourths(rows, offset);
            for i in 0..4 {
                let (low, high) = (dots[i], _mm512_srli_epi32::<4>(dots[i]));
                let dot = _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_and_si512(low, mask), first);
                dots[i] = _mm512_dpbusd_epi32(dot, _mm512_and_si512(high, mask), second);
            }
            Self::sum4(dots[0], dots[1], dots[2], dots[3])
        }
        fn dot_codes(rows: &RowPointers, offset: usize, a: *const u8, table: __m512i) -> __m512i {
            let first = _mm512_broadcast_i32x4(_mm_loadu_si128(a.cast()));
            let second = _mm512_broadcast_i32x4(_mm_loadu_si128(a.add(16).cast()));
            let mask = _mm512_set1_epi8(15);
            let mut dots = Self::fourths(rows, offset);
            for i in 0..4 {
                let low = _mm512_and_si512(dots[i], mask);
                let high = _mm512_and_si512(_mm512_srli_epi32::<4>(dots[i]), mask);
                let dot = _mm512_dpbusd_epi32(_mm512_setzero_si512(), Self::lookup(table, low), first);
                dots[i] = _mm512_dpbusd_epi32(dot, Self::lookup(table, high), second);
            }
            Self::sum4(dots[0], dots[1], dots[2], dots[3])
        }
        fn columns16(rows: &RowPointers, offset: usize) -> [__m512i; 4] {
            Self::transpose4(Self::fourths(rows, offset))
        }
        fn transpose(rows: [__m512i; 8]) -> [__m512i; 8] {
            let a = Self::transpose4([rows[0], rows[1], rows[2], rows[3]]);
            let b = Self::transpose4([rows[4], rows[5], rows[6], rows[7]]);
            let mut out = [_mm512_setzero_si512(); 8];
            for j in 0..8 {
                out[j] = if j < 4 { Self::even(a[j], b[j]) } else { Self::odd(a[j - 4], b[j - 4]) };
            }
            out
        }
        fn reduce(rows: [__m512i; 8]) -> (__m512i, __m512i) {
            let a = Self::sum4(rows[0], rows[1], rows[2], rows[3]);
            let b = Self::sum4(rows[4], rows[5], rows[6], rows[7]);
            (Self::even(a, b), Self::odd(a, b))
        }
    }
}
