//! Weights that are floats, times activations as they are. Each output is a register of partial sums by position
//! modulo its width, in one chain from the first element to the last, then folded.

use super::{Activations, OutTile, WeightRows};

#[cfg(target_arch = "x86_64")]
pub mod avx2;
#[cfg(target_arch = "x86_64")]
pub mod avx512;
#[cfg(target_arch = "aarch64")]
pub mod neon;

/// Registers of floats of one instruction set.
///
/// # Safety
/// All functions: the processor has the instruction set, and the caller is compiled for it (else each call is one).
/// Functions with pointers: as many elements as a register has can be read there, at any alignment.
pub trait SimdF32 {
    /// SimdF32 in a register.
    const WIDTH: usize;
    /// Weight rows and tokens whose sums are kept in registers.
    const ROWS: usize;
    type F: Copy;

    unsafe fn zero() -> Self::F;
    unsafe fn f32s(from: *const u8) -> Self::F;
    unsafe fn f16s(from: *const u8) -> Self::F;
    unsafe fn bf16s(from: *const u8) -> Self::F;
    /// a · b + c, rounded once.
    unsafe fn fma(a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// The sum of all lanes: halves are added until one is left.
    unsafe fn sum_lanes(a: Self::F) -> f32;
}

/// How an element is stored.
pub trait FloatElement {
    const BYTES: usize;

    /// # Safety
    /// As for `SimdF32`.
    unsafe fn load<S: SimdF32>(from: *const u8) -> S::F;
}

/// Tokens in a register tile of a prompt.
const TOKENS: usize = 4;
/// Most floats in a register.
const MAX_WIDTH: usize = 16;
/// Rows that are read at once for one token: enough streams to keep memory busy.
const STREAMS: usize = 8;

/// All rows, all tokens.
///
/// # Safety
/// As for `SimdF32`.
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

/// `R` rows from `r` times `T` tokens from `t`.
///
/// # Safety
/// As for `SimdF32`.
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

/// The last elements, fewer than a register has, filled up with zeros.
///
/// # Safety
/// As for `SimdF32`.
#[inline(always)]
unsafe fn tail<E: FloatElement, S: SimdF32>(row: &[u8], token: &[f32], sum: S::F) -> S::F {
    let (mut weights, mut x) = ([0u8; MAX_WIDTH * 4], [0f32; MAX_WIDTH]);
    weights[..row.len()].copy_from_slice(row);
    x[..token.len()].copy_from_slice(token);
    // SAFETY: both arrays hold a whole register.
    unsafe { S::fma(E::load::<S>(weights.as_ptr()), S::f32s(x.as_ptr().cast()), sum) }
}

/// The table rows of a float format at each level.
#[cfg(target_arch = "x86_64")]
macro_rules! float_rows {
    ($dtype:expr, $element:ty) => {
        /// AVX2 and AVX-512.
        pub static ROWS: &[$crate::matmul::MatMulRow] = &[
            $crate::matmul::MatMulRow {
                dtype: $dtype,
                level: $crate::cpu::isa::IsaLevel::Avx2,
                act: $crate::matmul::ActivationFormat::F32,
                quantize: $crate::matmul::floats::as_is,
                kernel: avx2,
            },
            $crate::matmul::MatMulRow {
                dtype: $dtype,
                level: $crate::cpu::isa::IsaLevel::Avx512,
                act: $crate::matmul::ActivationFormat::F32,
                quantize: $crate::matmul::floats::as_is,
                kernel: avx512,
            },
        ];

        fn avx2(
            w: $crate::matmul::WeightRows,
            acts: $crate::matmul::Activations,
            out: &mut $crate::matmul::OutTile,
        ) {
            #[target_feature(enable = "avx2,fma,f16c")]
            fn inner(
                w: $crate::matmul::WeightRows,
                acts: $crate::matmul::Activations,
                out: &mut $crate::matmul::OutTile,
            ) {
                // SAFETY: compiled for these instructions.
                unsafe {
                    $crate::matmul::floats::run::<$element, $crate::matmul::floats::avx2::YmmF32>(w, acts, out)
                }
            }
            // SAFETY: rows are looked up for a level only where `IsaLevel::is_present` confirmed it.
            unsafe { inner(w, acts, out) }
        }

        fn avx512(
            w: $crate::matmul::WeightRows,
            acts: $crate::matmul::Activations,
            out: &mut $crate::matmul::OutTile,
        ) {
            #[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]
            fn inner(
                w: $crate::matmul::WeightRows,
                acts: $crate::matmul::Activations,
                out: &mut $crate::matmul::OutTile,
            ) {
                // SAFETY: compiled for these instructions.
                unsafe {
                    $crate::matmul::floats::run::<$element, $crate::matmul::floats::avx512::ZmmF32>(w, acts, out)
                }
            }
            // SAFETY: rows are looked up for a level only where `IsaLevel::is_present` confirmed it.
            unsafe { inner(w, acts, out) }
        }
    };
}
#[cfg(target_arch = "aarch64")]
pub(crate) use super::dispatch_arm::float_rows;
#[cfg(target_arch = "x86_64")]
pub(crate) use float_rows;

/// Activations stay as they are: never called.
pub fn as_is(_: &[f32], _: &mut [i8], _: &mut [f32], _: &mut [i32]) {}
