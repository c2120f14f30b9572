//! GEMV over weight rows of 256-element blocks, one row after the other, for AVX-512 and one token.
//! Memory streams faster in order than in the sixteen parallel rows of `panel`, few of which the hardware
//! prefetches.
//! Guarantees the bits of `panel`: integers are exact in any order, float additions are the same chain.

use std::arch::x86_64::*;

use super::panel::TokenActivations;
use super::simd::avx512::ZmmI32;
use super::{Activations, OutTile, WeightRows};

const BLOCK_LEN: usize = 256;
const CACHE_LINE: usize = 64;
/// Prefetch distance: the hardware follows a stream only to the end of its page.
const PREFETCH_DISTANCE_BYTES: usize = 4096;

/// A decoded block: integers within 0..=127, 64 to a register, in the order of the activations.
pub struct RowMajorBlock {
    /// (256 elements): bytes.
    pub integers: [__m512i; 4],
    /// (16 elements): signed bytes.
    pub scales: __m128i,
    /// Block scale, f16.
    pub d: u16,
}

/// Per-format decoding for the row-major AVX-512 GEMV; formats with a scale for each 16 elements.
pub trait GemvRowMajor {
    /// Bytes of a block.
    const BYTES: usize;
    /// log2 of the zero point of the stored integers.
    const ZERO_POINT_LOG2: i32;

    /// Decodes a block.
    ///
    /// # Safety
    /// AVX-512 F, BW, VL; a whole block lies at `block`.
    unsafe fn block(block: *const u8) -> RowMajorBlock;
}

/// Multiplies all rows. Returns false, having done nothing, for more than one token: what it shares among two is
/// too little.
///
/// # Safety
/// AVX-512 F, BW, VL, DQ, VNNI, FMA and F16C.
#[inline(always)]
pub unsafe fn run<S: GemvRowMajor>(w: WeightRows, acts: Activations, out: &mut OutTile) -> bool {
    if acts.n_tokens != 1 {
        return false;
    }
    let n_blocks = w.k / BLOCK_LEN;
    assert!(w.k.is_multiple_of(BLOCK_LEN) && w.row_bytes == n_blocks * S::BYTES && acts.k == w.k);
    let token = TokenActivations::of(&acts, 0);
    assert!(token.q.len() == w.k && token.scales.len() == n_blocks && token.sums.len() == n_blocks * 12);
    if w.n_rows() > 0 {
        // SAFETY: guaranteed by the caller; the lengths were compared above.
        unsafe { multiply_rows::<S>(&w, &token, out.token(0)) }
    }
    true
}

/// Multiplies the rows with one token. Four blocks are added to their sum only after the next four were
/// multiplied, so that nothing waits for a long dependency chain.
///
/// # Safety
/// Same requirements as `run`; the token has the activations of all blocks of a row.
#[inline(always)]
unsafe fn multiply_rows<S: GemvRowMajor>(w: &WeightRows, token: &TokenActivations, out: &mut [f32]) {
    let n_blocks = w.k / BLOCK_LEN;
    let (n_rows, n_fours) = (w.n_rows(), n_blocks.div_ceil(4));
    assert!(out.len() == n_rows && n_rows > 0 && n_fours > 0);
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut acc = _mm_setzero_ps();
        let mut blocks = multiply_four_blocks::<S>(w.row(0), token, 0);
        for (r, out) in out.iter_mut().enumerate() {
            for four in 0..n_fours {
                let (next_row, next_four) = if four + 1 < n_fours { (r, four + 1) } else { (r + 1, 0) };
                let next = match next_row < n_rows {
                    true => multiply_four_blocks::<S>(w.row(next_row), token, next_four * 4),
                    false => blocks,
                };
                let scales = &token.scales[four * 4..(four * 4 + 4).min(n_blocks)];
                acc = add_blocks::<S>(acc, blocks, scales);
                blocks = next;
            }
            *out = _mm_cvtss_f32(acc);
            acc = _mm_setzero_ps();
        }
    }
}

/// Multiplies four blocks from `first`. Past the end of the row it repeats the last block.
///
/// # Safety
/// Same requirements as `multiply_rows`.
#[inline(always)]
unsafe fn multiply_four_blocks<S: GemvRowMajor>(
    row: &[u8],
    token: &TokenActivations,
    first: usize,
) -> [BlockSums; 4] {
    let last = row.len() / S::BYTES - 1;
    let at = |i: usize| (first + i).min(last);
    // SAFETY: guaranteed by the caller.
    unsafe {
        let start = row.as_ptr();
        prefetch_ahead(start.add(first * S::BYTES), 4 * S::BYTES);
        let a = multiply_block::<S>(start.add(at(0) * S::BYTES), token, at(0));
        let b = multiply_block::<S>(start.add(at(1) * S::BYTES), token, at(1));
        let c = multiply_block::<S>(start.add(at(2) * S::BYTES), token, at(2));
        let d = multiply_block::<S>(start.add(at(3) * S::BYTES), token, at(3));
        [a, b, c, d]
    }
}

