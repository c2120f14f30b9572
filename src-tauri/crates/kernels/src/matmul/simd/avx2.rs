//! Eight lanes: AVX2 with FMA and F16C, with or without AVX-VNNI. Both give the same integers and differ in
//! speed only.

#![allow(clippy::needless_range_loop)] // counted loops over registers unroll; iterators may not

use std::arch::x86_64::*;

use super::columns::{self, ColumnSums};
use super::{GroupScales, ColumnGroups, Simd, RowPointers, instructions};

/// AVX2, FMA, F16C; with `VNNI` also AVX-VNNI.
pub struct YmmI32<const VNNI: bool>;

impl<const VNNI: bool> YmmI32<VNNI> {
    instructions! {
        /// Loads 16 bytes of each of two rows.
        fn halves16(a: *const u8, b: *const u8) -> __m256i {
            let a = _mm256_castsi128_si256(_mm_loadu_si128(a.cast()));
            _mm256_inserti128_si256::<1>(a, _mm_loadu_si128(b.cast()))
        }

        /// Loads 16 bytes of each row: register i holds rows i and i + 4.
        fn halves4(rows: &RowPointers, offset: usize) -> [__m256i; 4] {
            let mut out = [_mm256_setzero_si256(); 4];
            for i in 0..4 {
                out[i] = Self::halves16(rows[i].add(offset), rows[i + 4].add(offset));
            }
            out
        }

        /// Transposes 4 × 4 lanes within each 128 bits.
        fn transpose4(v: [__m256i; 4]) -> [__m256i; 4] {
            let (a, b) = (_mm256_unpacklo_epi32(v[0], v[1]), _mm256_unpackhi_epi32(v[0], v[1]));
            let (c, d) = (_mm256_unpacklo_epi32(v[2], v[3]), _mm256_unpackhi_epi32(v[2], v[3]));
            [
                _mm256_unpacklo_epi64(a, c),
                _mm256_unpackhi_epi64(a, c),
                _mm256_unpacklo_epi64(b, d),
                _mm256_unpackhi_epi64(b, d),
            ]
        }

        /// Sums within each 128 bits: lane i becomes the sum of the four lanes of register i.
        fn sum4(a: __m256i, b: __m256i, c: __m256i, d: __m256i) -> __m256i {
            let ab = _mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
            let cd = _mm256_add_epi32(_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
            _mm256_add_epi32(_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd))
        }

        /// Like `sum4` for pairs of i16 that do not overflow when two are added.
        fn sum4_i16(a: __m256i, b: __m256i, c: __m256i, d: __m256i) -> __m256i {
            let pair = |a, b| _mm256_add_epi16(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
            let wide = |a| _mm256_madd_epi16(a, _mm256_set1_epi16(1));
            let (ab, cd) = (wide(pair(a, b)), wide(pair(c, d)));
            _mm256_add_epi32(_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd))
        }

        /// Multiplies 32 integers of each row, within 0..=32, with 32 activations. They are made from 16
        /// bytes, low nibbles first.
        fn dots32(rows: [__m256i; 4], a: *const u8, integers: impl Fn(__m256i) -> __m256i) -> __m256i {
            let first = _mm256_broadcastsi128_si256(_mm_loadu_si128(a.cast()));
            let second = _mm256_broadcastsi128_si256(_mm_loadu_si128(a.add(16).cast()));
            let mask = _mm256_set1_epi8(15);
            let mut dots = rows;
            for i in 0..4 {
                let low = integers(_mm256_and_si256(rows[i], mask));
                let high = integers(_mm256_and_si256(_mm256_srli_epi32::<4>(rows[i]), mask));
                let dot = Self::dot_i16(_mm256_setzero_si256(), low, first);
                dots[i] = Self::dot_i16(dot, high, second);
            }
            // Eight products of at most 32 · 127 sum to less than 2¹⁵.
            match VNNI {
                true => Self::sum4(dots[0], dots[1], dots[2], dots[3]),
                false => Self::sum4_i16(dots[0], dots[1], dots[2], dots[3]),
            }
        }

        /// Returns the low 128 bits of two registers.
        fn even(a: __m256i, b: __m256i) -> __m256i { _mm256_permute2x128_si256::<0x20>(a, b) }
        /// Returns the high 128 bits of two registers.
        fn odd(a: __m256i, b: __m256i) -> __m256i { _mm256_permute2x128_si256::<0x31>(a, b) }

        /// Returns the low 16 bits of each lane, in order.
        fn low16(a: __m256i) -> __m128i {
            let kept = _mm256_and_si256(a, _mm256_set1_epi32(0xFFFF));
            _mm_packus_epi32(_mm256_castsi256_si128(kept), _mm256_extracti128_si256::<1>(kept))
        }
    }
}

