//! The checks that a graph needs on a GPU. Each is recorded by name, so that it runs only once.

use std::sync::Arc;

use weights::DType;

use super::{
    CheckNoise, FLOAT_TOLERANCE, KV, MATMUL_TOLERANCE, N_VOCAB, PREFILL_TOKENS, attention, capacity,
    compare_on, experts, finish, matmuls, matrix, recurrent, rope, row_ops, with_batches,
};
use crate::backend::Backend;
use crate::compare::{largest_difference, nodes_until_kv_write};
use crate::error::KernelError;
use crate::graph::{
    Activation, AttentionShape, DeviceId, Graph, GraphBuilder, KvLayerLayout, KvLayout, KvPrecision, Mask,
    Op, RopeStyle,
};
use crate::lane_reduction::LaneReduction;
use crate::matmul::gpu_packing;
use crate::plan::layout::ValueLifetime;
use crate::precision::{MIN_PROMPT_ROWS, Precision};
use crate::scalar::Scalar;
use crate::tensor::Tensor;

/// Batch sizes in tokens: a prompt that fills a tile with a remainder, one token, a few.
const GPU_BATCH_TOKENS: [usize; 3] = [MIN_PROMPT_ROWS + 3, 1, 5];
/// Tolerance of weights stored in half precision: each is off by up to 5e-4 of itself, in rows of up to several times the
/// mean.
const HALF_TOLERANCE: f32 = 4e-3;
/// Tolerance of attention over stored values: a value that rounds the other way is off by 1/15.
const STORED_TOLERANCE: f32 = 3e-2;
/// Tolerance of a whole layer whose operands are rounded to half precision: one of its rows, whose attention almost ties,
/// differs by 0.026 with Q4_1. Operands that are mixed up differ by about the size of the values, which is 1.
const HALF_LAYER_TOLERANCE: f32 = 0.15;

/// One group of kernels that is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum GpuCheck {
    RowOps,
    MatMul(DType),
    Attention(KvPrecision),
    Recurrent,
    StateSpace,
    Experts(DType),
    /// a layer with such weights, including its fused steps
    Layer(KvPrecision, DType),
    /// as `Layer`, with norms of heads before their rotation
    NormedLayer(KvPrecision, DType),
}

impl GpuCheck {
    /// The checks that `graph` needs.
    pub fn of(graph: &Graph) -> Vec<Self> {
        let mut checks = vec![Self::RowOps];
        for node in graph.nodes() {
            match &node.op {
                Op::MatMul { weight, .. } | Op::Embed { table: weight, .. } => {
                    checks.push(Self::MatMul(weight.dtype()));
                }
                Op::ExpertMatMul { experts, .. } => {
                    checks.extend(experts.weights.iter().map(|weight| Self::Experts(weight.dtype())));
                }
                Op::Ssm { .. } => checks.push(Self::StateSpace),
                _ => {}
            }
        }
        let whole = if has_normed_heads(graph) { Self::NormedLayer } else { Self::Layer };
        let dtype = most_used_dtype(graph);
        for layer in &graph.kv().layers {
            checks.extend([Self::Attention(layer.precision), whole(layer.precision, dtype)]);
        }
        if !graph.kv().states.is_empty() {
            checks.push(Self::Recurrent);
        }
        checks.sort_unstable();
        checks.dedup();
        checks
    }

    /// Whether it multiplies matrices, whose operands `precision` rounds.
    pub fn depends_on(self, precision: Precision) -> bool {
        match self {
            Self::MatMul(_) | Self::Experts(_) | Self::Layer(..) | Self::NormedLayer(..) => {
                precision.in_use() != Precision::F32
            }
            // prompts of cooperative matrices attend by them too
            Self::Attention(_) => precision == Precision::Matrices,
            Self::RowOps | Self::Recurrent | Self::StateSpace => false,
        }
    }

    /// The name in the cache.
    pub fn name(self, precision: Precision, reduction: LaneReduction) -> String {
        let mut name = self.label();
        if self.depends_on(precision) {
            name += &format!(" in {}", precision.name());
        }
        match reduction {
            LaneReduction::Subgroups => name,
            LaneReduction::SharedMemory => name + " without subgroups",
        }
    }

    fn label(self) -> String {
        match self {
            Self::RowOps => "row by row".into(),
            Self::MatMul(dtype) => format!("product of {dtype}"),
            Self::Attention(kv) => format!("attention over {kv}"),
            Self::Recurrent => "recurrent layers".into(),
            Self::StateSpace => "state spaces".into(),
            Self::Experts(dtype) => format!("product of experts of {dtype}"),
            Self::Layer(kv, dtype) => format!("a layer of {dtype} over {kv}"),
            Self::NormedLayer(kv, dtype) => format!("a layer of {dtype} with normed heads over {kv}"),
        }
    }

