//! Operands and signatures of the attention kernels for one page, and the rounding of queries.

use std::ops::Range;

use super::CHUNK;
use crate::cpu::isa::{Mac, levels};

/// Floats between the scores of consecutive queries. The chunk length alone would map all queries to the same few
/// cache lines.
pub const SCORE_STRIDE: usize = CHUNK + 16;

/// Queries that share a KV head.
#[derive(Clone, Copy, Debug)]
pub struct PageQueries<'a> {
    /// number of queries
    pub n: usize,
    /// elements per query
    pub head_dim: usize,
    /// (n, head_dim), scaled
    pub x: &'a [f32],
    /// (n, head_dim) rounded queries: x ≈ q · scale. Only used by kernels that have `round`
    pub q: &'a [i16],
    /// (n) scale of each rounded query
    pub scales: &'a [f32],
}

/// The weights of a page's values.
#[derive(Clone, Debug)]
pub struct ValueWeights<'a> {
    /// number of queries
    pub n: usize,
    /// rows of `SCORE_STRIDE`, of which the first `PAGE_LEN` belong to this page
    pub x: &'a [f32],
    /// visible slots of the page
    pub slots: Range<usize>,
}

/// out: rows of `SCORE_STRIDE`, of which the first `PAGE_LEN` are written. `ahead` is prefetched meanwhile; `scratch`
/// is (head_dim, PAGE_LEN).
pub type ScorePage =
    fn(queries: &PageQueries, keys: &[u8], ahead: &[u8], scratch: &mut [f32], out: &mut [f32]);

/// sums (n, head_dim) += weights · values. `ahead` is prefetched meanwhile.
pub type SumValues = fn(
    weights: &ValueWeights,
    head_dim: usize,
    values: &[u8],
    ahead: &[u8],
    scratch: &mut [f32],
    sums: &mut [f32],
);

/// Rounds x to q of the same length, and returns the scale.
pub type RoundQuery = fn(x: &[f32], q: &mut [i16]) -> f32;

/// The kernels for pages of one format at one instruction-set level.
#[derive(Clone, Copy)]
pub struct PageKernels {
    /// computes the scores of queries with the keys of a page
    pub score: ScorePage,
    /// adds the weighted values of a page
    pub sum: SumValues,
    /// rounds a query; None: queries are used as they are
    pub round: Option<RoundQuery>,
}

/// Largest integer of a rounded query. Its products with any byte, summed over a block, fit into 32 bits.
const MAX_ROUNDED: f32 = 32767.0;
/// 1.5 · 2^23. Adding it to a float leaves the nearest integer in the low bits.
const ROUNDING_BIAS: f32 = 12_582_912.0;

#[inline(always)]
fn round<M: Mac>(x: &[f32], q: &mut [i16]) -> f32 {
    // the bits of non-negative floats have the order of the floats
    let largest = x.iter().fold(0, |largest, x| largest.max(x.abs().to_bits()));
    let largest = f32::from_bits(largest);
    // NaN if any element is not finite, so that no score looks valid
    let scale = largest / MAX_ROUNDED + largest * 0.0;
    let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
    for (q, x) in q.iter_mut().zip(x) {
        *q = (x * inverse + ROUNDING_BIAS).to_bits() as i16;
    }
    scale
}

levels!(
    /// The kernel at each instruction-set level.
    pub ROUND = round(x: &[f32], q: &mut [i16]) -> f32);