impl<const VNNI: bool> Simd for YmmI32<VNNI> {
    const ROWS: usize = 8;
    const PANELS: usize = 2;
    const I16_SUMS: bool = !VNNI;
    const SIGNED_BIAS: i32 = 0;
    type I = __m256i;
    type F = __m256;

    instructions! {
        fn zero() -> __m256i { _mm256_setzero_si256() }
        fn zero_f() -> __m256 { _mm256_setzero_ps() }
        fn splat(v: i32) -> __m256i { _mm256_set1_epi32(v) }
        fn splat_f(v: f32) -> __m256 { _mm256_set1_ps(v) }
        fn load(from: *const i32) -> __m256i { _mm256_loadu_si256(from.cast()) }
        fn store(to: *mut i32, v: __m256i) -> () { _mm256_storeu_si256(to.cast(), v) }
        fn load_f(from: *const f32) -> __m256 { _mm256_loadu_ps(from) }
        fn store_f(to: *mut f32, v: __m256) -> () { _mm256_storeu_ps(to, v) }
        fn add(a: __m256i, b: __m256i) -> __m256i { _mm256_add_epi32(a, b) }
        fn sub(a: __m256i, b: __m256i) -> __m256i { _mm256_sub_epi32(a, b) }
        fn mul(a: __m256i, b: __m256i) -> __m256i { _mm256_mullo_epi32(a, b) }
        fn and(a: __m256i, b: __m256i) -> __m256i { _mm256_and_si256(a, b) }
        fn or(a: __m256i, b: __m256i) -> __m256i { _mm256_or_si256(a, b) }
        fn shift_left<const N: u32>(a: __m256i) -> __m256i {
            _mm256_sll_epi32(a, _mm_cvtsi32_si128(N as i32))
        }
        fn shift_right<const N: u32>(a: __m256i) -> __m256i {
            _mm256_srl_epi32(a, _mm_cvtsi32_si128(N as i32))
        }
        fn shift_right_signed<const N: u32>(a: __m256i) -> __m256i {
            _mm256_sra_epi32(a, _mm_cvtsi32_si128(N as i32))
        }
        fn to_f(a: __m256i) -> __m256 { _mm256_cvtepi32_ps(a) }
        fn mul_f(a: __m256, b: __m256) -> __m256 { _mm256_mul_ps(a, b) }
        fn fma(a: __m256, b: __m256, c: __m256) -> __m256 { _mm256_fmadd_ps(a, b, c) }
        fn f16_low(a: __m256i) -> __m256 { _mm256_cvtph_ps(Self::low16(a)) }
        fn f16_high(a: __m256i) -> __m256 { Self::f16_low(_mm256_srli_epi32::<16>(a)) }
        fn load_f16(rows: &RowPointers, offset: usize) -> __m256 {
            // Inserted one by one: one load after eight stores would stall on store forwarding.
            let at = |i: usize| rows[i].add(offset).cast::<i16>().read_unaligned();
            _mm256_cvtph_ps(_mm_setr_epi16(at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)))
        }

