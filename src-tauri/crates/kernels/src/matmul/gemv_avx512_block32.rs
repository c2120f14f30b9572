//! GEMV over four weight rows of 32-element blocks for AVX-512, for one token or a few in turn.
//! Four streams are few enough for the hardware prefetcher. The sixteen of `panel` depend on software
//! prefetches alone, of which a core sustains few.
//! Guarantees the bits of `panel`: integers are exact in any order, float additions are the same chain.

use std::arch::x86_64::*;

use super::blocks32::LEN;
use super::panel::{self, RowPrefetcher, TokenActivations};
use super::simd::avx512::ZmmI32;
use super::{Activations, OutTile, WeightRows};

/// Weight rows at once.
pub const ROWS: usize = 4;
/// Blocks at once.
pub const BLOCKS: usize = 4;

/// Per-format decoding for the AVX-512 GEMV over four rows of 32-element blocks.
pub trait GemvBlock32 {
    /// Bytes of a block.
    const BYTES: usize;
    /// Zero point of the integers, which are stored within 0..=255.
    const ZERO_POINT: i32;

    /// Returns (blocks, rows): the dot products of four blocks of each row with 128 activations, zero point
    /// included.
    ///
    /// # Safety
    /// AVX-512 F, BW, VL, DQ, VNNI; four whole blocks lie at each row.
    unsafe fn dots(rows: &[*const u8; ROWS], q: *const i8) -> __m512i;

    /// Returns (blocks, rows): the block scales.
    ///
    /// # Safety
    /// Same requirements as `dots`.
    unsafe fn scales(rows: &[*const u8; ROWS]) -> __m512;
}

/// Multiplies all rows. Returns false, having done nothing, for more than `GEMV_MAX_TOKENS` tokens or fewer
/// than four blocks.
///
/// # Safety
/// AVX-512 F, BW, VL, DQ, VNNI, FMA and F16C.
#[inline(always)]
pub unsafe fn run<S: GemvBlock32>(w: WeightRows, acts: Activations, out: &mut OutTile) -> bool {
    let n_blocks = w.k / LEN;
    if acts.n_tokens > panel::GEMV_MAX_TOKENS || n_blocks < BLOCKS {
        return false;
    }
    assert!(w.k.is_multiple_of(LEN) && w.row_bytes == n_blocks * S::BYTES && acts.k == w.k);
    // Spread the prefetches of the next rows over the tokens.
    let prefetch_bytes = (ROWS * BLOCKS * S::BYTES).div_ceil(acts.n_tokens);
    for first in (0..w.n_rows()).step_by(ROWS) {
        let (pointers, rows) = (panel::row_pointers(&w, first), first..(first + ROWS).min(w.n_rows()));
        let mut prefetcher = RowPrefetcher::after(&w, rows.clone());
        for t in 0..acts.n_tokens {
            let token = TokenActivations::of(&acts, t);
            assert!(token.q.len() == w.k && token.scales.len() == n_blocks && token.sums.len() == n_blocks);
            // SAFETY: guaranteed by the caller; the lengths were compared above, and `row_pointers` gives whole
            // rows of `w`.
            let sums =
                unsafe { multiply_rows::<S>(&pointers, &token, n_blocks, &mut prefetcher, prefetch_bytes) };
            out.token(t)[rows.clone()].copy_from_slice(&sums[..rows.len()]);
        }
    }
    true
}

/// Multiplies `n_blocks` blocks (at least four) of each row with the token. Prefetches `prefetch_bytes` with
/// every four blocks.
///
/// # Safety
/// Same requirements as `run`; the rows and the token have these blocks.
#[inline(always)]
unsafe fn multiply_rows<S: GemvBlock32>(
    rows: &[*const u8; ROWS],
    token: &TokenActivations,
    n_blocks: usize,
    prefetcher: &mut RowPrefetcher,
    prefetch_bytes: usize,
) -> [f32; ROWS] {
    let n_whole = n_blocks / BLOCKS * BLOCKS;
    let mut sums = [0.0; ROWS];
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut acc = _mm_setzero_ps();
        for at in (0..n_whole).step_by(BLOCKS) {
            prefetcher.prefetch_lines::<ZmmI32>(prefetch_bytes);
            let [a, b, c, d] = multiply_four_blocks::<S>(rows, token, at);
            acc = _mm_fmadd_ps(a.0, a.1, acc);
            acc = _mm_fmadd_ps(b.0, b.1, acc);
            acc = _mm_fmadd_ps(c.0, c.1, acc);
            acc = _mm_fmadd_ps(d.0, d.1, acc);
        }
        if n_whole < n_blocks {
            // The last four blocks, some of which are already added.
            let last = multiply_four_blocks::<S>(rows, token, n_blocks - BLOCKS);
            for (dots, scales) in &last[n_whole + BLOCKS - n_blocks..] {
                acc = _mm_fmadd_ps(*dots, *scales, acc);
            }
        }
        _mm_storeu_ps(sums.as_mut_ptr(), acc);
    }
    sums
}

