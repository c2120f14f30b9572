//! Scores with quantized keys: rounded queries and keys are multiplied as integers, pair by pair, and the sum of each
//! block is scaled.

use super::rows::KeyPairs;
use super::{BLOCK_LEN, PagePrefetcher, PageSimd, STEP, by_queries};
use crate::graph::PAGE_LEN;
use crate::ops::attention::page_operands::{PageQueries, SCORE_STRIDE};

/// Scores of queries i..i + R with `STEP` registers of slots from `slot` on.
///
/// # Safety
/// As for `PageSimd`: `keys` is a block of the queries' head_dim, `out` has a row of `SCORE_STRIDE` for each query, and
/// these queries and slots lie within them.
#[inline(always)]
unsafe fn tile<W: PageSimd, K: KeyPairs, const R: usize>(
    queries: &PageQueries,
    keys: *const u8,
    out: *mut f32,
    i: usize,
    slot: usize,
    ahead: &mut PagePrefetcher,
) {
    let d = queries.head_dim;
    let n_groups = BLOCK_LEN / 2 / K::PAIRS;
    // SAFETY: queries below i + R and slots of the page, which the caller vouches for.
    unsafe {
        let q: [*const i16; R] = std::array::from_fn(|r| queries.q.as_ptr().add((i + r) * d));
        let scales = keys.add(d / 2 / K::PAIRS * K::GROUP_BYTES).cast::<u16>();
        let mut sums = [[W::zero(); STEP]; R];
        for block in 0..d / BLOCK_LEN {
            let mut dots = [[W::zero_i(); STEP]; R];
            for first in (block * n_groups..(block + 1) * n_groups).step_by(2) {
                ahead.prefetch_for_two_steps::<W>();
                for at in 0..2 * K::PAIRS {
                    let (group, pair) = (first + at / K::PAIRS, at % K::PAIRS);
                    let group = keys.add(group * K::GROUP_BYTES);
                    let mut k = [W::zero_i(); STEP];
                    for (v, k) in k.iter_mut().enumerate() {
                        *k = K::load::<W>(group, slot + v * W::LEN, pair);
                    }
                    for r in 0..R {
                        let q = W::splat_pair(q[r].add(2 * (first * K::PAIRS + at)));
                        for v in 0..STEP {
                            dots[r][v] = W::dot_pairs(dots[r][v], q, k[v]);
                        }
                    }
                }
            }
            for v in 0..STEP {
                let scale = W::halves(scales.add(block * PAGE_LEN + slot + v * W::LEN));
                for r in 0..R {
                    sums[r][v] = W::fma(W::to_f(dots[r][v]), scale, sums[r][v]);
                }
            }
        }
        for r in 0..R {
            let scale = W::splat(queries.scales[i + r]);
            for v in 0..STEP {
                let at = out.add((i + r) * SCORE_STRIDE + slot + v * W::LEN);
                W::store(at, W::mul(sums[r][v], scale));
            }
        }
    }
}

/// Scores of all queries with a page of quantized keys.
///
/// # Safety
/// As for `PageSimd`: `keys` is a block of the queries' head_dim, `out` has a row of `SCORE_STRIDE` for each query.
#[inline(always)]
pub unsafe fn scores<W: PageSimd, K: KeyPairs>(
    queries: &PageQueries,
    keys: *const u8,
    out: *mut f32,
    ahead: &mut PagePrefetcher,
) {
    let mut slot = 0;
    // SAFETY: slots and queries of the operands; the caller's.
    unsafe {
        while slot < PAGE_LEN {
            by_queries!(W, queries.n, |i, R| tile::<W, K, R>(queries, keys, out, i, slot, ahead));
            slot += STEP * W::LEN;
        }
    }
}
