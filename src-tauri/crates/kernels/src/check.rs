//! Verifies that the kernels of an instruction-set level compute on this CPU what their specification says. Done once per
//! CPU and version, before first use; a level that fails is not used. The caller stores the result.
//!
//! Runs small graphs on a backend and on `Scalar`, node by node. Multiplications get activations that every format stores
//! exactly, so that only the order of additions may differ.

#[cfg(feature = "gpu")]
pub(crate) mod gpu;
mod recurrent;

use std::fmt;
use std::sync::Arc;

use weights::dtype::TABLE;
use weights::{DType, SharedBytes, TensorView};

use crate::backend::Backend;
use crate::batch::{Batch, GivenRows};
use crate::capacity::Capacity;
use crate::compare::compare_after;
use crate::cpu::isa::IsaLevel;
use crate::cpu::{Cpu, CpuOptions};
use crate::error::KernelError;
use crate::graph::{
    Activation, AttentionShape, Columns, ExpertChoice, ExpertScoring, Experts, Graph, GraphBuilder,
    GroupLimit, GroupScore, KvDType, KvLayerLayout, KvLayout, KvPrecision, Mask, MixFactors, PAGE_LEN,
    RopeShape, RopeStyle, Routing, ValueId,
};
use crate::matmul;
use crate::scalar::Scalar;
use crate::tensor::Tensor;

/// A kernel that gives wrong results on this CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelMismatch {
    /// instruction-set level
    pub level: IsaLevel,
    /// name of the failed node: "product of Q4_K", "rope"
    pub kernel: String,
}

impl fmt::Display for KernelMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.kernel, self.level)
    }
}

/// The level to use, and the wrong kernels of higher levels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IsaVerdict {
    /// highest level whose kernels are all correct
    pub level: IsaLevel,
    /// one wrong kernel for each higher level
    pub wrong: Vec<KernelMismatch>,
}

/// Finds the highest level whose kernels are all correct; the lowest one is used in any case. Errors: no memory, no
/// thread.
pub fn highest_correct_level() -> Result<IsaVerdict, KernelError> {
    highest_correct_level_of(&|level| {
        let options = CpuOptions { threads: Some(1), level: Some(level), ..CpuOptions::default() };
        Ok(Box::new(Cpu::new(options)?))
    })
}

type OpenBackend<'a> = &'a dyn Fn(IsaLevel) -> Result<Box<dyn Backend>, KernelError>;

fn highest_correct_level_of(make: OpenBackend) -> Result<IsaVerdict, KernelError> {
    let mut wrong = Vec::new();
    let mut levels: Vec<IsaLevel> = IsaLevel::present().collect();
    while let Some(level) = levels.pop() {
        match mismatch(level, make)? {
            None => return Ok(IsaVerdict { level, wrong }),
            Some(mismatch) => wrong.push(mismatch),
        }
    }
    Ok(IsaVerdict { level: IsaLevel::Portable, wrong })
}

/// Tolerance of multiplications, relative to a value's root mean square: sums of some hundred terms in another order,
/// which may cancel.
const MATMUL_TOLERANCE: f32 = 2e-4;
/// Tolerance of polynomials for e^x and the like, and of sums in another order.
const FLOAT_TOLERANCE: f32 = 5e-5;
/// Tolerance of attention over quantized keys, which rounds queries to 15 bits.
const ROUNDED_TOLERANCE: f32 = 1e-3;

/// The first wrong kernel of a level.
fn mismatch(level: IsaLevel, make: OpenBackend) -> Result<Option<KernelMismatch>, KernelError> {
    let graphs = [
        (matmuls(fast_dtypes(level))?, MATMUL_TOLERANCE),
        (row_ops()?, FLOAT_TOLERANCE),
        (attention(KvDType::F16.both())?, FLOAT_TOLERANCE),
        (attention(KvDType::Q8_0.both())?, ROUNDED_TOLERANCE),
        (attention(KvDType::Q4_0.both())?, ROUNDED_TOLERANCE),
        (recurrent::delta_rule()?, FLOAT_TOLERANCE),
        (recurrent::state_space()?, FLOAT_TOLERANCE),
        (experts(DType::F32)?, FLOAT_TOLERANCE),
    ];
    for (graph, tolerance) in graphs {
        let mut device = make(level)?;
        let found = compare_on(&Arc::new(graph), &mut *device, (&[], &BATCH_TOKENS), tolerance)?;
        if let Some(kernel) = found {
            return Ok(Some(KernelMismatch { level, kernel }));
        }
    }
    Ok(None)
}

