//! One token times four weight rows of Q8_0 at once, for AVX-512: few enough streams for the processor to foresee,
//! where of the sixteen of `panel` what comes from memory comes by prefetches alone, of which a core has few under
//! way. Sums are those of `panel`, to the bit: integers are exact in any order, and the float additions of a row are
//! the same chain.

use std::arch::x86_64::*;

use super::blocks32::LEN;
use super::lanes::avx512::Zmm;
use super::panel::{Ahead, Token};
use super::{Acts, OutTile, WeightRows};

const BYTES: usize = 34;
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
        let rows = rows_from(&w, first);
        let mut ahead = Ahead::after(&w, first..first + out.len());
        // SAFETY: the caller's; the lengths were compared above, and `rows_from` gives whole rows of `w`.
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

/// Pointers to rows from `first`; where rows end, the last one again.
#[inline(always)]
fn rows_from(w: &WeightRows, first: usize) -> [*const u8; ROWS] {
    let last = w.n_rows() - 1;
    let mut rows = [std::ptr::null(); ROWS];
    for (i, row) in rows.iter_mut().enumerate() {
        *row = w.row((first + i).min(last)).as_ptr();
    }
    rows
}

/// acc + the products of the token with `N` blocks, which are one or four, from `at` of each row.
///
/// # Safety
/// As for `run`; the rows and the token have these blocks.
#[inline(always)]
unsafe fn add<const N: usize>(mut acc: __m128, rows: &[*const u8; ROWS], token: &Token, at: usize) -> __m128 {
    // Of four blocks, in the order in which `dots` leaves them.
    let order: [usize; BLOCKS] = if N == BLOCKS { [at, at + 2, at + 1, at + 3] } else { [at; BLOCKS] };
    // SAFETY: the caller's.
    unsafe {
        let dots = _mm512_cvtepi32_ps(dots(rows, token, order));
        let scales =
            _mm512_mul_ps(scales(rows, order), each_four(order.map(|at| *token.scales.get_unchecked(at))));
        acc = _mm_fmadd_ps(_mm512_castps512_ps128(dots), _mm512_castps512_ps128(scales), acc);
        if N == BLOCKS {
            acc = _mm_fmadd_ps(_mm512_extractf32x4_ps::<2>(dots), _mm512_extractf32x4_ps::<2>(scales), acc);
            acc = _mm_fmadd_ps(_mm512_extractf32x4_ps::<1>(dots), _mm512_extractf32x4_ps::<1>(scales), acc);
            acc = _mm_fmadd_ps(_mm512_extractf32x4_ps::<3>(dots), _mm512_extractf32x4_ps::<3>(scales), acc);
        }
        acc
    }
}

/// (blocks, rows): the dot products of the blocks `at` of each row with the token's activations.
///
/// # Safety
/// As for `add`.
#[inline(always)]
unsafe fn dots(rows: &[*const u8; ROWS], token: &Token, at: [usize; BLOCKS]) -> __m512i {
    // SAFETY: the caller's; a block has 32 bytes after its scale, and the token as many activations.
    unsafe {
        let mut halves = [_mm512_setzero_si512(); 2];
        for (i, half) in halves.iter_mut().enumerate() {
            let q =
                two(token.q.as_ptr().add(at[i] * LEN).cast(), token.q.as_ptr().add(at[i + 2] * LEN).cast());
            let mut dots = [_mm512_setzero_si512(); ROWS];
            for row in 0..ROWS {
                let integers = rows[row].add(2);
                let integers = two(integers.add(at[i] * BYTES), integers.add(at[i + 2] * BYTES));
                // Signed bytes, 128 more.
                let integers = _mm512_xor_si512(integers, _mm512_set1_epi8(-128));
                dots[row] = _mm512_dpbusd_epi32(_mm512_setzero_si512(), integers, q);
            }
            *half = Zmm::sum4(dots[0], dots[1], dots[2], dots[3]);
        }
        let even =
            _mm512_permutex2var_epi64(halves[0], _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13), halves[1]);
        let odd =
            _mm512_permutex2var_epi64(halves[0], _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15), halves[1]);
        let sums = each_four(at.map(|at| f32::from_bits(*token.sums.get_unchecked(at) as u32)));
        let more = _mm512_slli_epi32::<7>(_mm512_castps_si512(sums));
        _mm512_sub_epi32(_mm512_add_epi32(even, odd), more)
    }
}

/// (blocks, rows): the scales of the blocks `at` of each row.
///
/// # Safety
/// As for `add`.
#[inline(always)]
unsafe fn scales(rows: &[*const u8; ROWS], at: [usize; BLOCKS]) -> __m512 {
    // SAFETY: the caller's; a block begins with an f16.
    unsafe {
        let (low, high) = (eight_halves(rows, at[0], at[1]), eight_halves(rows, at[2], at[3]));
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

/// Each value four times.
///
/// # Safety
/// AVX-512 F.
#[inline(always)]
unsafe fn each_four(values: [f32; 4]) -> __m512 {
    // SAFETY: the caller's.
    unsafe {
        let order = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
        _mm512_permutexvar_ps(order, _mm512_castps128_ps512(_mm_loadu_ps(values.as_ptr())))
    }
}

/// 32 bytes from each address.
///
/// # Safety
/// AVX-512 F, DQ; the bytes lie there.
#[inline(always)]
unsafe fn two(low: *const u8, high: *const u8) -> __m512i {
    // SAFETY: the caller's.
    unsafe {
        let low = _mm512_castsi256_si512(_mm256_loadu_si256(low.cast()));
        _mm512_inserti64x4::<1>(low, _mm256_loadu_si256(high.cast()))
    }
}
