//! GEMV over four weight rows of 256-element blocks with mins (Q4_K, Q5_K) for AVX-512, one token or a few in
//! turn.
//! As in `gemv_avx512_block32`, four streams are few enough for the hardware prefetcher.
//! Guarantees the bits of `panel`: integers are exact in any order, float additions are the same chain.

use std::arch::x86_64::*;

use super::panel::{self, RowPrefetcher, TokenActivations};
use super::simd::avx512::ZmmI32;
use super::{Activations, OutTile, WeightRows};

/// Elements in a block.
const BLOCK_LEN: usize = 256;
/// Weight rows at once.
const ROWS: usize = 4;

/// Per-format decoding for blocks that begin with d, dmin and packed six-bit scales and mins for each 32
/// elements.
pub trait GemvBlock256 {
    /// Bytes of a block.
    const BYTES: usize;

    /// Unpacks the integers of a block, within 0..=127: groups of 32 elements 0 and 2, 1 and 3, 4 and 6, 5
    /// and 7.
    ///
    /// # Safety
    /// AVX-512 F; a whole block lies at `block`.
    unsafe fn integers(block: *const u8) -> [__m512i; 4];
}

/// Multiplies all rows. Returns false, having done nothing, for more than `GEMV_MAX_TOKENS` tokens.
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
    // Spread the prefetches of the next rows over the tokens.
    let prefetch_bytes = (ROWS * M::BYTES).div_ceil(acts.n_tokens);
    for first in (0..w.n_rows()).step_by(ROWS) {
        let (pointers, rows) = (panel::row_pointers(&w, first), first..(first + ROWS).min(w.n_rows()));
        let mut prefetcher = RowPrefetcher::after(&w, rows.clone());
        for t in 0..acts.n_tokens {
            let token = TokenActivations::of(&acts, t);
            assert!(
                token.q.len() == w.k && token.scales.len() == n_blocks && token.sums.len() == n_blocks * 12
            );
            let mut sums = [0.0; ROWS];
            // SAFETY: guaranteed by the caller; the lengths were compared above, and `row_pointers` gives whole
            // rows of `w`.
            unsafe {
                let mut acc = _mm_setzero_ps();
                for block in 0..n_blocks {
                    prefetcher.prefetch_lines::<ZmmI32>(prefetch_bytes);
                    acc = add_block::<M>(acc, &pointers, &token, block);
                }
                _mm_storeu_ps(sums.as_mut_ptr(), acc);
            }
            out.token(t)[rows.clone()].copy_from_slice(&sums[..rows.len()]);
        }
    }
    true
}

/// Returns acc + the products of the token with block `at` of each row.
///
/// # Safety
/// Same requirements as `run`; the rows and the token have this block.
#[inline(always)]
unsafe fn add_block<M: GemvBlock256>(
    acc: __m128,
    rows: &[*const u8; ROWS],
    token: &TokenActivations,
    at: usize,
) -> __m128 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let blocks = rows.map(|row| row.add(at * M::BYTES));
        let headers = ZmmI32::quarters(blocks[0], blocks[1], blocks[2], blocks[3]);
        let bytes = unpack_scales_and_mins(headers);
        let integers =
            _mm_cvtepi32_ps(scaled_dots::<M>(&blocks, bytes, token.q.as_ptr().add(at * BLOCK_LEN)));
        let mins = _mm_cvtepi32_ps(dot_mins(bytes, token.sums.as_ptr().add(at * 12 + 8)));
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

/// Returns (rows, 16): eight scales, then eight mins of each header.
///
/// # Safety
/// AVX-512 F, BW.
#[inline(always)]
unsafe fn unpack_scales_and_mins(headers: __m512i) -> __m512i {
    // SAFETY: guaranteed by the caller.
    unsafe {
        // d and dmin are followed by three 4-byte words. The first two hold scales and mins 0..4 in their low
        // six bits. The third holds the low nibbles of scales and mins 4..8, whose top two bits sit on top of
        // the first two.
        let low = _mm512_shuffle_epi32::<0b11_10_11_01>(headers);
        let low = _mm512_srlv_epi32(low, _mm512_broadcast_i32x4(_mm_setr_epi32(0, 0, 0, 4)));
        let four = _mm512_broadcast_i32x4(_mm_setr_epi32(0x3F3F_3F3F, 0x0F0F_0F0F, 0x3F3F_3F3F, 0x0F0F_0F0F));
        let top = _mm512_srli_epi32::<2>(_mm512_shuffle_epi32::<0b10_10_01_01>(headers));
        let two = _mm512_broadcast_i32x4(_mm_setr_epi32(0, 0x3030_3030, 0, 0x3030_3030));
        _mm512_or_si512(_mm512_and_si512(low, four), _mm512_and_si512(top, two))
    }
}

/// Returns (rows): the integers times the activations, each group times its scale.
///
/// # Safety
/// Same requirements as `add_block`; `q` has the activations of the block.
#[inline(always)]
unsafe fn scaled_dots<M: GemvBlock256>(blocks: &[*const u8; ROWS], bytes: __m512i, q: *const i8) -> __m128i {
    // SAFETY: guaranteed by the caller.
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
            // Both halves of groups 0, 1, 4 and 5, then of groups 2, 3, 6 and 7.
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

/// Returns the shuffle that widens scales 0, 1, 4 and 5 to 32 bits, twice, then scales 2, 3, 6 and 7.
///
/// # Safety
/// AVX-512 F.
#[inline(always)]
unsafe fn scale_shuffle() -> __m512i {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let none = 0x8080_8000_u32.cast_signed();
        let four = |a, b, c, d| _mm_setr_epi32(none | a, none | b, none | c, none | d);
        let scale_shuffle = _mm512_broadcast_i32x4(four(0, 1, 4, 5));
        let second = _mm256_broadcastsi128_si256(four(2, 3, 6, 7));
        _mm512_inserti64x4::<1>(scale_shuffle, second)
    }
}

/// Returns (rows): the mins times the activation sums of 32 elements, which are eight i16.
///
/// # Safety
/// Same requirements as `run`; the sums of a block lie at `sums`.
#[inline(always)]
unsafe fn dot_mins(bytes: __m512i, sums: *const i32) -> __m128i {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mins = _mm512_unpackhi_epi8(bytes, _mm512_setzero_si512());
        let products = _mm512_madd_epi16(mins, _mm512_broadcast_i32x4(_mm_loadu_si128(sums.cast())));
        let products = _mm512_add_epi32(products, _mm512_shuffle_epi32::<0b10_11_00_01>(products));
        let products = _mm512_add_epi32(products, _mm512_shuffle_epi32::<0b01_00_11_10>(products));
        let heads = _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
        _mm512_castsi512_si128(_mm512_permutexvar_epi32(heads, products))
    }
}