/// Batch sizes in tokens: a prompt that fills a register tile of any kernel with a remainder, one token, a few.
const BATCH_TOKENS: [usize; 3] = [35, 1, 5];
/// Batches before them that only fill the KV store, for contexts of several chunks, where a GPU splits attention.
#[cfg(feature = "gpu")]
const PREFILL_TOKENS: [usize; 5] = [64, 64, 64, 64, 20];
const N_VOCAB: usize = 16;

/// The name of the first node that differs, after batches that only fill the KV store.
fn compare_on(
    graph: &Arc<Graph>,
    device: &mut dyn Backend,
    (before, compared): (&[usize], &[usize]),
    tolerance: f32,
) -> Result<Option<String>, KernelError> {
    let mut reference = Scalar::new();
    let lengths = [before, compared].concat();
    let capacity = capacity(&lengths);
    let found = with_batches(graph, &lengths, &mut |batches| {
        let batches = batches.split_at(before.len());
        compare_after(graph, [&mut reference, &mut *device], capacity, batches, tolerance)
    })?;
    Ok(found.map(|difference| difference.node))
}

/// The capacity for batches of these lengths.
fn capacity(lengths: &[usize]) -> Capacity {
    let n_pages = lengths.iter().sum::<usize>().div_ceil(PAGE_LEN);
    let max_rows = lengths.iter().copied().max().unwrap_or(0);
    Capacity { n_pages, n_window_pages: 0, n_requantized_pages: 0, max_rows, max_outputs: 1, n_states: 1 }
}

/// Calls `run` with consecutive batches of these lengths, which form one text.
fn with_batches<R>(
    graph: &Graph,
    lengths: &[usize],
    run: &mut dyn FnMut(&[Batch]) -> Result<R, KernelError>,
) -> Result<R, KernelError> {
    let n_tokens: usize = lengths.iter().sum();
    let n_pages = n_tokens.div_ceil(PAGE_LEN);
    let positions: Vec<u32> = (0..n_tokens as u32).collect();
    let tokens: Vec<u32> = positions.iter().map(|p| p * 7 % N_VOCAB as u32).collect();
    let (zeros, pages) = (vec![0; n_tokens], positions[..n_pages].to_vec());
    let (pages, states): ([&[u32]; 1], &[u32]) =
        ([&pages], if graph.kv().states.is_empty() { &[] } else { &[0] });
    let mut start = 0;
    let batch = |n: &usize| {
        let of = start..start + n;
        start += n;
        Batch {
            tokens: &tokens[of.clone()],
            positions: &positions[of],
            kinds: &[],
            given: GivenRows::NONE,
            sequence: &zeros[..*n],
            page_tables: &pages,
            window_tables: &[],
            states,
            outputs: &positions[..1],
        }
    };
    let batches: Vec<Batch> = lengths.iter().map(batch).collect();
    run(&batches)
}

/// Elements of a weight row: whole blocks of every format, more than one of the largest.
const K: usize = 512;
/// Rows of a matrix: register tiles and a remainder.
const N_OUT: usize = 35;

/// Formats with a fast kernel at this level.
fn fast_dtypes(level: IsaLevel) -> impl Iterator<Item = DType> {
    TABLE.iter().map(|row| row.dtype).filter(move |dtype| matmul::find_kernel(*dtype, level).is_some())
}

/// A multiplication with each format. Activations are integers whose largest in each block is 127.
fn matmuls(dtypes: impl Iterator<Item = DType>) -> Result<Graph, KernelError> {
    let mut noise = CheckNoise(1);
    let whole = (0..N_VOCAB * K).map(|i| if i % 32 == 0 { 127.0 } else { (noise.next() * 127.0).round() });
    let table = tensor(DType::F32, &[N_VOCAB, K], whole.collect::<Vec<f32>>())?;
    let mut b = GraphBuilder::new(KvLayout::uniform(0, KV))?;
    let x = b.embed("embedding", &table, 1.0)?;
    let mut last = x;
    for dtype in dtypes {
        let weight = matrix(dtype, N_OUT, K, &mut noise)?;
        last = b.matmul(format!("product of {dtype}"), x, &weight, None)?;
    }
    finish(b, last)
}