/// Prefetches `n_bytes` at a distance of `PREFETCH_DISTANCE_BYTES`.
///
/// # Safety
/// SSE; nothing is read.
#[inline(always)]
unsafe fn prefetch_ahead(from: *const u8, n_bytes: usize) {
    for line in (0..n_bytes).step_by(CACHE_LINE) {
        // SAFETY: guaranteed by the caller; a prefetch of any address is allowed.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(from.wrapping_add(PREFETCH_DISTANCE_BYTES + line).cast()) }
    }
}

/// The result of a block before its float addition.
#[derive(Clone, Copy)]
struct BlockSums {
    /// Scaled integers minus the zero point, in eight partial sums.
    integers: __m256i,
    /// Block scale, f16.
    d: u16,
}

/// Adds `scales.len()` of the four blocks to the sum of a row, in order.
///
/// # Safety
/// Same requirements as `run`.
#[inline(always)]
unsafe fn add_blocks<S: GemvRowMajor>(acc: __m128, blocks: [BlockSums; 4], scales: &[f32]) -> __m128 {
    let [a, b, c, d] = blocks;
    // SAFETY: guaranteed by the caller.
    unsafe {
        let two = |a, b| _mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
        let (ab, cd) = (two(a.integers, b.integers), two(c.integers, d.integers));
        let all = _mm256_add_epi32(_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd));
        let sums = _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256::<1>(all));
        let half = |block: BlockSums| block.d as i16;
        let ds = _mm_setr_epi16(half(a), half(b), half(c), half(d), 0, 0, 0, 0);
        let values = _mm_mul_ps(_mm_cvtepi32_ps(sums), _mm_cvtph_ps(ds));
        let each = [
            values,
            _mm_shuffle_ps::<0b01_01_01_01>(values, values),
            _mm_shuffle_ps::<0b10_10_10_10>(values, values),
            _mm_shuffle_ps::<0b11_11_11_11>(values, values),
        ];
        let mut acc = acc;
        if let Some(scales) = scales.as_array::<4>() {
            for i in 0..4 {
                acc = _mm_fmadd_ss(each[i], _mm_set_ss(scales[i]), acc);
            }
            return acc;
        }
        for (value, scale) in each.iter().zip(scales) {
            acc = _mm_fmadd_ss(*value, _mm_set_ss(*scale), acc);
        }
        acc
    }
}

/// Multiplies block `at` of a row with the token.
///
/// # Safety
/// Same requirements as `run`; the block is whole, and the token has activations for it.
#[inline(always)]
unsafe fn multiply_block<S: GemvRowMajor>(
    block: *const u8,
    token: &TokenActivations,
    at: usize,
) -> BlockSums {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let block = S::block(block);
        let q = token.q.as_ptr().add(at * BLOCK_LEN);
        let zero = _mm512_setzero_si512();
        let mut dots = [zero; 4];
        for j in 0..4 {
            let q = _mm512_loadu_si512(q.add(j * 64).cast());
            dots[j] = _mm512_dpbusd_epi32(zero, block.integers[j], q);
        }
        // Lane 4 i + j: the 16 elements from 64 j + 16 i.
        let dots = ZmmI32::sum4(dots[0], dots[1], dots[2], dots[3]);
        let order = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        let scales = _mm512_cvtepi8_epi32(_mm_shuffle_epi8(block.scales, order));
        let scaled = _mm512_mullo_epi32(dots, scales);
        let halves = (_mm512_castsi512_si256(scaled), _mm512_extracti64x4_epi64::<1>(scaled));
        let sums = _mm256_loadu_si256(token.sums.as_ptr().add(at * 12).cast());
        let offset = _mm256_madd_epi16(_mm256_cvtepi8_epi16(block.scales), sums);
        let offset = _mm256_sll_epi32(offset, _mm_cvtsi32_si128(S::ZERO_POINT_LOG2));
        let integers = _mm256_sub_epi32(_mm256_add_epi32(halves.0, halves.1), offset);
        BlockSums { integers, d: block.d }
    }
}
