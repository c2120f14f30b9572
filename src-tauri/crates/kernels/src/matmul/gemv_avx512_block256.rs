//! One token, or a few after each other, times four weight rows at once of the formats of 256 elements with mins, Q4_K
//! and Q5_K, for AVX-512: as `gemv_avx512_block32`, few enough streams for the processor to foresee. Sums are those of `panel`, to
//! the bit: integers are exact in any scale_shuffle, and the float additions of a row are the same chain.

use std::arch::x86_64::*;

use super::panel::{self, RowPrefetcher, TokenActivations};
use super::simd::avx512::ZmmI32;
use super::{Activations, OutTile, WeightRows};

const BLOCK_LEN: usize = 256;
/// At once.
const ROWS: usize = 4;

/// What distinguishes a format that begins with d, dmin and packed six-bit scales and mins for each 32 elements.
pub trait GemvBlock256 {
    const BYTES: usize;

    /// The integers of a block, within 0..=127: of groups of 32 elements 0 and 2, 1 and 3, 4 and 6, 5 and 7.
    ///
    /// # Safety
    /// AVX-512 F; a whole block lies at `block`.
    unsafe fn integers(block: *const u8) -> [__m512i; 4];
}

/// All rows; false where there are many tokens, which share what they read some other way.
///
/// # Safety
/// AVX-512 F, BW, VL, DQ, VNNI, FMA and F16C.
#[inline(always)]
pub unsafe fn run<M: GemvBlock256>(w: WeightRows, acts: Activations, out: &mut OutTile) -> bool {
    if acts.n_tokens > panel::GEMV_MAX_TOKENS {
        return false;
    }
    let n_blocks = w.k / BLOCK_LEN;
    assert!(w.k.is_multiple_of(BLOCK_LEN) && w.row_bytes == n_blocks * M::BYTES && acts.k == w.k);
    // Each token asks for its share of the rows that come next.
    let prefetch_bytes = (ROWS * M::BYTES).div_ceil(acts.n_tokens);
    for first in (0..w.n_rows()).step_by(ROWS) {
        let (pointers, rows) = (panel::pointers(&w, first), first..(first + ROWS).min(w.n_rows()));
        let mut prefetcher = RowPrefetcher::after(&w, rows.clone());
        for t in 0..acts.n_tokens {
            let token = TokenActivations::of(&acts, t);
            assert!(
                token.q.len() == w.k && token.scales.len() == n_blocks && token.sums.len() == n_blocks * 12
            );
            let mut sums = [0.0; ROWS];
            // SAFETY: the caller's; the lengths were compared above, and `pointers` gives whole rows of `w`.
            unsafe {
                let mut acc = _mm_setzero_ps();
                for block in 0..n_blocks {
                    prefetcher.prefetch_lines::<ZmmI32>(prefetch_bytes);
                    acc = add::<M>(acc, &pointers, &token, block);
                }
                _mm_storeu_ps(sums.as_mut_ptr(), acc);
            }
            out.token(t)[rows.clone()].copy_from_slice(&sums[..rows.len()]);
        }
    }
    true
}

/// acc + the products of the token with block `at` of each row.
///
/// # Safety
/// As for `run`; the rows and the token have this block.
#[inline(always)]
unsafe fn add<M: GemvBlock256>(
    acc: __m128,
    rows: &[*const u8; ROWS],
    token: &TokenActivations,
    at: usize,
) -> __m128 {
    // SAFETY: the caller's.
    unsafe {
        let blocks = rows.map(|row| row.add(at * M::BYTES));
        let headers = ZmmI32::quarters(blocks[0], blocks[1], blocks[2], blocks[3]);
        let bytes = unpack_scales_and_mins(headers);
        let integers =
            _mm_cvtepi32_ps(scaled_dots::<M>(&blocks, bytes, token.q.as_ptr().add(at * BLOCK_LEN)));
        let mins = _mm_cvtepi32_ps(mins(bytes, token.sums.as_ptr().add(at * 12 + 8)));
        // d and dmin of each row.
        let heads = _mm512_permutexvar_epi32(
            _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
            headers,
        );
        let apart = _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
        let factors = _mm256_cvtph_ps(_mm_shuffle_epi8(_mm512_castsi512_si128(heads), apart));
        let value = _mm_mul_ps(integers, _mm256_castps256_ps128(factors));
        let value = _mm_fnmadd_ps(mins, _mm256_extractf128_ps::<1>(factors), value);
        _mm_fmadd_ps(value, _mm_set1_ps(*token.scales.get_unchecked(at)), acc)
    }
}

