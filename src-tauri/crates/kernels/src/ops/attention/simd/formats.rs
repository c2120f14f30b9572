//! The kernels of each page format. Lengths are checked here, once per page.

use super::panel::{PagePanel, multiply};
use super::rows::{KeyPairs, PageRows, RowsF16, RowsF32, RowsI4, RowsI8};
use super::{BLOCK_LEN, PagePrefetcher, PageSimd, integers};
use crate::graph::PAGE_LEN;
use crate::ops::attention::page_operands::{PageQueries, SCORE_STRIDE, ValueWeights};

/// A page format.
pub trait PageFormat {
    /// As `page_operands::ScorePage`.
    ///
    /// # Safety
    /// The processor has the registers.
    unsafe fn score<W: PageSimd>(queries: &PageQueries, keys: &[u8], ahead: &[u8], out: &mut [f32]);

    /// As `page_operands::SumValues`.
    ///
    /// # Safety
    /// The processor has the registers.
    unsafe fn sum<W: PageSimd>(
        weights: &ValueWeights,
        head_dim: usize,
        values: &[u8],
        ahead: &[u8],
        scratch: &mut [f32],
        sums: &mut [f32],
    );
}

/// Elements that `n` rows of `width` span, `stride` apart.
fn extent(n: usize, stride: usize, width: usize) -> usize {
    n.saturating_sub(1) * stride + width
}

fn check_score(queries: &PageQueries, keys: &[u8], key_bytes: usize, out: &[f32]) {
    assert!(queries.x.len() >= queries.n * queries.head_dim && keys.len() == key_bytes);
    assert!(out.len() >= extent(queries.n, SCORE_STRIDE, PAGE_LEN));
}

fn check_sum(weights: &ValueWeights, head_dim: usize, values: &[u8], value_bytes: usize, sums: &[f32]) {
    assert!(weights.x.len() >= extent(weights.n, SCORE_STRIDE, PAGE_LEN) && values.len() == value_bytes);
    assert!(weights.slots.start <= weights.slots.end && weights.slots.end <= PAGE_LEN);
    assert!(sums.len() >= weights.n * head_dim);
}

/// Scores with f32 or f16 keys: (head_dim, PAGE_LEN).
///
/// # Safety
/// The processor has the registers.
#[inline(always)]
unsafe fn float_scores<W: PageSimd, S: PageRows>(
    queries: &PageQueries,
    keys: &[u8],
    ahead: &[u8],
    out: &mut [f32],
) {
    let (n, d) = (queries.n, queries.head_dim);
    check_score(queries, keys, d * S::offset(PAGE_LEN), out);
    out.chunks_mut(SCORE_STRIDE).take(n).for_each(|out| out[..PAGE_LEN].fill(0.0));
    let p = PagePanel {
        n_a: n,
        k: d,
        n: PAGE_LEN,
        a: queries.x.as_ptr(),
        a_stride: d,
        b: keys.as_ptr(),
        b_stride: S::offset(PAGE_LEN),
        c: out.as_mut_ptr(),
        c_stride: SCORE_STRIDE,
    };
    let mut ahead = PagePrefetcher::of(ahead);
    // SAFETY: the lengths were checked.
    unsafe {
        multiply::<W, S>(&p, &mut ahead);
        ahead.finish::<W>();
    }
}

/// Sums of f32 or f16 values: (PAGE_LEN, head_dim).
///
/// # Safety
/// The processor has the registers.
#[inline(always)]
unsafe fn float_sums<W: PageSimd, S: PageRows>(
    weights: &ValueWeights,
    head_dim: usize,
    values: &[u8],
    ahead: &[u8],
    _scratch: &mut [f32],
    sums: &mut [f32],
) {
    let stride = S::offset(head_dim);
    check_sum(weights, head_dim, values, PAGE_LEN * stride, sums);
    let slots = weights.slots.clone();
    let p = PagePanel {
        n_a: weights.n,
        k: slots.len(),
        n: head_dim,
        a: weights.x[slots.start..].as_ptr(),
        a_stride: SCORE_STRIDE,
        b: values[slots.start * stride..].as_ptr(),
        b_stride: stride,
        c: sums.as_mut_ptr(),
        c_stride: head_dim,
    };
    let mut ahead = PagePrefetcher::of(ahead);
    // SAFETY: the lengths were checked.
    unsafe {
        multiply::<W, S>(&p, &mut ahead);
        ahead.finish::<W>();
    }
}

/// Scores with quantized keys.
///
/// # Safety
/// The processor has the registers.
#[inline(always)]
unsafe fn integer_scores<W: PageSimd, K: KeyPairs>(
    queries: &PageQueries,
    keys: &[u8],
    ahead: &[u8],
    out: &mut [f32],
) {
    let d = queries.head_dim;
    assert!(
        d.is_multiple_of(BLOCK_LEN) && queries.q.len() >= queries.n * d && queries.scales.len() >= queries.n
    );
    check_score(queries, keys, d / 2 / K::PAIRS * K::GROUP_BYTES + d / BLOCK_LEN * PAGE_LEN * 2, out);
    let mut ahead = PagePrefetcher::of(ahead);
    // SAFETY: the lengths were checked.
    unsafe {
        integers::scores::<W, K>(queries, keys.as_ptr(), out.as_mut_ptr(), &mut ahead);
        ahead.finish::<W>();
    }
}

