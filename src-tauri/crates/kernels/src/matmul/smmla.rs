//! Several tokens times transposed weights where an instruction multiplies two rows by eight bytes with two tokens
//! (`Simd::HAS_SMMLA`). PairSums stay in its order, two rows by two tokens, until a block is whole: only then are tokens
//! taken split_tokens. Integers are exact in any order, so that results are those of columns, to the bit.

use super::blocks256::{Block256, GROUPS, TransposedBlock256};
use super::simd::{Simd, MAX_ROWS};
use super::packed_activations::BlockQ8Kx8;
use super::panel::TokenActivations;
use super::sums256::bias;

/// PairSums of the first and of the second half of the rows for each two tokens; of an odd number the last is there twice.
/// Only the first half of the array is used, rounded up.
type PairSums<I, const T: usize> = [[I; 2]; T];

/// Eight bytes of a token and after them those of the next, as they lie in an packed: one load. Arranged there once for
/// all rows, as to make them of two loads here would take half an instruction more to each 32 multiply-adds.
///
/// # Safety
/// As for `Simd`; sixteen bytes lie there.
#[inline(always)]
pub unsafe fn load_pair_at<L: Simd>(from: *const u8) -> L::I {
    // SAFETY: the caller's.
    unsafe { L::load_table(&*from.cast()) }
}

/// Eight bytes at `at` of token `t` and those of the next, or of the same one where it is the last.
///
/// # Safety
/// As for `Simd`; the tokens have these bytes.
#[inline(always)]
pub unsafe fn load_pair_of<L: Simd, const T: usize>(tokens: &[TokenActivations; T], t: usize, at: usize) -> L::I {
    // SAFETY: the caller's.
    unsafe {
        let eight = |t: usize| tokens[t].q.as_ptr().add(at).cast::<[i8; 8]>().read();
        let both = [eight(t), eight((t + 1).min(T - 1))];
        L::load_table(&both.as_ptr().cast::<[i8; 16]>().read())
    }
}

/// `sums` + eight bytes of all rows times those of each token; `two` gives them for a token and the next.
///
/// # Safety
/// As for `Simd`.
#[inline(always)]
unsafe fn add_eight<L: Simd, const T: usize>(
    mut sums: PairSums<L::I, T>,
    w: &[[[i32; MAX_ROWS]; 2]],
    i: usize,
    two: impl Fn(usize) -> L::I,
) -> PairSums<L::I, T> {
    // SAFETY: the caller's; arrays of `MAX_ROWS` hold any register.
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

/// A lane for each row, of each token.
///
/// # Safety
/// As for `Simd`.
#[inline(always)]
unsafe fn split_tokens<L: Simd, const T: usize>(sums: PairSums<L::I, T>) -> [L::I; T] {
    // SAFETY: the caller's.
    unsafe {
        let mut out = [L::zero(); T];
        for t in 0..T {
            out[t] = L::split_tokens(sums[t / 2][0], sums[t / 2][1])[t % 2];
        }
        out
    }
}

/// `dots` + 32 bytes of all rows times those of each token; `two` gives bytes 8i..8i + 8 of a token and of the next.
///
/// # Safety
/// As for `Simd`.
#[inline(always)]
pub unsafe fn add_block<L: Simd, const T: usize>(
    dots: [L::I; T],
    w: &[[i32; MAX_ROWS]; 8],
    two: impl Fn(usize, usize) -> L::I,
) -> [L::I; T] {
    // SAFETY: the caller's.
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

/// The scaled integers of a block times each token. The products with 16 elements begin with what `begin` says of them
/// for a token and the next; `two` gives bytes 8i..8i + 8 of a group.
///
/// # Safety
/// As for `Simd`.
#[inline(always)]
pub unsafe fn scaled_sums<B: Block256, L: Simd, const T: usize>(
    transposed: &TransposedBlock256<L>,
    begin: impl Fn(usize, usize) -> L::I,
    two: impl Fn(usize, usize, usize) -> L::I,
) -> [L::I; T] {
    // SAFETY: the caller's; scales are as `Simd::store_scale` writes them.
    unsafe {
        let mut sums = [[L::zero(); 2]; T];
        for group in 0..GROUPS {
            let mut dots = [[L::zero(); 2]; T];
            for half in 0..2 {
                let sixteen = 2 * group + half;
                for pair in 0..T.div_ceil(2) {
                    let begin = begin(sixteen, 2 * pair);
                    for part in 0..2 {
                        // Without scales by 16 both halves add into one.
                        let anew = half == 0 || B::SCALES_BY_16;
                        dots[pair][part] = if anew { begin } else { L::add(dots[pair][part], begin) };
                    }
                }
                for i in 2 * half..2 * half + 2 {
                    dots = add_eight::<L, T>(dots, transposed.w[group].as_chunks().0, i, |t| two(group, i, t));
                }
                if half == 1 || B::SCALES_BY_16 {
                    let which = if B::SCALES_BY_16 { sixteen } else { 2 * group };
                    let scale = transposed.scales[which].as_ptr();
                    let scale = [L::load(scale), L::load(scale.add(MAX_ROWS / 2))];
                    for pair in 0..T.div_ceil(2) {
                        for part in 0..2 {
                            let scaled = L::mul(dots[pair][part], scale[part]);
                            sums[pair][part] = L::add(sums[pair][part], scaled);
                        }
                    }
                }
            }
        }
        split_tokens::<L, T>(sums)
    }
}

/// As `scaled_sums` of tokens `first..first + T` of an packed, their offset (but no minima) taken off.
///
/// # Safety
/// As for `BlockFormat::multiply_packed`; `T` is even.
#[inline(always)]
pub unsafe fn biased_sums<B: Block256, L: Simd, const T: usize>(
    transposed: &TransposedBlock256<L>,
    packed: &BlockQ8Kx8,
    first: usize,
) -> [L::I; T] {
    // SAFETY: the caller's: an packed has these tokens, two after two.
    unsafe {
        let begin = |sixteen: usize, t: usize| {
            bias::<B, L>(L::splat_pair(packed.sums[sixteen][first + t..first + t + 2].as_ptr()))
        };
        let two = |group: usize, i: usize, t: usize| load_pair_at::<L>(packed.q[group].qword_ptr(i, first + t));
        scaled_sums::<B, L, T>(transposed, begin, two)
    }
}