/// (rows, 16): of each header eight scales, then eight mins.
///
/// # Safety
/// AVX-512 F, BW.
#[inline(always)]
unsafe fn unpack_scales_and_mins(headers: __m512i) -> __m512i {
    // SAFETY: the caller's.
    unsafe {
        // After d and dmin come four bytes with the first scales in their low six bits, four with the first mins,
        // and four with the low nibbles of the other scales and mins, whose upper two bits are on top of the first.
        let low = _mm512_shuffle_epi32::<0b11_10_11_01>(headers);
        let low = _mm512_srlv_epi32(low, _mm512_broadcast_i32x4(_mm_setr_epi32(0, 0, 0, 4)));
        let four = _mm512_broadcast_i32x4(_mm_setr_epi32(0x3F3F_3F3F, 0x0F0F_0F0F, 0x3F3F_3F3F, 0x0F0F_0F0F));
        let top = _mm512_srli_epi32::<2>(_mm512_shuffle_epi32::<0b10_10_01_01>(headers));
        let two = _mm512_broadcast_i32x4(_mm_setr_epi32(0, 0x3030_3030, 0, 0x3030_3030));
        _mm512_or_si512(_mm512_and_si512(low, four), _mm512_and_si512(top, two))
    }
}

/// (rows): the integers times the activations, each group times its scale.
///
/// # Safety
/// As for `add`; `q` has the activations of the block.
#[inline(always)]
unsafe fn scaled_dots<M: GemvBlock256>(blocks: &[*const u8; ROWS], bytes: __m512i, q: *const i8) -> __m128i {
    // SAFETY: the caller's.
    unsafe {
        let zero = _mm512_setzero_si512();
        let mut acts = [zero; 4];
        for (i, acts) in acts.iter_mut().enumerate() {
            let q = q.add(i / 2 * 128 + i % 2 * 32);
            let low = _mm512_castsi256_si512(_mm256_loadu_si256(q.cast()));
            *acts = _mm512_inserti64x4::<1>(low, _mm256_loadu_si256(q.add(64).cast()));
        }
        let scale_shuffle = scale_shuffle();
        let mut sums = [zero; ROWS];
        for row in 0..ROWS {
            let integers = M::integers(blocks[row]);
            let mut dots = [zero; 4];
            for i in 0..4 {
                dots[i] = _mm512_dpbusd_epi32(zero, integers[i], acts[i]);
            }
            // Of groups 0, 1, 4 and 5 the halves, then of groups 2, 3, 6 and 7.
            let dots = ZmmI32::sum4(dots[0], dots[1], dots[2], dots[3]);
            let scales = match row {
                0 => _mm512_shuffle_i32x4::<0b00_00_00_00>(bytes, bytes),
                1 => _mm512_shuffle_i32x4::<0b01_01_01_01>(bytes, bytes),
                2 => _mm512_shuffle_i32x4::<0b10_10_10_10>(bytes, bytes),
                _ => _mm512_shuffle_i32x4::<0b11_11_11_11>(bytes, bytes),
            };
            sums[row] = _mm512_mullo_epi32(dots, _mm512_shuffle_epi8(scales, scale_shuffle));
        }
        let sums = ZmmI32::sum4(sums[0], sums[1], sums[2], sums[3]);
        let sums = _mm256_add_epi32(_mm512_castsi512_si256(sums), _mm512_extracti64x4_epi64::<1>(sums));
        _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums))
    }
}

/// Takes scales 0, 1, 4 and 5 as 32 bits each, twice, then scales 2, 3, 6 and 7.
///
/// # Safety
/// AVX-512 F.
#[inline(always)]
unsafe fn scale_shuffle() -> __m512i {
    // SAFETY: the caller's.
    unsafe {
        let none = 0x8080_8000_u32.cast_signed();
        let four = |a, b, c, d| _mm_setr_epi32(none | a, none | b, none | c, none | d);
        let scale_shuffle = _mm512_broadcast_i32x4(four(0, 1, 4, 5));
        let second = _mm256_broadcastsi128_si256(four(2, 3, 6, 7));
        _mm512_inserti64x4::<1>(scale_shuffle, second)
    }
}

/// (rows): the mins times the sums of 32 activations each, which are eight i16.
///
/// # Safety
/// As for `run`; the sums of a block lie at `sums`.
#[inline(always)]
unsafe fn mins(bytes: __m512i, sums: *const i32) -> __m128i {
    // SAFETY: the caller's.
    unsafe {
        let mins = _mm512_unpackhi_epi8(bytes, _mm512_setzero_si512());
        let products = _mm512_madd_epi16(mins, _mm512_broadcast_i32x4(_mm_loadu_si128(sums.cast())));
        let products = _mm512_add_epi32(products, _mm512_shuffle_epi32::<0b10_11_00_01>(products));
        let products = _mm512_add_epi32(products, _mm512_shuffle_epi32::<0b01_00_11_10>(products));
        let heads = _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
        _mm512_castsi512_si128(_mm512_permutexvar_epi32(heads, products))
    }
}