/// Returns the products of four blocks from `at` of each row with the token, and their scales.
///
/// # Safety
/// Same requirements as `run`; the rows and the token have these blocks.
#[inline(always)]
unsafe fn multiply_four_blocks<S: GemvBlock32>(
    rows: &[*const u8; ROWS],
    token: &TokenActivations,
    at: usize,
) -> [(__m128, __m128); BLOCKS] {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut blocks = *rows;
        for block in &mut blocks {
            *block = block.add(at * S::BYTES);
        }
        let sums = broadcast_per_block(token.sums.as_ptr().add(at));
        let token_scales = _mm512_castsi512_ps(broadcast_per_block(token.scales.as_ptr().add(at).cast()));
        let dots = S::dots(&blocks, token.q.as_ptr().add(at * LEN));
        let offsets = _mm512_mullo_epi32(sums, _mm512_set1_epi32(S::ZERO_POINT));
        let dots = _mm512_cvtepi32_ps(_mm512_sub_epi32(dots, offsets));
        let scales = _mm512_mul_ps(S::scales(&blocks), token_scales);
        [
            (_mm512_castps512_ps128(dots), _mm512_castps512_ps128(scales)),
            (_mm512_extractf32x4_ps::<1>(dots), _mm512_extractf32x4_ps::<1>(scales)),
            (_mm512_extractf32x4_ps::<2>(dots), _mm512_extractf32x4_ps::<2>(scales)),
            (_mm512_extractf32x4_ps::<3>(dots), _mm512_extractf32x4_ps::<3>(scales)),
        ]
    }
}

/// Returns (blocks, rows): each of four 32-bit values for all rows.
///
/// # Safety
/// AVX-512 F; the values lie at `from`.
#[inline(always)]
unsafe fn broadcast_per_block(from: *const i32) -> __m512i {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let order = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
        _mm512_permutexvar_epi32(order, _mm512_castsi128_si512(_mm_loadu_si128(from.cast())))
    }
}

/// Returns (blocks, rows): the dot products of four rows of nibbles. `integers` holds the low nibbles (first
/// 16 elements of each block) and the high ones.
///
/// # Safety
/// Same requirements as `GemvBlock32::dots`.
#[inline(always)]
pub unsafe fn dot_nibble_halves(integers: [[__m512i; 2]; ROWS], q: *const i8) -> __m512i {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let (a, b) = (_mm512_loadu_si512(q.cast()), _mm512_loadu_si512(q.add(64).cast()));
        let first = _mm512_shuffle_i32x4::<0b10_00_10_00>(a, b);
        let second = _mm512_shuffle_i32x4::<0b11_01_11_01>(a, b);
        let mut dots = [_mm512_setzero_si512(); ROWS];
        for row in 0..ROWS {
            let [low, high] = integers[row];
            dots[row] = _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(dots[row], low, first), high, second);
        }
        ZmmI32::sum4(dots[0], dots[1], dots[2], dots[3])
    }
}

/// Returns (blocks, rows): from the first 64 bytes of each row the 16-bit words at `words`, one for each
/// block, in the low halves.
///
/// # Safety
/// AVX-512 F, BW; 64 bytes lie at each row.
#[inline(always)]
pub unsafe fn gather_words(rows: &[*const u8; ROWS], words: [i32; BLOCKS]) -> __m512i {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let load = |row: usize| _mm512_loadu_si512(rows[row].cast());
        let mut order = [0; ROWS * BLOCKS];
        for (i, order) in order.iter_mut().enumerate() {
            // Indices into the second of the two registers are 32 higher.
            *order = words[i / ROWS] + 32 * (i as i32 % 2);
        }
        let order = _mm512_loadu_si512(order.as_ptr().cast());
        let low = _mm512_permutex2var_epi16(load(0), order, load(1));
        let high = _mm512_permutex2var_epi16(load(2), order, load(3));
        _mm512_mask_blend_epi32(0b1100_1100_1100_1100, low, high)
    }
}