        fn load_bytes(rows: &RowPointers, offset: usize) -> __m256i {
            let at = |i: usize| rows[i].add(offset).read() as i8;
            let bytes =
                _mm_setr_epi8(at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7), 0, 0, 0, 0, 0, 0, 0, 0);
            _mm256_cvtepu8_epi32(bytes)
        }
        fn bitcast_f(a: __m256i) -> __m256 { _mm256_castsi256_ps(a) }
        fn load_table(codes: &[i8; 16]) -> __m256i {
            _mm256_broadcastsi128_si256(_mm_loadu_si128(codes.as_ptr().cast()))
        }
        fn lookup(table: __m256i, indices: __m256i) -> __m256i { _mm256_shuffle_epi8(table, indices) }

        fn prefetch(at: *const u8) -> () { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }

        fn dot(acc: __m256i, w: __m256i, a: __m256i) -> __m256i {
            if VNNI {
                return _mm256_dpbusd_avx_epi32(acc, w, a);
            }
            // Two products are at most 2 · 127 · 127 < 2¹⁵, so nothing saturates.
            let pairs = _mm256_maddubs_epi16(w, a);
            _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
        }
        fn bias_signed(w: __m256i) -> __m256i { w }
        fn dot_signed(acc: __m256i, w: __m256i, a: __m256i) -> __m256i {
            // |w| ≤ 128 as unsigned bytes, with the sign moved to a: two products are at most 2 · 128 · 127 <
            // 2¹⁵.
            let (w, a) = (_mm256_abs_epi8(w), _mm256_sign_epi8(a, w));
            if VNNI {
                return _mm256_dpbusd_avx_epi32(acc, w, a);
            }
            let pairs = _mm256_maddubs_epi16(w, a);
            _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
        }
        fn dot_i16(acc: __m256i, w: __m256i, a: __m256i) -> __m256i {
            if VNNI {
                return Self::dot(acc, w, a);
            }
            _mm256_add_epi16(acc, _mm256_maddubs_epi16(w, a))
        }
        fn dot_i16_signed(acc: __m256i, w: __m256i, a: __m256i) -> __m256i {
            if VNNI {
                return Self::dot_signed(acc, w, a);
            }
            _mm256_add_epi16(acc, _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(a, w)))
        }
        fn widen(acc: __m256i, short: __m256i) -> __m256i {
            if VNNI {
                return _mm256_add_epi32(acc, short);
            }
            _mm256_add_epi32(acc, _mm256_madd_epi16(short, _mm256_set1_epi16(1)))
        }
        fn dot_columns<const N: usize>(w: [*const i32; 2], q: *const i32) -> ColumnSums {
            match N {
                4 => columns::i16_columns_4(w, q),
                8 => columns::i16_columns_8(w, q),
                _ => unreachable!("four columns or eight"),
            }
        }
        fn dot_groups(how: GroupScales, n: usize, from: ColumnGroups) -> ColumnSums {
            match how {
                GroupScales::Group => columns::per_group(n, from),
                GroupScales::GroupInHalves => columns::per_group_in_halves(n, from),
                GroupScales::Halves => columns::per_half(n, from),
                GroupScales::BiasedHalves => columns::per_half_biased(n, from),
            }
        }
        fn dot_signed_columns(w: [*const i32; 2], q: *const i32) -> ColumnSums { columns::signed_columns_8(w, q) }
        fn store_signed(to: *mut i32, w: __m256i) -> __m256i {
            let (magnitude, sign) = (_mm256_abs_epi8(w), _mm256_cmpgt_epi8(_mm256_setzero_si256(), w));
            Self::store(to, magnitude);
            Self::store(to.add(Self::ROWS), sign);
            Self::dot(_mm256_setzero_si256(), magnitude, _mm256_abs_epi8(sign))
        }
        fn load_signed(from: *const i32) -> __m256i {
            let sign = Self::load(from.add(Self::ROWS));
            _mm256_sub_epi8(_mm256_xor_si256(Self::load(from), sign), sign)
        }
        fn add_i16(a: __m256i, b: __m256i) -> __m256i { _mm256_add_epi16(a, b) }
        fn mul_i16(a: __m256i, by: i16) -> __m256i { _mm256_mullo_epi16(a, _mm256_set1_epi16(by)) }
        fn multiplier(scale: __m256i) -> __m256i {
            if VNNI {
                return scale;
            }
            _mm256_blend_epi16::<0b1010_1010>(scale, _mm256_slli_epi32::<16>(scale))
        }
        fn widen_scaled(acc: __m256i, short: __m256i, multiplier: __m256i) -> __m256i {
            if VNNI {
                return _mm256_add_epi32(acc, _mm256_mullo_epi32(short, multiplier));
            }
            _mm256_add_epi32(acc, _mm256_madd_epi16(short, multiplier))
        }
        fn dot_pairs(acc: __m256i, w: __m256i, a: __m256i) -> __m256i {
            if VNNI {
                return _mm256_dpwssd_avx_epi32(acc, w, a);
            }
            _mm256_add_epi32(acc, _mm256_madd_epi16(w, a))
        }

        fn broadcast32(from: *const u8) -> __m256i { _mm256_loadu_si256(from.cast()) }
        fn load_rows32(rows: &RowPointers, offset: usize) -> [__m256i; 8] {
            let mut out = [_mm256_setzero_si256(); 8];
            for i in 0..8 {
                out[i] = _mm256_loadu_si256(rows[i].add(offset).cast());
            }
            out
        }
        fn nibbles32(rows: &RowPointers, offset: usize) -> [__m256i; 8] {
            let shifts = _mm256_setr_epi64x(0, 0, 4, 4);
            let mask = _mm256_set1_epi8(15);
            let mut out = [_mm256_setzero_si256(); 8];
            for i in 0..8 {
                let both = _mm256_broadcastsi128_si256(_mm_loadu_si128(rows[i].add(offset).cast()));
                out[i] = _mm256_and_si256(_mm256_srlv_epi64(both, shifts), mask);
            }
            out
        }
        fn bits32(rows: &RowPointers, offset: usize) -> [__m256i; 8] {
            let spread = _mm256_setr_epi64x(
                0,
                0x0101_0101_0101_0101,
                0x0202_0202_0202_0202,
                0x0303_0303_0303_0303,
            );
            let bit = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
            let mut out = [_mm256_setzero_si256(); 8];
            for i in 0..8 {
                let all = _mm256_set1_epi32(rows[i].add(offset).cast::<i32>().read_unaligned());
                let own = _mm256_and_si256(_mm256_shuffle_epi8(all, spread), bit);
                out[i] = _mm256_cmpeq_epi8(own, bit);
            }
            out
        }
        fn dot_nibbles(rows: &RowPointers, offset: usize, a: *const u8) -> __m256i {
            Self::dots32(Self::halves4(rows, offset), a, |nibbles| nibbles)
        }
        fn dot_codes(rows: &RowPointers, offset: usize, a: *const u8, table: __m256i) -> __m256i {
            Self::dots32(Self::halves4(rows, offset), a, |nibbles| Self::lookup(table, nibbles))
        }
        fn columns16(rows: &RowPointers, offset: usize) -> [__m256i; 4] {
            Self::transpose4(Self::halves4(rows, offset))
        }
        fn transpose(rows: [__m256i; 8]) -> [__m256i; 8] {
            let a = Self::transpose4([rows[0], rows[1], rows[2], rows[3]]);
            let b = Self::transpose4([rows[4], rows[5], rows[6], rows[7]]);
            let mut out = [_mm256_setzero_si256(); 8];
            for j in 0..8 {
                out[j] = if j < 4 { Self::even(a[j], b[j]) } else { Self::odd(a[j - 4], b[j - 4]) };
            }
            out
        }
        fn reduce(rows: [__m256i; 8]) -> (__m256i, __m256i) {
            let a = Self::sum4(rows[0], rows[1], rows[2], rows[3]);
            let b = Self::sum4(rows[4], rows[5], rows[6], rows[7]);
            (Self::even(a, b), Self::odd(a, b))
        }
    }
}
