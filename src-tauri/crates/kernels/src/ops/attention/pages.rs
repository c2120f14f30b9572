//! The two products of attention with one page of one KV head: scores of queries with its keys, and values summed by
//! weights. Several queries go through a page together. Each element of a result is one chain of additions, of
//! scores over rising elements, of sums over rising positions: what a query gets does not depend on its mates.
//!
//! Everywhere but at the portable level quantised keys meet queries that are rounded to 15 bits and a sign, under one
//! scale for each query, and their products are summed as integers.

use std::ops::Range;

use super::CHUNK;
use crate::cpu::isa::{Levels, Mac, levels};
use crate::graph::{KvDType, PAGE_LEN};
use crate::ops::kv_write::{F16_CONVERT, load_keys, load_values};
use crate::ops::panel::{self, PanelShape};

/// Floats between the scores of one query and of the next: as long as the chunk they would all fall on the same few
/// lines of the cache.
pub const SCORE_STRIDE: usize = CHUNK + 16;

/// Queries that share a KV head.
#[derive(Clone, Copy, Debug)]
pub struct Queries<'a> {
    pub n: usize,
    pub head_dim: usize,
    /// (n, head_dim), scaled as the model wants it
    pub x: &'a [f32],
    /// (n, head_dim): x ≈ q · scale, where the kernels have a way to `round`; else anything
    pub q: &'a [i16],
    /// (n)
    pub scales: &'a [f32],
}

/// What the values of a page are multiplied with.
#[derive(Clone, Debug)]
pub struct Weights<'a> {
    pub n: usize,
    /// rows of `SCORE_STRIDE`, of which the first `PAGE_LEN` belong to this page
    pub x: &'a [f32],
    /// the slots that count
    pub slots: Range<usize>,
}

/// out: rows of `SCORE_STRIDE`, of which the first `PAGE_LEN` are set. `ahead` is asked for meanwhile; `room`
/// (head_dim, PAGE_LEN) is scratch.
pub type Scores = fn(queries: &Queries, keys: &[u8], ahead: &[u8], room: &mut [f32], out: &mut [f32]);

/// sums (n, head_dim) += weights · values
pub type Weigh =
    fn(weights: &Weights, head_dim: usize, values: &[u8], ahead: &[u8], room: &mut [f32], sums: &mut [f32]);

/// x → q of one length, and the scale they share.
pub type Round = fn(x: &[f32], q: &mut [i16]) -> f32;

/// How pages of one dtype are read at one level.
#[derive(Clone, Copy)]
pub struct PageKernels {
    pub scores: Scores,
    pub weigh: Weigh,
    /// None: queries are used as they are
    pub round: Option<Round>,
}

/// The kernels for pages of a dtype.
pub fn of(dtype: KvDType) -> &'static Levels<PageKernels> {
    match dtype {
        KvDType::F32 => &F32,
        KvDType::F16 => &F16,
        KvDType::Q8_0 => &Q8_0,
        KvDType::Q4_0 => &Q4_0,
    }
}

/// How numbers are stored, as a type.
trait Stored {
    const DTYPE: KvDType;
}
struct Floats;
struct Halves;
struct Bytes;
struct Nibbles;

impl Stored for Floats {
    const DTYPE: KvDType = KvDType::F32;
}
impl Stored for Halves {
    const DTYPE: KvDType = KvDType::F16;
}
impl Stored for Bytes {
    const DTYPE: KvDType = KvDType::Q8_0;
}
impl Stored for Nibbles {
    const DTYPE: KvDType = KvDType::Q4_0;
}

