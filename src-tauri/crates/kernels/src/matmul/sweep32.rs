//! One token times four weight rows of Q8_0 at once, for AVX-512: few enough streams for the processor to foresee,
//! where of the sixteen of `panel` what comes from memory comes by prefetches alone, of which a core has few under
//! way. Sums are those of `panel`, to the bit: integers are exact in any order, and the float additions of a row are
//! the same chain.

use std::arch::x86_64::*;

use super::blocks32::LEN;
use super::lanes::Lanes;
use super::lanes::avx512::Zmm;
use super::panel::{self, Ahead, Token};
use super::{Acts, OutTile, WeightRows};

/// Of a block: its scale, then 32 signed bytes.
const BYTES: usize = 34;
/// At once.
const ROWS: usize = 4;
const BLOCKS: usize = 4;

/// All rows; false where there are several tokens, which share what they read some other way.
///
/// # Safety
/// AVX-512 F, BW, VL, DQ, VNNI, FMA and F16C.
#[inline(always)]
pub unsafe fn run(w: WeightRows, acts: Acts, out: &mut OutTile) -> bool {
    if acts.n_tokens != 1 {
        return false;
    }
    let n_blocks = w.k / LEN;
    assert!(w.k.is_multiple_of(LEN) && w.row_bytes == n_blocks * BYTES && acts.k == w.k);
    let token = Token::of(&acts, 0);
    assert!(token.q.len() == w.k && token.scales.len() == n_blocks && token.sums.len() == n_blocks);
    let n_whole = n_blocks / BLOCKS * BLOCKS;
    for (i, out) in out.token(0).chunks_mut(ROWS).enumerate() {
        let first = i * ROWS;
        let rows = panel::pointers(&w, first);
        let mut ahead = Ahead::after(&w, first..first + out.len());
        // SAFETY: the caller's; the lengths were compared above, and `pointers` gives whole rows of `w`.
        let sums = unsafe {
            let mut acc = _mm_setzero_ps();
            for at in (0..n_whole).step_by(BLOCKS) {
                ahead.ask::<Zmm>(ROWS * BLOCKS * BYTES);
                acc = add::<BLOCKS>(acc, &rows, &token, at);
            }
            for at in n_whole..n_blocks {
                acc = add::<1>(acc, &rows, &token, at);
            }
            let mut sums = [0.0; ROWS];
            _mm_storeu_ps(sums.as_mut_ptr(), acc);
            sums
        };
        out.copy_from_slice(&sums[..out.len()]);
    }
    true
}

/// acc + the products of the token with `N` blocks, which are one or four, from `at` of each row.
///
/// # Safety
/// As for `run`; the rows and the token have these blocks.
#[inline(always)]
unsafe fn add<const N: usize>(mut acc: __m128, rows: &[*const u8; ROWS], token: &Token, at: usize) -> __m128 {
    // The order in which `dots` leaves them, and `each_four`; one block takes the place of all four.
    let blocks: [usize; BLOCKS] = if N == BLOCKS { [at, at + 2, at + 1, at + 3] } else { [at; BLOCKS] };
    // SAFETY: the caller's.
    unsafe {
        let sums = each_four::<N>(token.sums.as_ptr().add(at));
        let token_scales = _mm512_castsi512_ps(each_four::<N>(token.scales.as_ptr().add(at).cast()));
        // The sums of the activations 128 times, which is what the weights were made more.
        let dots = _mm512_sub_epi32(dots(rows, token, blocks), _mm512_slli_epi32::<7>(sums));
        let dots = _mm512_cvtepi32_ps(dots);
        let scales = _mm512_mul_ps(scales(rows, blocks), token_scales);
        acc = _mm_fmadd_ps(_mm512_castps512_ps128(dots), _mm512_castps512_ps128(scales), acc);
        if N == BLOCKS {
            acc = _mm_fmadd_ps(_mm512_extractf32x4_ps::<2>(dots), _mm512_extractf32x4_ps::<2>(scales), acc);
            acc = _mm_fmadd_ps(_mm512_extractf32x4_ps::<1>(dots), _mm512_extractf32x4_ps::<1>(scales), acc);
            acc = _mm_fmadd_ps(_mm512_extractf32x4_ps::<3>(dots), _mm512_extractf32x4_ps::<3>(scales), acc);
        }
        acc
    }
}

