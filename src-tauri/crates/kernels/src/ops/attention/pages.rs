//! Attention with one page of one KV head: scores of queries with its keys, and the weighted sum of its values. Several
//! queries share a pass over the page. Every result is one chain of additions (scores over rising elements, sums over
//! rising positions), so that a query's result does not depend on the others.
//!
//! Except at the portable level, quantized keys are multiplied with queries rounded to 15 bits and a sign, with one scale
//! per query, and the products are summed as integers.

use super::page_operands::{PageKernels, PageQueries, SCORE_STRIDE, ValueWeights};
use crate::cpu::isa::{IsaLevel, Levels};
use crate::graph::{KvDType, KvPrecision, PAGE_LEN};
use crate::ops::kv_write::{F16_CONVERT, load_keys, load_values};
use crate::ops::panel::{self, PanelShape};

/// The kernels for pages of a storage format.
pub fn of(dtype: KvDType) -> &'static Levels<PageKernels> {
    match dtype {
        KvDType::F32 => &F32,
        KvDType::F16 => &F16,
        KvDType::Q8_0 => &Q8_0,
        KvDType::Q4_0 => &Q4_0,
    }
}

/// The kernels at `level` for pages whose keys and values may differ in format.
pub fn at(precision: KvPrecision, level: IsaLevel) -> PageKernels {
    let (keys, values) = (of(precision.keys).at(level), of(precision.values).at(level));
    PageKernels { sum: values.sum, ..keys }
}

/// A storage format as a type.
trait StoredFormat {
    const DTYPE: KvDType;
}
struct StoredF32;
struct StoredF16;
struct StoredQ8;
struct StoredQ4;

impl StoredFormat for StoredF32 {
    const DTYPE: KvDType = KvDType::F32;
}
impl StoredFormat for StoredF16 {
    const DTYPE: KvDType = KvDType::F16;
}
impl StoredFormat for StoredQ8 {
    const DTYPE: KvDType = KvDType::Q8_0;
}
impl StoredFormat for StoredQ4 {
    const DTYPE: KvDType = KvDType::Q4_0;
}

/// Decodes the whole page, then multiplies.
fn portable_score<S: StoredFormat>(
    q: &PageQueries,
    keys: &[u8],
    _ahead: &[u8],
    scratch: &mut [f32],
    out: &mut [f32],
) {
    let (d, n) = (q.head_dim, q.n);
    let scratch = &mut scratch[..PAGE_LEN * d];
    load_keys(F16_CONVERT.portable, S::DTYPE, keys, d, scratch);
    out.chunks_mut(SCORE_STRIDE).take(n).for_each(|out| out[..PAGE_LEN].fill(0.0));
    let shape =
        PanelShape { n_a: n, k: d, n: PAGE_LEN, a_stride: d, b_stride: PAGE_LEN, c_stride: SCORE_STRIDE };
    (panel::LEVELS.portable)(shape, q.x, scratch, out);
}

/// As `portable_score`.
fn portable_sum<S: StoredFormat>(
    weights: &ValueWeights,
    head_dim: usize,
    values: &[u8],
    _ahead: &[u8],
    scratch: &mut [f32],
    sums: &mut [f32],
) {
    let slots = weights.slots.clone();
    let scratch = &mut scratch[..slots.end * head_dim];
    load_values(F16_CONVERT.portable, S::DTYPE, values, head_dim, scratch);
    let shape = PanelShape {
        n_a: weights.n,
        k: slots.len(),
        n: head_dim,
        a_stride: SCORE_STRIDE,
        b_stride: head_dim,
        c_stride: head_dim,
    };
    (panel::LEVELS.portable)(shape, &weights.x[slots.start..], &scratch[slots.start * head_dim..], sums);
}