/// The whole page as floats, then a plain product.
fn portable_scores<S: Stored>(q: &Queries, keys: &[u8], _ahead: &[u8], room: &mut [f32], out: &mut [f32]) {
    let (d, n) = (q.head_dim, q.n);
    let room = &mut room[..PAGE_LEN * d];
    load_keys(F16_CONVERT.portable, S::DTYPE, keys, d, room);
    out.chunks_mut(SCORE_STRIDE).take(n).for_each(|out| out[..PAGE_LEN].fill(0.0));
    let shape =
        PanelShape { n_a: n, k: d, n: PAGE_LEN, a_stride: d, b_stride: PAGE_LEN, c_stride: SCORE_STRIDE };
    (panel::LEVELS.portable)(shape, q.x, room, out);
}

/// As `portable_scores`.
fn portable_weigh<S: Stored>(
    weights: &Weights,
    head_dim: usize,
    values: &[u8],
    _ahead: &[u8],
    room: &mut [f32],
    sums: &mut [f32],
) {
    let slots = weights.slots.clone();
    let room = &mut room[..slots.end * head_dim];
    load_values(F16_CONVERT.portable, S::DTYPE, values, head_dim, room);
    let shape = PanelShape {
        n_a: weights.n,
        k: slots.len(),
        n: head_dim,
        a_stride: SCORE_STRIDE,
        b_stride: head_dim,
        c_stride: head_dim,
    };
    (panel::LEVELS.portable)(shape, &weights.x[slots.start..], &room[slots.start * head_dim..], sums);
}

const fn portable<S: Stored>() -> PageKernels {
    PageKernels { scores: portable_scores::<S>, weigh: portable_weigh::<S>, round: None }
}

macro_rules! tables {
    ($($name:ident: $stored:ty;)*) => {
        $(
            static $name: Levels<PageKernels> = Levels {
                portable: portable::<$stored>(),
                #[cfg(target_arch = "x86_64")]
                avx2: super::simd::avx2::$name,
                #[cfg(target_arch = "x86_64")]
                avx512: super::simd::avx512::$name,
                #[cfg(not(target_arch = "x86_64"))]
                avx2: portable::<$stored>(),
                #[cfg(not(target_arch = "x86_64"))]
                avx512: portable::<$stored>(),
                #[cfg(target_arch = "aarch64")]
                neon: super::simd::neon::$name,
                #[cfg(not(target_arch = "aarch64"))]
                neon: portable::<$stored>(),
            };
        )*
    };
}
tables! { F32: Floats; F16: Halves; Q8_0: Bytes; Q4_0: Nibbles; }

/// Largest integer of a rounded query: products with any byte, summed over a block, stay within 32 bits.
const LARGEST: f32 = 32767.0;
/// 1.5 · 2^23: a float that is added to it lies in the low bits, rounded to the nearest integer.
const NEAREST: f32 = 12_582_912.0;

#[inline(always)]
fn round<M: Mac>(x: &[f32], q: &mut [i16]) -> f32 {
    // without their signs floats are in the order of their bits
    let largest = x.iter().fold(0, |largest, x| largest.max(x.abs().to_bits()));
    let largest = f32::from_bits(largest);
    // no number where an element is none or infinite: then no score may look like one
    let scale = largest / LARGEST + largest * 0.0;
    let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
    for (q, x) in q.iter_mut().zip(x) {
        *q = (x * inverse + NEAREST).to_bits() as i16;
    }
    scale
}

