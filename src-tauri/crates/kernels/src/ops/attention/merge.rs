//! Merges partial softmaxes over ranges of positions.

use super::exp;
use crate::cpu::isa::{Mac, levels};

/// State of a softmax over some positions, besides its weighted sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Partial {
    /// largest score
    pub max: f32,
    /// Σ e^(score − max)
    pub sum: f32,
}

impl Partial {
    /// Over no positions.
    pub const EMPTY: Self = Self { max: f32::NEG_INFINITY, sum: 0.0 };
}

/// Merges a later part into an earlier one: `acc`, `part` (head_dim) are unnormalized weighted sums.
pub type Merge = fn(state: Partial, acc: &mut [f32], next: Partial, part: &[f32]) -> Partial;

#[inline(always)]
fn merge<M: Mac>(state: Partial, acc: &mut [f32], next: Partial, part: &[f32]) -> Partial {
    let max = if next.max > state.max { next.max } else { state.max };
    let (old, new) = (exp::<M>(state.max - max), exp::<M>(next.max - max));
    for (acc, part) in acc.iter_mut().zip(part) {
        *acc = M::mac(*acc, old, part * new);
    }
    Partial { max, sum: M::mac(state.sum, old, next.sum * new) }
}

levels!(
    /// The kernel at each instruction-set level.
    pub MERGE = merge(state: Partial, acc: &mut [f32], next: Partial, part: &[f32]) -> Partial);
