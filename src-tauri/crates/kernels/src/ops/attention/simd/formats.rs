//! Pages of each dtype: which product takes what from where. Lengths are checked here, once a page.

use super::panel::{Panel, panel};
use super::sources::{Bytes, Floats, Halves, Keys, Nibbles, Source};
use super::{Ahead, BLOCK_LEN, Wide, integers};
use crate::graph::PAGE_LEN;
use crate::ops::attention::pages::{Queries, SCORE_STRIDE, Weights};

/// A dtype of pages.
pub trait Format {
    /// As `pages::Scores`.
    ///
    /// # Safety
    /// The processor has the registers.
    unsafe fn scores<W: Wide>(queries: &Queries, keys: &[u8], ahead: &[u8], out: &mut [f32]);

    /// As `pages::Weigh`.
    ///
    /// # Safety
    /// The processor has the registers.
    unsafe fn weigh<W: Wide>(
        weights: &Weights,
        head_dim: usize,
        values: &[u8],
        ahead: &[u8],
        room: &mut [f32],
        sums: &mut [f32],
    );
}

/// Elements that rows `stride` apart need to hold `n` rows of `width`.
fn extent(n: usize, stride: usize, width: usize) -> usize {
    n.saturating_sub(1) * stride + width
}

fn check_scores(queries: &Queries, keys: &[u8], key_bytes: usize, out: &[f32]) {
    assert!(queries.x.len() >= queries.n * queries.head_dim && keys.len() == key_bytes);
    assert!(out.len() >= extent(queries.n, SCORE_STRIDE, PAGE_LEN));
}

fn check_weigh(weights: &Weights, head_dim: usize, values: &[u8], value_bytes: usize, sums: &[f32]) {
    assert!(weights.x.len() >= extent(weights.n, SCORE_STRIDE, PAGE_LEN) && values.len() == value_bytes);
    assert!(weights.slots.start <= weights.slots.end && weights.slots.end <= PAGE_LEN);
    assert!(sums.len() >= weights.n * head_dim);
}