levels!(pub ROUND = round(x: &[f32], q: &mut [i16]) -> f32);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::isa::IsaLevel;
    use crate::ops::kv_write::{store_key, store_value};

    /// splitmix64: a number between -1 and 1, steeper than even, so that blocks have small and large elements.
    fn number(state: &mut u64) -> f32 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let x = (z >> 40) as f32 / (1u64 << 23) as f32 - 1.0;
        x * x * x
    }

    /// A page of one head as it is written: keys, values, and the same as floats, (head_dim, PAGE_LEN) and
    /// (PAGE_LEN, head_dim).
    struct Page {
        keys: Vec<u8>,
        values: Vec<u8>,
        key_floats: Vec<f32>,
        value_floats: Vec<f32>,
    }

    fn page(dtype: KvDType, d: usize, r: &mut u64) -> Page {
        let halves = F16_CONVERT.portable;
        let n_bytes = PAGE_LEN * dtype.row_bytes(d);
        // floats, so that the bytes are aligned as those of a store are
        let mut rooms = [vec![0.0f32; n_bytes / 4], vec![0.0f32; n_bytes / 4]];
        let [keys, values] = &mut rooms;
        let (keys, values) = (crate::cpu::arena::bytes_of_mut(keys), crate::cpu::arena::bytes_of_mut(values));
        for slot in 0..PAGE_LEN {
            let row = |r: &mut u64| -> Vec<f32> { (0..d).map(|_| number(r)).collect() };
            store_key(halves, dtype, &row(r), slot, keys);
            store_value(halves, dtype, &row(r), slot, values);
        }
        let (mut key_floats, mut value_floats) = (vec![0.0; PAGE_LEN * d], vec![0.0; PAGE_LEN * d]);
        load_keys(halves, dtype, keys, d, &mut key_floats);
        load_values(halves, dtype, values, d, &mut value_floats);
        Page { keys: keys.to_vec(), values: values.to_vec(), key_floats, value_floats }
    }

    const DTYPES: [KvDType; 4] = [KvDType::F32, KvDType::F16, KvDType::Q8_0, KvDType::Q4_0];

    /// Sums of up to 256 products in another order: a part of the sum of absolute products.
    const TOLERANCE: f32 = 1e-5;
    /// Half a step of a rounded query, as a part of its largest element; a little more, as the scale is rounded too.
    const HALF_STEP: f32 = 1.01 / 65534.0;

    /// Runs one level's kernels on `n` queries: scores (n, PAGE_LEN) and sums (n, d) begun at one.
    fn run(
        kernels: &PageKernels,
        d: usize,
        page: &Page,
        x: &[f32],
        p: &[f32],
        slots: &Range<usize>,
    ) -> (Vec<f32>, Vec<f32>) {
        let n = x.len() / d;
        let (mut q, mut scales) = (vec![0; n * d], vec![0.0; n]);
        if let Some(round) = kernels.round {
            for i in 0..n {
                scales[i] = round(&x[i * d..(i + 1) * d], &mut q[i * d..(i + 1) * d]);
            }
        }
        let mut room = vec![0.0; PAGE_LEN * d.max(n)];
        let mut strided = vec![7.0; n * SCORE_STRIDE];
        let queries = Queries { n, head_dim: d, x, q: &q, scales: &scales };
        (kernels.scores)(&queries, &page.keys, &page.values, &mut room, &mut strided);
        let scores = strided.chunks(SCORE_STRIDE).flat_map(|row| row[..PAGE_LEN].to_vec()).collect();
        for (row, p) in strided.chunks_mut(SCORE_STRIDE).zip(p.chunks(PAGE_LEN)) {
            assert!(row[PAGE_LEN..].iter().all(|x| *x == 7.0), "scores stay within their page");
            row[..PAGE_LEN].copy_from_slice(p);
        }
        let mut sums = vec![1.0; n * d];
        let weights = Weights { n, x: &strided, slots: slots.clone() };
        (kernels.weigh)(&weights, d, &page.values, &[], &mut room, &mut sums);
        (scores, sums)
    }

    fn check(dtype: KvDType, d: usize, n: usize, r: &mut u64) {
        let page = page(dtype, d, r);
        let x: Vec<f32> = (0..n * d).map(|_| number(r)).collect();
        let p: Vec<f32> = (0..n * PAGE_LEN).map(|_| number(r).abs()).collect();
        let bounds = [0, PAGE_LEN].map(|at| (number(r) * 8.0).abs() as usize + at / 2);
        let slots = if n.is_multiple_of(2) { bounds[0]..bounds[1] } else { 0..PAGE_LEN };
        for level in IsaLevel::present() {
            let kernels = of(dtype).at(level);
            let what = format!("{dtype:?} {level} head_dim {d}, {n} queries, {slots:?}");
            let (scores, sums) = run(&kernels, d, &page, &x, &p, &slots);
            let half_step = if kernels.round.is_some() { HALF_STEP } else { 0.0 };
            for i in 0..n {
                let largest = x[i * d..(i + 1) * d].iter().fold(0.0f32, |m, x| m.max(x.abs()));
                for slot in 0..PAGE_LEN {
                    let key_sum: f32 = (0..d).map(|j| page.key_floats[j * PAGE_LEN + slot].abs()).sum();
                    let tolerance = half_step * largest * key_sum;
                    let products = (0..d).map(|j| x[i * d + j] * page.key_floats[j * PAGE_LEN + slot]);
                    let (want, size) = products.fold((0.0, 0.0f32), |(s, a), p| (s + p, a + p.abs()));
                    let got = scores[i * PAGE_LEN + slot];
                    let tolerance = tolerance + TOLERANCE * size;
                    assert!((got - want).abs() <= tolerance, "{what}: score {got}, not {want}");
                }
                for j in 0..d {
                    let products =
                        slots.clone().map(|slot| p[i * PAGE_LEN + slot] * page.value_floats[slot * d + j]);
                    let (want, size) = products.fold((1.0, 1.0f32), |(s, a), p| (s + p, a + p.abs()));
                    let got = sums[i * d + j];
                    assert!((got - want).abs() <= TOLERANCE * size, "{what}: sum {got}, not {want}");
                }
                let alone = run(
                    &kernels,
                    d,
                    &page,
                    &x[i * d..(i + 1) * d],
                    &p[i * PAGE_LEN..(i + 1) * PAGE_LEN],
                    &slots,
                );
                assert!(alone.0 == scores[i * PAGE_LEN..(i + 1) * PAGE_LEN], "{what}: mates change scores");
                assert!(alone.1 == sums[i * d..(i + 1) * d], "{what}: mates change sums");
                // mates that see more
                let mut seen = [0.0; PAGE_LEN];
                seen[slots.clone()].copy_from_slice(&p[i * PAGE_LEN..][slots.clone()]);
                let with_more = run(&kernels, d, &page, &x[i * d..(i + 1) * d], &seen, &(0..PAGE_LEN));
                assert!(with_more.1 == alone.1, "{what}: what mates see changes sums");
            }
        }
    }

    #[test]
    fn every_level_agrees_with_plain_sums_whoever_goes_along() {
        let r = &mut 5;
        for dtype in DTYPES {
            for d in [32, 64, 96, 128, 256] {
                (1..=9).chain([31, 32]).for_each(|n| check(dtype, d, n, r));
            }
        }
        for dtype in [KvDType::F32, KvDType::F16] {
            for d in [1, 7, 8, 20, 40, 72, 80, 112] {
                [1, 2, 5, 12].into_iter().for_each(|n| check(dtype, d, n, r));
            }
        }
    }

    #[test]
    fn rounded_queries() {
        for level in IsaLevel::present() {
            let round = ROUND.at(level);
            let (x, mut q) = ([0.5, -2.0, 1.0, 0.0], [9; 4]);
            let scale = round(&x, &mut q);
            assert_eq!(q, [8192, -32767, 16384, 0], "{level}");
            assert!((scale * 32767.0 - 2.0).abs() < 1e-6, "{level}");
            assert_eq!((round(&[0.0; 3], &mut q[..3]), &q[..3]), (0.0, &[0; 3][..]), "{level}");
            assert!(round(&[1.0, f32::NAN, 2.0], &mut q[..3]).is_nan(), "{level}");
            assert!(round(&[1.0, f32::INFINITY, 2.0], &mut q[..3]).is_nan(), "{level}");
        }
    }
}
