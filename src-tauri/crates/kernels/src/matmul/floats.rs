//! Float weights times unquantized activations.
//! Each output accumulates a register of partial sums by position modulo its width, in one chain from first
//! to last element, and then adds the lanes.

use super::{Activations, OutTile, WeightRows};

#[cfg(target_arch = "x86_64")]
pub mod avx2;
#[cfg(target_arch = "x86_64")]
pub mod avx512;
#[cfg(target_arch = "aarch64")]
pub mod neon;

/// A register of floats of one instruction set.
///
/// # Safety
/// All functions: the processor has the instruction set, and the caller is compiled for it (otherwise each
/// call is a real call).
/// Functions with pointers: as many elements as a register holds can be read there, at any alignment.
pub trait SimdF32 {
    /// Floats in a register.
    const WIDTH: usize;
    /// Weight rows whose sums for `TOKENS` tokens are kept in registers.
    const ROWS: usize;
    /// A register.
    type F: Copy;

    /// Returns zeros.
    unsafe fn zero() -> Self::F;
    /// Loads f32 elements.
    unsafe fn f32s(from: *const u8) -> Self::F;
    /// Loads f16 elements as f32.
    unsafe fn f16s(from: *const u8) -> Self::F;
    /// Loads bf16 elements as f32.
    unsafe fn bf16s(from: *const u8) -> Self::F;
    /// Returns a · b + c, rounded once.
    unsafe fn fma(a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// Returns the sum of all lanes, added pairwise by halves.
    unsafe fn sum_lanes(a: Self::F) -> f32;
}

/// How an element is stored.
pub trait FloatElement {
    /// Bytes of an element.
    const BYTES: usize;

    /// Loads a register of elements as floats.
    ///
    /// # Safety
    /// Same requirements as `SimdF32`.
    unsafe fn load<S: SimdF32>(from: *const u8) -> S::F;
}

/// Tokens in a register tile of a prompt.
const TOKENS: usize = 4;
/// Most floats in a register of any level.
const MAX_WIDTH: usize = 16;
/// Rows read in parallel for one token: enough streams to keep memory busy.
const STREAMS: usize = 8;

/// Multiplies all rows with all tokens.
///
/// # Safety
/// Same requirements as `SimdF32`.
#[inline(always)]
pub unsafe fn run<E: FloatElement, S: SimdF32>(w: WeightRows, acts: Activations, out: &mut OutTile) {
    assert!(w.row_bytes == w.k * E::BYTES && w.bytes.len() == w.n_rows() * w.row_bytes);
    assert!(acts.k == w.k && acts.x.len() == acts.n_tokens * w.k);
    let n_tokens = acts.n_tokens;
    let tiled = n_tokens / TOKENS * TOKENS;
    // SAFETY: tiles lie within the rows and tokens whose lengths were compared above.
    unsafe {
        let mut r = 0;
        while w.n_rows() - r >= STREAMS && tiled < n_tokens {
            for t in tiled..n_tokens {
                tile::<E, S, STREAMS, 1>(&w, &acts, r, t, out);
            }
            r += STREAMS;
        }
        for r in r..if tiled < n_tokens { w.n_rows() } else { 0 } {
            for t in tiled..n_tokens {
                tile::<E, S, 1, 1>(&w, &acts, r, t, out);
            }
        }
        let mut r = 0;
        while w.n_rows() - r >= 4 && S::ROWS >= 4 {
            for t in (0..tiled).step_by(TOKENS) {
                tile::<E, S, 4, TOKENS>(&w, &acts, r, t, out);
            }
            r += 4;
        }
        while w.n_rows() - r >= 2 {
            for t in (0..tiled).step_by(TOKENS) {
                tile::<E, S, 2, TOKENS>(&w, &acts, r, t, out);
            }
            r += 2;
        }
        while w.n_rows() > r {
            for t in (0..tiled).step_by(TOKENS) {
                tile::<E, S, 1, TOKENS>(&w, &acts, r, t, out);
            }
            r += 1;
        }
    }
}

/// Multiplies `R` rows from `r` with `T` tokens from `t`.
///
/// # Safety
/// Same requirements as `SimdF32`.
#[inline(always)]
unsafe fn tile<E: FloatElement, S: SimdF32, const R: usize, const T: usize>(
    w: &WeightRows,
    acts: &Activations,
    r: usize,
    t: usize,
    out: &mut OutTile,
) {
    let whole = w.k / S::WIDTH * S::WIDTH;
    let rows = &w.bytes[r * w.row_bytes..(r + R) * w.row_bytes];
    let tokens = &acts.x[t * w.k..(t + T) * w.k];
    // SAFETY: elements up to `whole` are read from each of the rows and tokens just sliced.
    unsafe {
        let mut sums = [[S::zero(); T]; R];
        let mut at = 0;
        while at < whole {
            let mut x = [S::zero(); T];
            for t in 0..T {
                x[t] = S::f32s(tokens.as_ptr().add(t * w.k + at).cast());
            }
            for r in 0..R {
                let weights = E::load::<S>(rows.as_ptr().add(r * w.row_bytes + at * E::BYTES));
                for t in 0..T {
                    sums[r][t] = S::fma(weights, x[t], sums[r][t]);
                }
            }
            at += S::WIDTH;
        }
        for i in 0..R {
            for j in 0..T {
                let mut sum = sums[i][j];
                if whole < w.k {
                    let row = &rows[i * w.row_bytes + whole * E::BYTES..(i + 1) * w.row_bytes];
                    let token = &tokens[j * w.k + whole..(j + 1) * w.k];
                    sum = tail::<E, S>(row, token, sum);
                }
                out.set(t + j, r + i, S::sum_lanes(sum));
            }
        }
    }
}

/// Adds the last elements, fewer than a register holds, padded with zeros.
///
/// # Safety
/// Same requirements as `SimdF32`.
#[inline(always)]
unsafe fn tail<E: FloatElement, S: SimdF32>(row: &[u8], token: &[f32], sum: S::F) -> S::F {
    let (mut weights, mut x) = ([0u8; MAX_WIDTH * 4], [0f32; MAX_WIDTH]);
    weights[..row.len()].copy_from_slice(row);
    x[..token.len()].copy_from_slice(token);
    // SAFETY: both arrays hold a whole register.
    unsafe { S::fma(E::load::<S>(weights.as_ptr()), S::f32s(x.as_ptr().cast()), sum) }
}

/// Stands for the quantization of unquantized activations; never called.
pub fn no_quantization(_: &[f32], _: &mut [i8], _: &mut [f32], _: &mut [i32]) {}
