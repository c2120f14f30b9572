//! GEMV over eight weight rows of 256-element blocks for AVX2, for one token or a few in turn.
//! `panel` reduces each row of every group of 32 before it scales, which takes more instructions than the
//! products. Here one instruction widens and scales, and rows are reduced once per block.
//! Guarantees the bits of `panel`: same integers, same chain of float additions.

use std::arch::x86_64::*;
use std::hint::black_box;

use super::panel::{self, RowPrefetcher, TokenActivations};
use super::simd::avx2::YmmI32;
use super::simd::{RowPointers, Simd};
use super::{Activations, OutTile, WeightRows};

/// With AVX-VNNI `panel` is used instead.
type Rows8Simd = YmmI32<false>;

const BLOCK_LEN: usize = 256;
const GROUPS: usize = 8;
/// Weight rows at once.
const ROWS: usize = 8;

/// Lane i: partial dot products of row i, not yet reduced across the lane's bytes.
pub type Rows8Sums = [__m256i; ROWS];

/// The decoded header of a block, for eight rows.
pub struct Rows8Header<S> {
    pub scales: S,
    /// Initial sums: minus the zero point times the scales, or zero.
    pub sums: Rows8Sums,
    /// (rows) block scales, f32.
    pub d: __m256,
    /// Activation sums times the mins, and their factor dmin, for formats that have mins.
    pub mins: Option<(__m256i, __m256)>,
}

/// Per-format decoding for the AVX2 GEMV over 8 rows (llama.cpp: `gemv_q4_K_8x8_q8_K`).
pub trait GemvRows8 {
    const BYTES: usize;
    /// Decoded scales of eight rows.
    type Scales;

    /// Decodes the block header. `sums`: the token's activation sums of this block, as in
    /// `ActivationFormat::Q8_K`.
    ///
    /// # Safety
    /// AVX2 and F16C; a whole block lies at `offset` of each row.
    unsafe fn header(rows: &RowPointers, offset: usize, sums: &[i32; 12]) -> Rows8Header<Self::Scales>;

    /// Unpacks the integers of groups `4 * half..4 * half + 4` of a block, each within 0..=127.
    ///
    /// # Safety
    /// AVX2; a whole block lies at `block`.
    unsafe fn half(block: *const u8, half: usize) -> [__m256i; 4];

    /// Returns the scales of a group of a row, an i16 for each pair of products.
    ///
    /// # Safety
    /// AVX2.
    unsafe fn multiplier(scales: &Self::Scales, row: usize, group: usize) -> __m256i;
}

/// Multiplies all rows. Returns false, having done nothing, for more than `GEMV_MAX_TOKENS` tokens.
///
/// # Safety
/// AVX2, FMA and F16C.
#[inline(always)]
pub unsafe fn run<E: GemvRows8>(w: WeightRows, acts: Activations, out: &mut OutTile) -> bool {
    if acts.n_tokens > panel::GEMV_MAX_TOKENS {
        return false;
    }
    let n_blocks = w.k / BLOCK_LEN;
    assert!(w.k.is_multiple_of(BLOCK_LEN) && w.row_bytes == n_blocks * E::BYTES && acts.k == w.k);
    // Spread the prefetches of the next rows evenly over the tokens.
    let prefetch_bytes = (2 * E::BYTES).div_ceil(acts.n_tokens);
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
                let mut acc = _mm256_setzero_ps();
                for block in 0..n_blocks {
                    if first == 0 && t == 0 {
                        panel::prefetch::<Rows8Simd>(&pointers, block * E::BYTES, E::BYTES);
                    }
                    acc = add_block::<E>(acc, &pointers, block, &token, (&mut prefetcher, prefetch_bytes));
                }
                _mm256_storeu_ps(sums.as_mut_ptr(), acc);
            }
            out.token(t)[rows.clone()].copy_from_slice(&sums[..rows.len()]);
        }
    }
    true
}

/// Returns acc + the products of the token with a block of each row.
///
/// # Safety
/// AVX2, FMA and F16C; each row has this block, and the token the activations for it.
#[inline(always)]
unsafe fn add_block<E: GemvRows8>(
    acc: __m256,
    rows: &RowPointers,
    block: usize,
    token: &TokenActivations,
    (prefetcher, prefetch_bytes): (&mut RowPrefetcher, usize),
) -> __m256 {
    let offset = block * E::BYTES;
    let q = &token.q.as_chunks::<BLOCK_LEN>().0[block];
    // SAFETY: guaranteed by the caller; a group has 32 activations.
    unsafe {
        let header = E::header(rows, offset, &token.sums.as_chunks::<12>().0[block]);
        let mut sums = header.sums;
        for two in 0..ROWS / 2 {
            prefetcher.prefetch::<Rows8Simd>(prefetch_bytes);
            for row in two * 2..two * 2 + 2 {
                for half in 0..2 {
                    let integers = E::half(rows[row].add(offset), half);
                    for i in 0..4 {
                        let group = half * 4 + i;
                        let a = _mm256_loadu_si256(q.as_ptr().add(group * (BLOCK_LEN / GROUPS)).cast());
                        let products = _mm256_maddubs_epi16(integers[i], a);
                        let scaled = _mm256_madd_epi16(products, E::multiplier(&header.scales, row, group));
                        sums[row] = _mm256_add_epi32(sums[row], scaled);
                    }
                }
            }
        }
        let (first, second) = Rows8Simd::reduce(sums);
        let sum = _mm256_cvtepi32_ps(_mm256_add_epi32(first, second));
        let mut value = _mm256_mul_ps(sum, header.d);
        if let Some((mins, dmin)) = header.mins {
            value = _mm256_fmadd_ps(_mm256_cvtepi32_ps(mins), dmin, value);
        }
        _mm256_fmadd_ps(value, _mm256_set1_ps(token.scales[block]), acc)
    }
}