/// Rows that are encoded; the others repeat them, since encoding is slow.
const N_ENCODED: usize = 4;

fn matrix(dtype: DType, n_out: usize, k: usize, noise: &mut CheckNoise) -> Result<Tensor, KernelError> {
    let row_bytes = dtype.row_bytes(k);
    let mut bytes = vec![0; N_ENCODED * row_bytes];
    match dtype.encoder() {
        Some(encode) => encode(&noise.many(N_ENCODED * k), &mut bytes),
        // any bits are a valid block; the mask keeps half-precision scales finite
        None => {
            for pair in bytes.chunks_mut(2) {
                pair.fill_with(|| (noise.next() * 128.0 + 128.0) as u8);
                pair.last_mut().into_iter().for_each(|upper| *upper &= 0x3B);
            }
        }
    }
    let bytes = bytes.iter().copied().cycle().take(n_out * row_bytes).collect();
    host(dtype, &[n_out, k], bytes)
}

/// Width of row-wise operations: registers and a remainder.
const WIDTH: usize = 104;

fn row_ops() -> Result<Graph, KernelError> {
    let mut noise = CheckNoise(2);
    let mut b = GraphBuilder::new(KvLayout::uniform(0, KV))?;
    let table = noise.tensor(&[N_VOCAB, 2 * WIDTH])?;
    let both = b.embed("embedding", &table, 2.0)?;
    let [x, y] = halves(&mut b, both, WIDTH)?;
    let (weight, bias) = (noise.tensor(&[WIDTH])?, noise.tensor(&[WIDTH])?);
    b.rms_norm("root mean square norm", x, &weight, 1e-5)?;
    b.layer_norm("layer norm", x, &weight, Some(&bias), 1e-5)?;
    b.layer_norm_groups("layer norm of groups", x, &weight, None, 1e-5, WIDTH / 2)?;
    b.add("addition", x, y)?;
    b.scale("factor", x, 0.37)?;
    b.softcap("cap", x, 3.0)?;
    b.hadamard("rotation of heads", x, 8)?;
    b.gaussian_top_k("largest elements", x, 0.6)?;
    b.match_rms("size of another row", both, y, 1e-5)?;
    mixtures(&mut b, both, x)?;
    for (name, act) in [
        ("sigmoid", Activation::Sigmoid),
        ("silu", Activation::Silu),
        ("gelu", Activation::Gelu),
        ("gelu by tanh", Activation::GeluTanh),
        ("squared relu", Activation::ReluSquared),
        ("xielu", Activation::XIelu { alpha_p: 0.7, alpha_n: 0.9, beta: 0.5, eps: -1e-6 }),
    ] {
        b.activate(name, x, act)?;
    }
    for (name, act) in [
        ("gated silu", Activation::Silu),
        ("gated gelu", Activation::GeluTanh),
        ("gated squared relu", Activation::ReluSquared),
        ("clamped swish", Activation::ClampedSwish { limit: 1.5 }),
    ] {
        b.glu(name, x, y, act)?;
    }
    routes(&mut b, both)?;
    let mut last = x;
    for (name, style) in [("rope of halves", RopeStyle::Half), ("rope of pairs", RopeStyle::Interleaved)] {
        last = b.rope(name, x, &rope(WIDTH / 26, 26, style))?;
    }
    finish(b, last)
}

/// Two groups of columns, to which mixtures are added: of themselves by the row's own factors, and of another value.
fn mixtures(b: &mut GraphBuilder, both: ValueId, x: ValueId) -> Result<(), KernelError> {
    let columns = Columns { n_groups: 1, stride: WIDTH, start: 3, width: 4 };
    let factors = b.columns("columns", x, columns)?;
    b.mix("mixture by row", both, both, MixFactors::OfRow(factors), WIDTH)?;
    b.mix("mixture", both, x, MixFactors::Same([0.0, -0.7].into()), WIDTH)?;
    Ok(())
}

const KV: KvLayerLayout =
    KvLayerLayout { n_kv_heads: 2, head_dim: 64, precision: KvDType::F16.both(), window: None };