/// Sums of quantized values. For each block of columns the weights are multiplied by the scales of its slots.
///
/// # Safety
/// The processor has the registers.
#[inline(always)]
unsafe fn scaled_sums<W: PageSimd, S: PageRows>(
    weights: &ValueWeights,
    head_dim: usize,
    values: &[u8],
    ahead: &[u8],
    scratch: &mut [f32],
    sums: &mut [f32],
) {
    let (n, stride) = (weights.n, S::offset(head_dim));
    let n_blocks = head_dim / BLOCK_LEN;
    check_sum(weights, head_dim, values, PAGE_LEN * (stride + 2 * n_blocks), sums);
    assert!(head_dim.is_multiple_of(BLOCK_LEN) && scratch.len() >= n * PAGE_LEN);
    let slots = weights.slots.clone();
    let mut ahead = PagePrefetcher::of(ahead);
    // SAFETY: the lengths were checked: rows of PAGE_LEN weights, scales behind the values.
    unsafe {
        let scales = values.as_ptr().add(PAGE_LEN * stride).cast::<u16>();
        for block in 0..n_blocks {
            for slot in (0..PAGE_LEN).step_by(W::LEN) {
                let scale = W::halves(scales.add(block * PAGE_LEN + slot));
                for i in 0..n {
                    let weight = W::load(weights.x.as_ptr().add(i * SCORE_STRIDE + slot));
                    W::store(scratch.as_mut_ptr().add(i * PAGE_LEN + slot), W::mul(weight, scale));
                }
            }
            let p = PagePanel {
                n_a: n,
                k: slots.len(),
                n: BLOCK_LEN,
                a: scratch.as_ptr().add(slots.start),
                a_stride: PAGE_LEN,
                b: values.as_ptr().add(slots.start * stride + S::offset(block * BLOCK_LEN)),
                b_stride: stride,
                c: sums.as_mut_ptr().add(block * BLOCK_LEN),
                c_stride: head_dim,
            };
            multiply::<W, S>(&p, &mut ahead);
        }
        ahead.finish::<W>();
    }
}

macro_rules! formats {
    ($($name:ident: $scores:ident, $sums:ident;)*) => {
        $(
            impl PageFormat for $name {
                // SAFETY: asked of the caller by the trait.
                #[inline(always)]
                unsafe fn score<W: PageSimd>(queries: &PageQueries, keys: &[u8], ahead: &[u8], out: &mut [f32]) {
                    // SAFETY: the caller's.
                    unsafe { $scores::<W, Self>(queries, keys, ahead, out) }
                }

                // SAFETY: asked of the caller by the trait.
                #[inline(always)]
                unsafe fn sum<W: PageSimd>(
                    weights: &ValueWeights,
                    head_dim: usize,
                    values: &[u8],
                    ahead: &[u8],
                    scratch: &mut [f32],
                    sums: &mut [f32],
                ) {
                    // SAFETY: the caller's.
                    unsafe { $sums::<W, Self>(weights, head_dim, values, ahead, scratch, sums) }
                }
            }
        )*
    };
}
formats! {
    RowsF32: float_scores, float_sums;
    RowsF16: float_scores, float_sums;
    RowsI8: integer_scores, scaled_sums;
    RowsI4: integer_scores, scaled_sums;
}

/// Compiles the kernels of every format for one instruction set: `F32`, `F16`, `Q8_0`, `Q4_0`.
macro_rules! page_kernels {
    ($W:ty, $features:literal, $level:ident) => {
        page_kernels! { $W, $features,
            F32: RowsF32, None;
            F16: RowsF16, None;
            Q8_0: RowsI8, Some(ROUND.$level);
            Q4_0: RowsI4, Some(ROUND.$level);
        }
    };
    ($W:ty, $features:literal, $($name:ident: $format:ident, $round:expr;)*) => {
        $(
            pub const $name: PageKernels = {
                fn score(queries: &PageQueries, keys: &[u8], ahead: &[u8], _scratch: &mut [f32], out: &mut [f32]) {
                    #[target_feature(enable = $features)]
                    fn inner(queries: &PageQueries, keys: &[u8], ahead: &[u8], out: &mut [f32]) {
                        // SAFETY: this function is compiled for the registers.
                        unsafe { <$format as PageFormat>::score::<$W>(queries, keys, ahead, out) }
                    }
                    // SAFETY: `Levels::at` is asked only for levels that `IsaLevel::is_present` confirmed.
                    unsafe { inner(queries, keys, ahead, out) }
                }

                fn sum(
                    weights: &ValueWeights,
                    head_dim: usize,
                    values: &[u8],
                    ahead: &[u8],
                    scratch: &mut [f32],
                    sums: &mut [f32],
                ) {
                    #[target_feature(enable = $features)]
                    fn inner(w: &ValueWeights, d: usize, values: &[u8], ahead: &[u8], scratch: &mut [f32], sums: &mut [f32]) {
                        // SAFETY: this function is compiled for the registers.
                        unsafe { <$format as PageFormat>::sum::<$W>(w, d, values, ahead, scratch, sums) }
                    }
                    // SAFETY: `Levels::at` is asked only for levels that `IsaLevel::is_present` confirmed.
                    unsafe { inner(weights, head_dim, values, ahead, scratch, sums) }
                }

                PageKernels { score, sum, round: $round }
            };
        )*
    };
}
pub(crate) use page_kernels;