/// Scores of keys that are floats of some kind: (head_dim, PAGE_LEN).
///
/// # Safety
/// The processor has the registers.
#[inline(always)]
unsafe fn float_scores<W: Wide, S: Source>(queries: &Queries, keys: &[u8], ahead: &[u8], out: &mut [f32]) {
    let (n, d) = (queries.n, queries.head_dim);
    check_scores(queries, keys, d * S::offset(PAGE_LEN), out);
    out.chunks_mut(SCORE_STRIDE).take(n).for_each(|out| out[..PAGE_LEN].fill(0.0));
    let p = Panel {
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
    let mut ahead = Ahead::of(ahead);
    // SAFETY: the lengths were checked.
    unsafe {
        panel::<W, S>(&p, &mut ahead);
        ahead.finish::<W>();
    }
}

/// Sums of values that are floats of some kind: (PAGE_LEN, head_dim).
///
/// # Safety
/// The processor has the registers.
#[inline(always)]
unsafe fn float_sums<W: Wide, S: Source>(
    weights: &Weights,
    head_dim: usize,
    values: &[u8],
    ahead: &[u8],
    _room: &mut [f32],
    sums: &mut [f32],
) {
    let stride = S::offset(head_dim);
    check_weigh(weights, head_dim, values, PAGE_LEN * stride, sums);
    let slots = weights.slots.clone();
    let p = Panel {
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
    let mut ahead = Ahead::of(ahead);
    // SAFETY: the lengths were checked.
    unsafe {
        panel::<W, S>(&p, &mut ahead);
        ahead.finish::<W>();
    }
}

/// Scores of quantised keys.
///
/// # Safety
/// The processor has the registers.
#[inline(always)]
unsafe fn integer_scores<W: Wide, K: Keys>(queries: &Queries, keys: &[u8], ahead: &[u8], out: &mut [f32]) {
    let d = queries.head_dim;
    assert!(
        d.is_multiple_of(BLOCK_LEN) && queries.q.len() >= queries.n * d && queries.scales.len() >= queries.n
    );
    check_scores(queries, keys, d / 2 / K::PAIRS * K::GROUP_BYTES + d / BLOCK_LEN * PAGE_LEN * 2, out);
    let mut ahead = Ahead::of(ahead);
    // SAFETY: the lengths were checked.
    unsafe {
        integers::scores::<W, K>(queries, keys.as_ptr(), out.as_mut_ptr(), &mut ahead);
        ahead.finish::<W>();
    }
}

/// Sums of quantised values: each block of columns takes weights of its own, those of the slots times their scales.
///
/// # Safety
/// The processor has the registers.
#[inline(always)]
unsafe fn scaled_sums<W: Wide, S: Source>(
    weights: &Weights,
    head_dim: usize,
    values: &[u8],
    ahead: &[u8],
    room: &mut [f32],
    sums: &mut [f32],
) {
    let (n, stride) = (weights.n, S::offset(head_dim));
    let n_blocks = head_dim / BLOCK_LEN;
    check_weigh(weights, head_dim, values, PAGE_LEN * (stride + 2 * n_blocks), sums);
    assert!(head_dim.is_multiple_of(BLOCK_LEN) && room.len() >= n * PAGE_LEN);
    let slots = weights.slots.clone();
    let mut ahead = Ahead::of(ahead);
    // SAFETY: the lengths were checked: rows of PAGE_LEN weights, scales behind the values.
    unsafe {
        let scales = values.as_ptr().add(PAGE_LEN * stride).cast::<u16>();
        for block in 0..n_blocks {
            for slot in (0..PAGE_LEN).step_by(W::LEN) {
                let scale = W::halves(scales.add(block * PAGE_LEN + slot));
                for i in 0..n {
                    let weight = W::load(weights.x.as_ptr().add(i * SCORE_STRIDE + slot));
                    W::store(room.as_mut_ptr().add(i * PAGE_LEN + slot), W::mul(weight, scale));
                }
            }
            let p = Panel {
                n_a: n,
                k: slots.len(),
                n: BLOCK_LEN,
                a: room.as_ptr().add(slots.start),
                a_stride: PAGE_LEN,
                b: values.as_ptr().add(slots.start * stride + S::offset(block * BLOCK_LEN)),
                b_stride: stride,
                c: sums.as_mut_ptr().add(block * BLOCK_LEN),
                c_stride: head_dim,
            };
            panel::<W, S>(&p, &mut ahead);
        }
        ahead.finish::<W>();
    }
}

macro_rules! formats {
    ($($name:ident: $scores:ident, $sums:ident;)*) => {
        $(
            impl Format for $name {
                // SAFETY: asked of the caller by the trait.
                #[inline(always)]
                unsafe fn scores<W: Wide>(queries: &Queries, keys: &[u8], ahead: &[u8], out: &mut [f32]) {
                    // SAFETY: the caller's.
                    unsafe { $scores::<W, Self>(queries, keys, ahead, out) }
                }

                // SAFETY: asked of the caller by the trait.
                #[inline(always)]
                unsafe fn weigh<W: Wide>(
                    weights: &Weights,
                    head_dim: usize,
                    values: &[u8],
                    ahead: &[u8],
                    room: &mut [f32],
                    sums: &mut [f32],
                ) {
                    // SAFETY: the caller's.
                    unsafe { $sums::<W, Self>(weights, head_dim, values, ahead, room, sums) }
                }
            }
        )*
    };
}
formats! {
    Floats: float_scores, float_sums;
    Halves: float_scores, float_sums;
    Bytes: integer_scores, scaled_sums;
    Nibbles: integer_scores, scaled_sums;
}

/// Compiles the kernels of every dtype for one set of registers: `F32`, `F16`, `Q8_0`, `Q4_0`.
macro_rules! page_kernels {
    ($W:ty, $features:literal, $level:ident) => {
        page_kernels! { $W, $features,
            F32: Floats, None;
            F16: Halves, None;
            Q8_0: Bytes, Some(ROUND.$level);
            Q4_0: Nibbles, Some(ROUND.$level);
        }
    };
    ($W:ty, $features:literal, $($name:ident: $format:ident, $round:expr;)*) => {
        $(
            pub const $name: PageKernels = {
                fn scores(queries: &Queries, keys: &[u8], ahead: &[u8], _room: &mut [f32], out: &mut [f32]) {
                    #[target_feature(enable = $features)]
                    fn inner(queries: &Queries, keys: &[u8], ahead: &[u8], out: &mut [f32]) {
                        // SAFETY: this function is compiled for the registers.
                        unsafe { <$format as Format>::scores::<$W>(queries, keys, ahead, out) }
                    }
                    // SAFETY: `Levels::at` is asked only for levels that `IsaLevel::is_present` confirmed.
                    unsafe { inner(queries, keys, ahead, out) }
                }

                fn weigh(
                    weights: &Weights,
                    head_dim: usize,
                    values: &[u8],
                    ahead: &[u8],
                    room: &mut [f32],
                    sums: &mut [f32],
                ) {
                    #[target_feature(enable = $features)]
                    fn inner(w: &Weights, d: usize, values: &[u8], ahead: &[u8], room: &mut [f32], sums: &mut [f32]) {
                        // SAFETY: this function is compiled for the registers.
                        unsafe { <$format as Format>::weigh::<$W>(w, d, values, ahead, room, sums) }
                    }
                    // SAFETY: `Levels::at` is asked only for levels that `IsaLevel::is_present` confirmed.
                    unsafe { inner(weights, head_dim, values, ahead, room, sums) }
                }

                PageKernels { scores, weigh, round: $round }
            };
        )*
    };
}
pub(crate) use page_kernels;