/// (blocks, rows): the dot products of `blocks` of each row, 128 more in each weight, with the token's activations.
///
/// # Safety
/// As for `add`.
#[inline(always)]
unsafe fn dots(rows: &[*const u8; ROWS], token: &Token, blocks: [usize; BLOCKS]) -> __m512i {
    // SAFETY: the caller's; a block has 32 bytes after its scale, and the token as many activations.
    unsafe {
        let mut halves = [_mm512_setzero_si512(); 2];
        for (i, half) in halves.iter_mut().enumerate() {
            let (a, b) = (blocks[i], blocks[i + 2]);
            let q = two(token.q.as_ptr().cast(), a * LEN, b * LEN);
            let mut dots = [_mm512_setzero_si512(); ROWS];
            for row in 0..ROWS {
                let integers = Zmm::signed(two(rows[row].add(2), a * BYTES, b * BYTES));
                dots[row] = _mm512_dpbusd_epi32(_mm512_setzero_si512(), integers, q);
            }
            *half = Zmm::sum4(dots[0], dots[1], dots[2], dots[3]);
        }
        _mm512_add_epi32(Zmm::even(halves[0], halves[1]), Zmm::odd(halves[0], halves[1]))
    }
}

/// (blocks, rows): the scales of `blocks` of each row.
///
/// # Safety
/// As for `add`.
#[inline(always)]
unsafe fn scales(rows: &[*const u8; ROWS], blocks: [usize; BLOCKS]) -> __m512 {
    // SAFETY: the caller's; a block begins with an f16.
    unsafe {
        let (low, high) =
            (eight_halves(rows, blocks[0], blocks[1]), eight_halves(rows, blocks[2], blocks[3]));
        _mm512_cvtph_ps(_mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high))
    }
}

/// The f16 at the beginning of block `a` of each row, then of block `b`.
///
/// # Safety
/// As for `scales`.
#[inline(always)]
unsafe fn eight_halves(rows: &[*const u8; ROWS], a: usize, b: usize) -> __m128i {
    // SAFETY: the caller's.
    unsafe {
        let of = |row: usize, at: usize| rows[row].add(at * BYTES).cast::<i16>().read_unaligned();
        _mm_setr_epi16(of(0, a), of(1, a), of(2, a), of(3, a), of(0, b), of(1, b), of(2, b), of(3, b))
    }
}

/// (blocks, rows): each of `N` values of 32 bits for all rows, in the order of `add`.
///
/// # Safety
/// AVX-512 F; the values lie at `from`.
#[inline(always)]
unsafe fn each_four<const N: usize>(from: *const i32) -> __m512i {
    // SAFETY: the caller's.
    unsafe {
        if N != BLOCKS {
            return _mm512_set1_epi32(*from);
        }
        let order = _mm512_setr_epi32(0, 0, 0, 0, 2, 2, 2, 2, 1, 1, 1, 1, 3, 3, 3, 3);
        _mm512_permutexvar_epi32(order, _mm512_castsi128_si512(_mm_loadu_si128(from.cast())))
    }
}

/// 32 bytes at each offset.
///
/// # Safety
/// AVX-512 F, DQ; the bytes lie there.
#[inline(always)]
unsafe fn two(from: *const u8, low: usize, high: usize) -> __m512i {
    // SAFETY: the caller's.
    unsafe {
        let low = _mm512_castsi256_si512(_mm256_loadu_si256(from.add(low).cast()));
        _mm512_inserti64x4::<1>(low, _mm256_loadu_si256(from.add(high).cast()))
    }
}
