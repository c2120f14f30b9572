//! Products of several tokens with transposed weights by `smmla`, which multiplies two rows × eight bytes
//! with two tokens.
//! Sums stay in its order (two rows × two tokens) until the end of a block, and are split by token only then.
//! Guarantees the bits of the column path: integers are exact in any order.

use super::simd::{Simd, MAX_ROWS};
use super::panel::TokenActivations;

/// Sums of the first and second half of the rows for each pair of tokens; an odd last token is paired with
/// itself.
/// Only the first half of the array, rounded up, is used.
pub type PairSums<I, const T: usize> = [[I; 2]; T];

/// Loads eight bytes of a token and eight of the next from a pack, in one load.
/// Interleaved when packed, once for all rows: combining two loads here would cost half an instruction per 32
/// multiply-adds.
///
/// # Safety
/// Same requirements as `Simd`; sixteen bytes lie there.
#[inline(always)]
pub unsafe fn load_pair_at<L: Simd>(from: *const u8) -> L::I {
    // SAFETY: guaranteed by the caller.
    unsafe { L::load_table(&*from.cast()) }
}

/// Loads eight bytes at `at` of token `t` and of the next; the last token is paired with itself.
///
/// # Safety
/// Same requirements as `Simd`; the tokens have these bytes.
#[inline(always)]
pub unsafe fn load_pair_of<L: Simd, const T: usize>(tokens: &[TokenActivations; T], t: usize, at: usize) -> L::I {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let eight = |t: usize| tokens[t].q.as_ptr().add(at).cast::<[i8; 8]>().read();
        let both = [eight(t), eight((t + 1).min(T - 1))];
        L::load_table(&both.as_ptr().cast::<[i8; 16]>().read())
    }
}

/// Returns `sums` + eight bytes of all rows times those of each token. `two` returns the bytes of a token and
/// the next.
///
/// # Safety
/// Same requirements as `Simd`.
#[inline(always)]
pub unsafe fn add_eight<L: Simd, const T: usize>(
    mut sums: PairSums<L::I, T>,
    w: &[[[i32; MAX_ROWS]; 2]],
    i: usize,
    two: impl Fn(usize) -> L::I,
) -> PairSums<L::I, T> {
    // SAFETY: guaranteed by the caller; arrays of `MAX_ROWS` hold any register.
    unsafe {
        let w = [L::load(w[i][0].as_ptr()), L::load(w[i][1].as_ptr())];
        for pair in 0..T.div_ceil(2) {
            let a = two(2 * pair);
            for part in 0..2 {
                sums[pair][part] = L::smmla(sums[pair][part], w[part], a);
            }
        }
        sums
    }
}

/// Splits the sums by token, one lane per row.
///
/// # Safety
/// Same requirements as `Simd`.
#[inline(always)]
pub unsafe fn split_tokens<L: Simd, const T: usize>(sums: PairSums<L::I, T>) -> [L::I; T] {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut out = [L::zero(); T];
        for t in 0..T {
            out[t] = L::split_tokens(sums[t / 2][0], sums[t / 2][1])[t % 2];
        }
        out
    }
}

/// Returns `dots` + 32 bytes of all rows times those of each token. `two` returns bytes 8i..8i + 8 of a token
/// and the next.
///
/// # Safety
/// Same requirements as `Simd`.
#[inline(always)]
pub unsafe fn add_block<L: Simd, const T: usize>(
    dots: [L::I; T],
    w: &[[i32; MAX_ROWS]; 8],
    two: impl Fn(usize, usize) -> L::I,
) -> [L::I; T] {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut sums = [[L::zero(); 2]; T];
        for i in 0..4 {
            sums = add_eight::<L, T>(sums, w.as_chunks().0, i, |t| two(i, t));
        }
        let mut out = split_tokens::<L, T>(sums);
        for t in 0..T {
            out[t] = L::add(dots[t], out[t]);
        }
        out
    }
}