/// Scales of 32 elements: (groups, rows), the scale twice as i16.
pub type ScalesPer32 = [[i32; ROWS]; GROUPS];

/// Decodes the header that Q4_K and Q5_K share: d, dmin, then six-bit scales and mins in twelve bytes.
///
/// # Safety
/// AVX2 and F16C; 16 bytes lie at `offset` of each row.
#[inline(always)]
pub unsafe fn decode_q4_k_header(
    rows: &RowPointers,
    offset: usize,
    sums: &[i32; 12],
) -> Rows8Header<ScalesPer32> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let [d_and_dmin, a, b, c] = Rows8Simd::columns16(rows, offset);
        let (six, four) = (_mm256_set1_epi8(0x3F), _mm256_set1_epi8(0x0F));
        let top = |v: __m256i| _mm256_and_si256(_mm256_srli_epi32::<2>(v), _mm256_set1_epi8(0x30));
        let upper = _mm256_srli_epi32::<4>(c);
        let scales = [_mm256_and_si256(a, six), _mm256_or_si256(_mm256_and_si256(c, four), top(a))];
        let mins = [_mm256_and_si256(b, six), _mm256_or_si256(_mm256_and_si256(upper, four), top(b))];
        let mut twice = [[0; ROWS]; GROUPS];
        let mut offsets = _mm256_setzero_si256();
        for half in 0..2 {
            for i in 0..4 {
                let two = _mm256_shuffle_epi8(scales[half], bytes_of_lanes(i, i));
                _mm256_storeu_si256(twice[half * 4 + i].as_mut_ptr().cast(), two);
            }
            for i in 0..2 {
                let two = _mm256_shuffle_epi8(mins[half], bytes_of_lanes(i * 2, i * 2 + 1));
                let of_32 = _mm256_set1_epi32(sums[8 + half * 2 + i]);
                offsets = _mm256_add_epi32(offsets, _mm256_madd_epi16(two, of_32));
            }
        }
        let dmin = _mm256_mul_ps(Rows8Simd::f16_high(d_and_dmin), _mm256_set1_ps(-1.0));
        Rows8Header {
            scales: twice,
            sums: [_mm256_setzero_si256(); ROWS],
            d: Rows8Simd::f16_low(d_and_dmin),
            mins: Some((offsets, dmin)),
        }
    }
}

/// Returns the `_mm256_shuffle_epi8` control that widens bytes `first` and `second` of each lane to i16.
///
/// # Safety
/// AVX2.
#[inline(always)]
unsafe fn bytes_of_lanes(first: usize, second: usize) -> __m256i {
    let (first, second) = (first as u8, second as u8);
    let lane = |i: u8| i32::from_le_bytes([first + 4 * i, 0x80, second + 4 * i, 0x80]);
    // SAFETY: guaranteed by the caller.
    unsafe { _mm256_broadcastsi128_si256(_mm_setr_epi32(lane(0), lane(1), lane(2), lane(3))) }
}

/// Scales of 16 elements.
pub struct ScalesPer16 {
    /// (rows): eight even-numbered i16, then eight odd-numbered.
    rows: [__m256i; ROWS],
    /// For each group, shuffle indices that repeat the bytes of its two scales.
    spread: &'static [[u16; 16]; GROUPS],
}

static SPREAD: [[u16; 16]; GROUPS] = {
    let mut spread = [[0; 16]; GROUPS];
    let mut group = 0;
    while group < GROUPS {
        spread[group] = [(2 * group + ((2 * group + 1) << 8)) as u16; 16];
        group += 1;
    }
    spread
};

impl ScalesPer16 {
    /// Widens sixteen signed bytes of each row.
    ///
    /// # Safety
    /// AVX2.
    #[inline(always)]
    pub unsafe fn of(bytes: [__m128i; ROWS]) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let order = _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
            let mut rows = [_mm256_setzero_si256(); ROWS];
            for row in 0..ROWS {
                rows[row] = _mm256_cvtepi8_epi16(_mm_shuffle_epi8(bytes[row], order));
            }
            // `black_box`: from a table it can see, the compiler makes two or three shuffles instead of one.
            Self { rows, spread: black_box(&SPREAD) }
        }
    }

    /// Returns the scales of a group of a row: first 16 elements in the low half, the others in the high
    /// half.
    ///
    /// # Safety
    /// AVX2.
    #[inline(always)]
    pub unsafe fn multiplier(&self, row: usize, group: usize) -> __m256i {
        // SAFETY: guaranteed by the caller; a row of the table is 32 bytes.
        unsafe {
            let spread = _mm256_loadu_si256(self.spread[group].as_ptr().cast());
            _mm256_shuffle_epi8(self.rows[row], spread)
        }
    }
}
