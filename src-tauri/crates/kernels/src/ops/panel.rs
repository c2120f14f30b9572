//! A small matrix multiplication in registers: c (n_a, n) += a (n_a, k) · b (k, n). Scores and weighted sums of
//! attention have this form. Every element is summed over k in rising order, independent of tiling.

use crate::cpu::isa::{Levels, Mac, levels};

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)] // SIMD: each block argues its safety
#[allow(clippy::needless_range_loop)] // counted loops over registers unroll
mod avx512;

/// Shape and strides: `a` row i at `i * a_stride`, `b` row j at `j * b_stride`, `c` row i at `i * c_stride`.
#[derive(Clone, Copy, Debug)]
pub struct PanelShape {
    /// rows of a and c
    pub n_a: usize,
    /// columns of a, rows of b
    pub k: usize,
    /// columns of b and c
    pub n: usize,
    /// floats between rows of a
    pub a_stride: usize,
    /// floats between rows of b
    pub b_stride: usize,
    /// floats between rows of c
    pub c_stride: usize,
}

/// c += a · b
pub type MultiplyPanel = fn(shape: PanelShape, a: &[f32], b: &[f32], c: &mut [f32]);

/// c += a · b, element by element
pub fn scalar(shape: PanelShape, a: &[f32], b: &[f32], c: &mut [f32]) {
    for i in 0..shape.n_a {
        for j in 0..shape.n {
            for k in 0..shape.k {
                c[i * shape.c_stride + j] += a[i * shape.a_stride + k] * b[k * shape.b_stride + j];
            }
        }
    }
}

#[inline(always)]
fn body<M: Mac>(shape: PanelShape, a: &[f32], b: &[f32], c: &mut [f32]) {
    let mut j = 0;
    while j + 32 <= shape.n {
        rows::<M, 32>(shape, j, a, b, c);
        j += 32;
    }
    while j + 8 <= shape.n {
        rows::<M, 8>(shape, j, a, b, c);
        j += 8;
    }
    while j < shape.n {
        rows::<M, 1>(shape, j, a, b, c);
        j += 1;
    }
}

/// Columns j..j + N of all rows, as many rows at a time as the registers of the level hold.
#[inline(always)]
fn rows<M: Mac, const N: usize>(shape: PanelShape, j: usize, a: &[f32], b: &[f32], c: &mut [f32]) {
    let mut i = 0;
    while M::PANEL_ROWS >= 4 && i + 4 <= shape.n_a {
        block::<M, 4, N>(shape, i, j, a, b, c);
        i += 4;
    }
    while M::PANEL_ROWS >= 2 && i + 2 <= shape.n_a {
        block::<M, 2, N>(shape, i, j, a, b, c);
        i += 2;
    }
    while i < shape.n_a {
        block::<M, 1, N>(shape, i, j, a, b, c);
        i += 1;
    }
}

#[inline(always)]
fn block<M: Mac, const R: usize, const N: usize>(
    shape: PanelShape,
    i: usize,
    j: usize,
    a: &[f32],
    b: &[f32],
    c: &mut [f32],
) {
    let a: [&[f32]; R] = std::array::from_fn(|r| &a[(i + r) * shape.a_stride..][..shape.k]);
    let mut sum = [[0.0f32; N]; R];
    for r in 0..R {
        sum[r].copy_from_slice(&c[(i + r) * shape.c_stride + j..][..N]);
    }
    for k in 0..shape.k {
        let b: &[f32; N] = b[k * shape.b_stride + j..][..N].try_into().expect("a slice of N floats");
        for r in 0..R {
            let a = a[r][k];
            for n in 0..N {
                sum[r][n] = M::mac(a, b[n], sum[r][n]);
            }
        }
    }
    for r in 0..R {
        c[(i + r) * shape.c_stride + j..][..N].copy_from_slice(&sum[r]);
    }
}

levels!(
    /// One loop for all levels.
    COMPILED = body(shape: PanelShape, a: &[f32], b: &[f32], c: &mut [f32]));

/// The kernel at each instruction-set level.
pub static LEVELS: Levels<MultiplyPanel> = Levels {
    #[cfg(target_arch = "x86_64")]
    avx512: avx512::multiply,
    ..COMPILED
};