    /// Returns the first wrong kernel on a GPU that multiplies in `precision`.
    pub fn run(
        self,
        open: &dyn Fn() -> Box<dyn Backend>,
        precision: Precision,
    ) -> Result<Option<String>, KernelError> {
        let of_weights = |dtype| if gpu_packing::is_exact(dtype) { MATMUL_TOLERANCE } else { HALF_TOLERANCE };
        let (graph, tolerance) = match self {
            Self::RowOps => (row_ops()?, FLOAT_TOLERANCE),
            Self::MatMul(dtype) => (matmuls(std::iter::once(dtype))?, of_weights(dtype)),
            Self::Attention(kv) => (attention(kv)?, STORED_TOLERANCE),
            Self::Recurrent => (recurrent::delta_rule()?, FLOAT_TOLERANCE),
            Self::StateSpace => (recurrent::state_space()?, FLOAT_TOLERANCE),
            Self::Experts(dtype) => (experts(dtype)?, of_weights(dtype)),
            Self::Layer(kv, dtype) | Self::NormedLayer(kv, dtype) => {
                let norms_heads = matches!(self, Self::NormedLayer(..));
                let graph = Arc::new(layer(kv, dtype, norms_heads)?);
                let tolerance =
                    if self.depends_on(precision) { HALF_LAYER_TOLERANCE } else { STORED_TOLERANCE };
                let is_wrong = self.is_wrong_as_a_whole(&graph, &mut *open(), tolerance)?;
                return Ok(is_wrong.then(|| self.label()));
            }
        };
        let tolerance = if self.depends_on(precision) { tolerance.max(HALF_TOLERANCE) } else { tolerance };
        compare_on(&Arc::new(graph), &mut *open(), (self.prefill(), &GPU_BATCH_TOKENS), tolerance)
    }