/// Grouped-query attention, with and without a window.
fn attention(precision: KvPrecision) -> Result<Graph, KernelError> {
    let KvLayerLayout { n_kv_heads, head_dim, .. } = KV;
    let n_heads = 3 * n_kv_heads;
    let mut noise = CheckNoise(3);
    let mut b = GraphBuilder::new(KvLayout::uniform(1, KvLayerLayout { precision, ..KV }))?;
    let stride = (n_heads + 2 * n_kv_heads) * head_dim;
    let x = b.embed("embedding", &noise.tensor(&[N_VOCAB, stride])?, 1.0)?;
    let part = |first: usize, n: usize| Columns {
        n_groups: 1,
        stride,
        start: first * head_dim,
        width: n * head_dim,
    };
    let q = b.columns("columns", x, part(0, n_heads))?;
    let k = b.columns("columns", x, part(n_heads, n_kv_heads))?;
    let v = b.columns("columns", x, part(n_heads + n_kv_heads, n_kv_heads))?;
    let q = b.rotate_heads("rotation of queries", q, head_dim, precision.keys)?;
    let k = b.rotate_heads("rotation of keys", k, head_dim, precision.keys)?;
    let v = b.rotate_heads("rotation of values", v, head_dim, precision.values)?;
    b.kv_write("writing of keys and values", k, v, 0)?;
    let mut last = q;
    for window in [None, Some(9)] {
        let shape = AttentionShape {
            layer: 0,
            n_heads,
            n_kv_heads,
            head_dim,
            scale: 0.2,
            mask: Mask::Causal,
            window,
            softcap: window.map(|_| 4.0),
            sinks: window.map(|_| noise.many(n_heads).into()),
        };
        last = b.attention(format!("attention over {precision}"), q, shape)?;
    }
    finish(b, last)
}

fn experts(dtype: DType) -> Result<Graph, KernelError> {
    let (n_experts, n_used, width) = (5, 2, 64.max(dtype.block_len()));
    let mut noise = CheckNoise(5);
    let mut b = GraphBuilder::new(KvLayout::uniform(0, KV))?;
    let x = b.embed("embedding", &noise.tensor(&[N_VOCAB, width])?, 1.0)?;
    let of = Columns { n_groups: 1, stride: width, start: 0, width: n_experts };
    let logits = b.columns("columns", x, of)?;
    let routing =
        Routing { n_experts, n_used, renormalize: true, expert_scale: None, choice: ExpertChoice::default() };
    let route = b.moe_route("routing", logits, routing)?;
    let weights = (0..n_experts).map(|_| matrix(dtype, width, width, &mut noise));
    let weights = weights.collect::<Result<Vec<_>, _>>()?;
    let experts = Experts { weights: weights.into(), bias: None };
    let y = b.expert_matmul("product of experts", x, route, experts)?;
    let y = b.expert_sum("sum of experts", y, route)?;
    finish(b, y)
}

/// Every way of choosing experts but the plain one. `x` has at least `N_LOGITS` columns.
fn routes(b: &mut GraphBuilder, x: ValueId) -> Result<(), KernelError> {
    const N_LOGITS: usize = 12;
    let stride = b.width(x);
    let logits = b.columns("columns", x, Columns { n_groups: 1, stride, start: 0, width: N_LOGITS })?;
    let groups = |score| Some(GroupLimit { n_groups: 4, n_used: 2, score });
    let bias: Arc<[f32]> = (0..N_LOGITS).map(|i| 0.03 * (i * 5 % N_LOGITS) as f32).collect();
    let choices = [
        (ExpertScoring::Softmax, Some(bias.clone()), None, true),
        (ExpertScoring::Softmax, None, groups(GroupScore::Max), false),
        (ExpertScoring::Sigmoid, Some(bias), groups(GroupScore::TopTwo), true),
        (ExpertScoring::SparseMixer { jitter: 0.2 }, None, None, false),
    ];
    for (scoring, selection_bias, groups, renormalize) in choices {
        let choice = ExpertChoice { scoring, selection_bias, groups, sum_epsilon: 1e-6, scale: Some(2.5) };
        let routing = Routing { n_experts: N_LOGITS, n_used: 3, renormalize, expert_scale: None, choice };
        b.moe_route("routing by scores", logits, routing)?;
    }
    Ok(())
}

fn finish(mut b: GraphBuilder, last: ValueId) -> Result<Graph, KernelError> {
    let last = b.output_rows("rows of the output", last)?;
    b.finish(last)
}