const fn portable<S: StoredFormat>() -> PageKernels {
    PageKernels { score: portable_score::<S>, sum: portable_sum::<S>, round: None }
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
tables! { F32: StoredF32; F16: StoredF16; Q8_0: StoredQ8; Q4_0: StoredQ4; }

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::super::page_operands::ROUND;
    use super::*;
    use crate::cpu::isa::IsaLevel;
    use crate::ops::kv_write::{store_key, store_value};

    /// splitmix64: a number between -1 and 1, cubed, so that blocks have small and large elements.
    fn number(state: &mut u64) -> f32 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let x = (z >> 40) as f32 / (1u64 << 23) as f32 - 1.0;
        x * x * x
    }

    /// A page of one head as stored, and as floats: (head_dim, PAGE_LEN) and (PAGE_LEN, head_dim).
    struct TestPage {
        keys: Vec<u8>,
        values: Vec<u8>,
        key_floats: Vec<f32>,
        value_floats: Vec<f32>,
    }

    fn page(dtype: KvDType, d: usize, r: &mut u64) -> TestPage {
        let halves = F16_CONVERT.portable;
        let n_bytes = PAGE_LEN * dtype.row_bytes(d);
        // floats, to align the bytes as in a KV store
        let mut buffers = [vec![0.0f32; n_bytes / 4], vec![0.0f32; n_bytes / 4]];
        let [keys, values] = &mut buffers;
        let (keys, values) = (crate::cpu::arena::bytes_of_mut(keys), crate::cpu::arena::bytes_of_mut(values));
        for slot in 0..PAGE_LEN {
            let row = |r: &mut u64| -> Vec<f32> { (0..d).map(|_| number(r)).collect() };
            store_key(halves, dtype, &row(r), slot, keys);
            store_value(halves, dtype, &row(r), slot, values);
        }
        let (mut key_floats, mut value_floats) = (vec![0.0; PAGE_LEN * d], vec![0.0; PAGE_LEN * d]);
        load_keys(halves, dtype, keys, d, &mut key_floats);
        load_values(halves, dtype, values, d, &mut value_floats);
        TestPage { keys: keys.to_vec(), values: values.to_vec(), key_floats, value_floats }
    }

    const DTYPES: [KvDType; 4] = [KvDType::F32, KvDType::F16, KvDType::Q8_0, KvDType::Q4_0];

    /// Sums of up to 256 products in another order, relative to the sum of absolute products.
    const TOLERANCE: f32 = 1e-5;
    /// Half a step of a rounded query, relative to its largest element; slightly more, as the scale is rounded too.
    const HALF_STEP: f32 = 1.01 / 65534.0;

    /// Runs one level's kernels on `n` queries: scores (n, PAGE_LEN) and sums (n, d) begun at one.
    fn run(
        kernels: &PageKernels,
        d: usize,
        page: &TestPage,
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
        let mut scratch = vec![0.0; PAGE_LEN * d.max(n)];
        let mut strided = vec![7.0; n * SCORE_STRIDE];
        let queries = PageQueries { n, head_dim: d, x, q: &q, scales: &scales };
        (kernels.score)(&queries, &page.keys, &page.values, &mut scratch, &mut strided);
        let scores = strided.chunks(SCORE_STRIDE).flat_map(|row| row[..PAGE_LEN].to_vec()).collect();
        for (row, p) in strided.chunks_mut(SCORE_STRIDE).zip(p.chunks(PAGE_LEN)) {
            assert!(row[PAGE_LEN..].iter().all(|x| *x == 7.0), "scores stay within their page");
            row[..PAGE_LEN].copy_from_slice(p);
        }
        let mut sums = vec![1.0; n * d];
        let weights = ValueWeights { n, x: &strided, slots: slots.clone() };
        (kernels.sum)(&weights, d, &page.values, &[], &mut scratch, &mut sums);
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
                assert!(
                    alone.0 == scores[i * PAGE_LEN..(i + 1) * PAGE_LEN],
                    "{what}: other queries change scores"
                );
                assert!(alone.1 == sums[i * d..(i + 1) * d], "{what}: other queries change sums");
                // other queries that see more
                let mut seen = [0.0; PAGE_LEN];
                seen[slots.clone()].copy_from_slice(&p[i * PAGE_LEN..][slots.clone()]);
                let with_more = run(&kernels, d, &page, &x[i * d..(i + 1) * d], &seen, &(0..PAGE_LEN));
                assert!(with_more.1 == alone.1, "{what}: what other queries see changes sums");
            }
        }
    }

    #[test]
    fn every_level_agrees_with_plain_sums_for_any_number_of_queries() {
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