    /// Batches that fill the KV store before checks with attention.
    fn prefill(self) -> &'static [usize] {
        match self {
            Self::Attention(_) | Self::Layer(..) | Self::NormedLayer(..) => &PREFILL_TOKENS,
            Self::RowOps | Self::MatMul(_) | Self::Recurrent | Self::StateSpace | Self::Experts(_) => &[],
        }
    }

    /// Whether the output of the whole graph, run in one piece as a model's, differs from the reference.
    fn is_wrong_as_a_whole(
        self,
        graph: &Arc<Graph>,
        device: &mut dyn Backend,
        tolerance: f32,
    ) -> Result<bool, KernelError> {
        let mut reference = Scalar::new();
        let lengths = [self.prefill(), &GPU_BATCH_TOKENS].concat();
        for backend in [&mut reference as &mut dyn Backend, &mut *device] {
            backend.prepare(graph, DeviceId(0), capacity(&lengths), ValueLifetime::Needed)?;
        }
        let (n_nodes, output) = (graph.nodes().len(), graph.output());
        with_batches(graph, &lengths, &mut |batches| {
            for (i, batch) in batches.iter().enumerate() {
                let fills = i < self.prefill().len();
                for backend in [&mut reference as &mut dyn Backend, &mut *device] {
                    backend.begin(batch)?;
                    backend.run(if fills { nodes_until_kv_write(graph) } else { 0..n_nodes }, batch, None)?;
                }
                if fills {
                    continue;
                }
                let n_rows = batch.rows(graph.value(output).rows);
                let (expected, found) = (reference.read(output, n_rows), device.read(output, n_rows));
                if largest_difference(expected, found).is_some_and(|(_, off)| off > tolerance) {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }
}

/// Width of the checked layer: whole blocks of every format.
const K: usize = 256;

/// The most frequent weight format of a graph among those with an encoder.
fn most_used_dtype(graph: &Graph) -> DType {
    let mut counts: Vec<(DType, usize)> = Vec::new();
    for node in graph.nodes() {
        let Op::MatMul { weight, .. } = &node.op else { continue };
        match counts.iter_mut().find(|(dtype, _)| *dtype == weight.dtype()) {
            Some((_, n)) => *n += 1,
            None if weight.dtype().encoder().is_some() => counts.push((weight.dtype(), 1)),
            None => {}
        }
    }
    counts.into_iter().max_by_key(|(_, n)| *n).map_or(DType::F16, |(dtype, _)| dtype)
}

/// Whether any rotation follows a norm of heads.
fn has_normed_heads(graph: &Graph) -> bool {
    let nodes = graph.nodes();
    nodes.iter().any(|node| match &node.op {
        Op::Rope { x, .. } => {
            nodes.iter().any(|other| other.output == Some(*x) && matches!(other.op, Op::RmsNorm { .. }))
        }
        _ => false,
    })
}

/// A typical transformer layer, whose steps fuse as in models.
fn layer(kv: KvPrecision, dtype: DType, norms_heads: bool) -> Result<Graph, KernelError> {
    let KvLayerLayout { n_kv_heads, head_dim, .. } = KV;
    let n_heads = 2 * n_kv_heads;
    let mut noise = CheckNoise(6);
    let mut b = GraphBuilder::new(KvLayout::uniform(1, KvLayerLayout { precision: kv, ..KV }))?;
    let mut weight = |rows, cols| -> Result<Tensor, KernelError> { matrix(dtype, rows, cols, &mut noise) };
    let [q, k, v] = [n_heads, n_kv_heads, n_kv_heads].map(|n| weight(n * head_dim, K));
    let [o, gate, up, down] = [(K, n_heads * head_dim), (K, K), (K, K), (K, K)].map(|(r, c)| weight(r, c));
    let norms = [CheckNoise(7).tensor(&[K])?, CheckNoise(8).tensor(&[K])?, CheckNoise(9).tensor(&[K])?];
    let x = b.embed("embedding", &CheckNoise(10).tensor(&[N_VOCAB, K])?, 1.0)?;
    let h = b.rms_norm("norm before attention", x, &norms[0], 1e-5)?;
    let q = b.matmul("queries", h, &q?, None)?;
    let k = b.matmul("keys", h, &k?, None)?;
    let v = b.matmul("values", h, &v?, None)?;
    let (q, k) = match norms_heads {
        true => {
            let weights = CheckNoise(11).tensor(&[head_dim])?;
            let mut norm = |name, x| b.rms_norm_groups(name, x, Some(&weights), 1.0, 1e-5, head_dim);
            (norm("norm of queries", q)?, norm("norm of keys", k)?)
        }
        false => (q, k),
    };
    let q = b.rope("rope of queries", q, &rope(n_heads, head_dim, RopeStyle::Half))?;
    let k = b.rope("rope of keys", k, &rope(n_kv_heads, head_dim, RopeStyle::Half))?;
    let q = b.rotate_heads("rotation of queries", q, head_dim, kv.keys)?;
    let k = b.rotate_heads("rotation of keys", k, head_dim, kv.keys)?;
    let v = b.rotate_heads("rotation of values", v, head_dim, kv.values)?;
    b.kv_write("writing of keys and values", k, v, 0)?;
    let shape = AttentionShape {
        layer: 0,
        n_heads,
        n_kv_heads,
        head_dim,
        scale: if norms_heads { 0.2 } else { 0.005 },
        mask: Mask::Causal,
        window: None,
        softcap: None,
        sinks: None,
    };
    let a = b.attention("attention", q, shape)?;
    let a = b.rotate_heads("rotation back", a, head_dim, kv.values)?;
    let mut a = b.matmul("output of attention", a, &o?, None)?;
    if norms_heads {
        // models that norm heads may also norm the residual branch
        a = b.rms_norm("norm of attention", a, &norms[2], 1e-5)?;
    }
    let x = b.add("residual of attention", x, a)?;
    let h = b.rms_norm("norm after attention", x, &norms[1], 1e-5)?;
    let gate = b.matmul("gate", h, &gate?, None)?;
    let up = b.matmul("up", h, &up?, None)?;
    let h = b.glu("gated unit", gate, up, Activation::Silu)?;
    let h = b.matmul("down", h, &down?, None)?;
    let x = b.add("residual", x, h)?;
    let x = b.rms_norm("last norm", x, &norms[2], 1e-5)?;
    finish(b, x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::Cpu;
    use crate::cpu::isa::IsaLevel;
    use crate::graph::KvDType;
    use crate::ops::Kernels;

    /// The CPU in place of a GPU, optionally with a wrong kernel.
    fn cpu_backend(is_wrong: bool) -> Box<dyn Backend> {
        let mut kernels = Kernels::at(IsaLevel::Portable);
        if is_wrong {
            kernels.add = |a, b, out| {
                crate::ops::add::scalar(a, b, out);
                out[8] = a[8];
            };
        }
        Box::new(Cpu::with_kernels(kernels, 1).unwrap())
    }

    #[test]
    fn a_graph_lists_its_checks_and_a_wrong_kernel_is_found() {
        let normed = GpuCheck::of(&layer(KvDType::F16.both(), DType::Q8_0, true).unwrap());
        assert!(normed.contains(&GpuCheck::NormedLayer(KvDType::F16.both(), DType::Q8_0)), "{normed:?}");
        let graph = layer(KvDType::F16.both(), DType::F16, false).unwrap();
        let checks = GpuCheck::of(&graph);
        let names: Vec<String> =
            checks.iter().map(|check| check.name(Precision::Auto, LaneReduction::Subgroups)).collect();
        assert_eq!(
            names,
            [
                "row by row",
                "product of F32",
                "product of F16",
                "attention over F16",
                "a layer of F16 over F16"
            ]
        );
        for check in checks {
            let right = check.run(&|| cpu_backend(false), Precision::F32).unwrap();
            assert_eq!(right, None, "{check:?}");
            let expected = match check {
                GpuCheck::RowOps => Some("addition".to_owned()),
                GpuCheck::Layer(..) => Some("a layer of F16 over F16".to_owned()),
                _ => None,
            };
            assert_eq!(check.run(&|| cpu_backend(true), Precision::F32).unwrap(), expected, "{check:?}");
        }
    }
}