fn halves(b: &mut GraphBuilder, x: ValueId, width: usize) -> Result<[ValueId; 2], KernelError> {
    let half = |start| Columns { n_groups: 1, stride: 2 * width, start, width };
    Ok([b.columns("columns", x, half(0))?, b.columns("columns", x, half(width))?])
}

fn rope(n_heads: usize, head_dim: usize, style: RopeStyle) -> RopeShape {
    let inv_freq = (0..head_dim / 2).map(|i| 1.0 / (1.0 + i as f32)).collect();
    RopeShape { n_heads, head_dim, n_rot: head_dim, inv_freq, axes: Arc::default(), mscale: 1.1, style }
}

fn tensor(dtype: DType, shape: &[usize], x: Vec<f32>) -> Result<Tensor, KernelError> {
    host(dtype, shape, x.iter().flat_map(|x| x.to_le_bytes()).collect())
}

fn host(dtype: DType, shape: &[usize], bytes: Vec<u8>) -> Result<Tensor, KernelError> {
    Tensor::host(&TensorView { name: "check", dtype, shape, data: SharedBytes::from_vec(bytes) })
}

/// A reproducible generator of numbers within -1..1.
struct CheckNoise(u64);

impl CheckNoise {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 40) as f32 / (1u64 << 23) as f32) - 1.0
    }

    fn many(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.next()).collect()
    }

    fn tensor(&mut self, shape: &[usize]) -> Result<Tensor, KernelError> {
        let n = shape.iter().product();
        tensor(DType::F32, shape, self.many(n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Kernels;

    #[test]
    fn the_kernels_of_every_level_are_correct_here() {
        for level in IsaLevel::present() {
            let make = |_| {
                let options = CpuOptions { threads: Some(1), level: Some(level), ..CpuOptions::default() };
                Ok(Box::new(Cpu::new(options)?) as Box<dyn Backend>)
            };
            assert_eq!(mismatch(level, &make).unwrap(), None, "{level}");
        }
        let verdict = highest_correct_level().unwrap();
        assert_eq!(verdict, IsaVerdict { level: IsaLevel::detect(), wrong: Vec::new() });
    }

    /// Kernels of which one gives wrong results.
    fn broken(level: IsaLevel, which: &str) -> Kernels {
        let mut kernels = Kernels::at(level);
        match which {
            "root mean square norm" => {
                kernels.rms_norm = |x, weight, eps, out| {
                    crate::ops::rms_norm::scalar(x, weight, eps, out);
                    *out.last_mut().unwrap() *= 1.01;
                };
            }
            "addition" => {
                kernels.add = |a, b, out| {
                    crate::ops::add::scalar(a, b, out);
                    // one lane is left out
                    out[8] = a[8];
                };
            }
            "gated silu" => {
                kernels.glu = |gate, up, act, out| {
                    crate::ops::glu::scalar(gate, up, act, out);
                    out.iter_mut().for_each(|x| *x += 0.001);
                };
            }
            other => unreachable!("{other}"),
        }
        kernels
    }

    #[test]
    fn a_wrong_kernel_disables_its_level_and_is_reported() {
        let top = IsaLevel::detect();
        for kernel in ["root mean square norm", "addition", "gated silu"] {
            let verdict = highest_correct_level_of(&|level| {
                let kernels = if level == top { broken(level, kernel) } else { Kernels::at(level) };
                Ok(Box::new(Cpu::with_kernels(kernels, 1)?))
            });
            let below = IsaLevel::present().filter(|level| *level < top).max().unwrap_or(IsaLevel::Portable);
            let wrong = vec![KernelMismatch { level: top, kernel: kernel.to_owned() }];
            assert_eq!(verdict.unwrap(), IsaVerdict { level: below, wrong: wrong.clone() });
            assert_eq!(wrong[0].to_string(), format!("{kernel} ({top})"));
        }
    }

    #[test]
    fn if_all_levels_are_wrong_the_lowest_is_used() {
        let verdict =
            highest_correct_level_of(&|level| Ok(Box::new(Cpu::with_kernels(broken(level, "addition"), 1)?)));
        let verdict = verdict.unwrap();
        assert_eq!(verdict.level, IsaLevel::Portable);
        assert_eq!(verdict.wrong.len(), IsaLevel::present().count());
    }
}
