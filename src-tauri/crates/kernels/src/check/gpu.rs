//! What of a graph a card is checked for, check by check, so that what passed one needs it no more.

use std::sync::Arc;

use weights::DType;

use super::{
    BATCHES, BEFORE, FLOAT, KV, N_VOCAB, Noise, PRODUCT, attention, capacity, compare_on, experts, finish,
    matrix, products, recurrent, rope, row_by_row, with_batches,
};
use crate::backend::Backend;
use crate::compare::{largest_difference, nodes_until_kv_write};
use crate::error::KernelError;
use crate::graph::{
    Activation, AttentionShape, DeviceId, Graph, GraphBuilder, KvDType, KvLayerLayout, KvLayout, Mask, Op,
    RopeStyle,
};
use crate::lane_reduction::LaneReduction;
use crate::matmul::gpu_packing;
use crate::plan::layout::ValueLifetime;
use crate::precision::Precision;
use crate::scalar::Scalar;
use crate::tensor::Tensor;

/// Products of weights that a card has as halves, each off by up to 5e-4 of itself, in rows that may be several times
/// the mean.
const HALVED: f32 = 4e-3;
/// Attention over what a card has stored: where it rounds the other way, a value is one of 15 off.
const STORED: f32 = 3e-2;

/// One thing that a card may do wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum GpuCheck {
    RowByRow,
    Product(DType),
    Attention(KvDType),
    Recurrent,
    Experts(DType),
    /// a layer of such weights, with all that runs together in it
    Layer(KvDType, DType),
    /// the same, of heads that are normed before they are rotated
    NormedLayer(KvDType, DType),
}

impl GpuCheck {
    /// What occurs in `graph`.
    pub fn of(graph: &Graph) -> Vec<Self> {
        let mut checks = vec![Self::RowByRow];
        for node in graph.nodes() {
            match &node.op {
                Op::MatMul { weight, .. } | Op::Embed { table: weight, .. } => {
                    checks.push(Self::Product(weight.dtype()));
                }
                Op::ExpertMatMul { experts, .. } => {
                    checks.extend(experts.weights.iter().map(|weight| Self::Experts(weight.dtype())));
                }
                _ => {}
            }
        }
        let whole = if has_normed_heads(graph) { Self::NormedLayer } else { Self::Layer };
        let dtype = most_used(graph);
        for layer in &graph.kv().layers {
            checks.extend([Self::Attention(layer.dtype), whole(layer.dtype, dtype)]);
        }
        if !graph.kv().states.is_empty() {
            checks.push(Self::Recurrent);
        }
        checks.sort_unstable();
        checks.dedup();
        checks
    }

    /// Whether it has products, whose operands are rounded in `precision`.
    pub fn depends_on(self, precision: Precision) -> bool {
        let has_products = match self {
            Self::Product(_) | Self::Experts(_) | Self::Layer(..) | Self::NormedLayer(..) => true,
            Self::RowByRow | Self::Attention(_) | Self::Recurrent => false,
        };
        has_products && precision.in_use() != Precision::F32
    }

    /// By which it is remembered.
    pub fn name(self, precision: Precision, sharing: LaneReduction) -> String {
        let mut name = self.what();
        if self.depends_on(precision) {
            name += &format!(" in {}", precision.name());
        }
        match sharing {
            LaneReduction::Subgroups => name,
            LaneReduction::SharedMemory => name + " without subgroups",
        }
    }

    fn what(self) -> String {
        match self {
            Self::RowByRow => "row by row".into(),
            Self::Product(dtype) => format!("product of {dtype}"),
            Self::Attention(kv) => format!("attention over {kv:?}"),
            Self::Recurrent => "recurrent layers".into(),
            Self::Experts(dtype) => format!("product of experts of {dtype}"),
            Self::Layer(kv, dtype) => format!("a layer of {dtype} over {kv:?}"),
            Self::NormedLayer(kv, dtype) => format!("a layer of {dtype} with normed heads over {kv:?}"),
        }
    }

    /// The first kernel that is wrong on a card that multiplies in `precision`.
    pub fn run(
        self,
        make: &dyn Fn() -> Box<dyn Backend>,
        precision: Precision,
    ) -> Result<Option<String>, KernelError> {
        let of_weights = |dtype| if gpu_packing::is_exact(dtype) { PRODUCT } else { HALVED };
        let (graph, tolerance) = match self {
            Self::RowByRow => (row_by_row()?, FLOAT),
            Self::Product(dtype) => (products(std::iter::once(dtype))?, of_weights(dtype)),
            Self::Attention(kv) => (attention(kv)?, STORED),
            Self::Recurrent => (recurrent()?, FLOAT),
            Self::Experts(dtype) => (experts(dtype)?, of_weights(dtype)),
            Self::Layer(kv, dtype) | Self::NormedLayer(kv, dtype) => {
                let norms_heads = matches!(self, Self::NormedLayer(..));
                let graph = Arc::new(layer(kv, dtype, norms_heads)?);
                let is_wrong = self.is_far_at_once(&graph, &mut *make())?;
                return Ok(is_wrong.then(|| self.what()));
            }
        };
        let tolerance = if self.depends_on(precision) { tolerance.max(HALVED) } else { tolerance };
        compare_on(&Arc::new(graph), &mut *make(), self.before(), tolerance)
    }

    /// Where there is attention, batches go over more than one stretch of the context.
    fn before(self) -> &'static [usize] {
        match self {
            Self::Attention(_) | Self::Layer(..) | Self::NormedLayer(..) => &BEFORE,
            Self::RowByRow | Self::Product(_) | Self::Recurrent | Self::Experts(_) => &[],
        }
    }

    /// Whether the whole graph, run at once as a model's is, ends elsewhere than the reference.
    fn is_far_at_once(self, graph: &Arc<Graph>, device: &mut dyn Backend) -> Result<bool, KernelError> {
        let mut reference = Scalar::new();
        let lengths = [self.before(), &BATCHES].concat();
        for backend in [&mut reference as &mut dyn Backend, &mut *device] {
            backend.prepare(graph, DeviceId(0), capacity(&lengths), ValueLifetime::Needed)?;
        }
        let (n_nodes, output) = (graph.nodes().len(), graph.output());
        with_batches(graph, &lengths, &mut |batches| {
            for (i, batch) in batches.iter().enumerate() {
                let fills = i < self.before().len();
                for backend in [&mut reference as &mut dyn Backend, &mut *device] {
                    backend.begin(batch)?;
                    backend.run(if fills { nodes_until_kv_write(graph) } else { 0..n_nodes }, batch, None)?;
                }
                if fills {
                    continue;
                }
                let n_rows = batch.rows(graph.value(output).rows);
                let (expected, found) = (reference.read(output, n_rows), device.read(output, n_rows));
                if largest_difference(expected, found).is_some_and(|(_, off)| off > STORED) {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }
}

/// Width of a layer that is checked: whole blocks of every format.
const K: usize = 256;

/// The format of most of a graph's matrices that can be made up.
fn most_used(graph: &Graph) -> DType {
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

/// Whether norms of heads are followed by rotations.
fn has_normed_heads(graph: &Graph) -> bool {
    let nodes = graph.nodes();
    nodes.iter().any(|node| match &node.op {
        Op::Rope { x, .. } => {
            nodes.iter().any(|other| other.output == Some(*x) && matches!(other.op, Op::RmsNorm { .. }))
        }
        _ => false,
    })
}

/// A layer as most models have it, whose steps are joined as theirs are.
fn layer(kv: KvDType, dtype: DType, norms_heads: bool) -> Result<Graph, KernelError> {
    let KvLayerLayout { n_kv_heads, head_dim, .. } = KV;
    let n_heads = 2 * n_kv_heads;
    let mut noise = Noise(6);
    let mut b = GraphBuilder::new(KvLayout::uniform(1, KvLayerLayout { dtype: kv, ..KV }))?;
    let mut weight = |rows, cols| -> Result<Tensor, KernelError> { matrix(dtype, rows, cols, &mut noise) };
    let [q, k, v] = [n_heads, n_kv_heads, n_kv_heads].map(|n| weight(n * head_dim, K));
    let [o, gate, up, down] = [(K, n_heads * head_dim), (K, K), (K, K), (K, K)].map(|(r, c)| weight(r, c));
    let norms = [Noise(7).tensor(&[K])?, Noise(8).tensor(&[K])?, Noise(9).tensor(&[K])?];
    let x = b.embed("embedding", &Noise(10).tensor(&[N_VOCAB, K])?, 1.0)?;
    let h = b.rms_norm("norm before attention", x, &norms[0], 1e-5)?;
    let q = b.matmul("queries", h, &q?, None)?;
    let k = b.matmul("keys", h, &k?, None)?;
    let v = b.matmul("values", h, &v?, None)?;
    let (q, k) = match norms_heads {
        true => {
            let weights = Noise(11).tensor(&[head_dim])?;
            let mut norm = |name, x| b.rms_norm_groups(name, x, Some(&weights), 1.0, 1e-5, head_dim);
            (norm("norm of queries", q)?, norm("norm of keys", k)?)
        }
        false => (q, k),
    };
    let q = b.rope("rope of queries", q, &rope(n_heads, head_dim, RopeStyle::Half))?;
    let k = b.rope("rope of keys", k, &rope(n_kv_heads, head_dim, RopeStyle::Half))?;
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
    let mut a = b.matmul("output of attention", a, &o?, None)?;
    if norms_heads {
        // models that norm heads may norm what is added too
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
    use crate::ops::Kernels;

    /// The processor in place of a card, with one kernel that may be wrong.
    fn processor(spoil: bool) -> Box<dyn Backend> {
        let mut kernels = Kernels::at(IsaLevel::Portable);
        if spoil {
            kernels.add = |a, b, out| {
                crate::ops::add::scalar(a, b, out);
                out[8] = a[8];
            };
        }
        Box::new(Cpu::with_kernels(kernels, 1).unwrap())
    }

    #[test]
    fn a_graph_names_what_it_needs_checked_and_a_wrong_kernel_is_found() {
        let normed = GpuCheck::of(&layer(KvDType::F16, DType::Q8_0, true).unwrap());
        assert!(normed.contains(&GpuCheck::NormedLayer(KvDType::F16, DType::Q8_0)), "{normed:?}");
        let graph = layer(KvDType::F16, DType::F16, false).unwrap();
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
            let right = check.run(&|| processor(false), Precision::F32).unwrap();
            assert_eq!(right, None, "{check:?}");
            let expected = match check {
                GpuCheck::RowByRow => Some("addition".to_owned()),
                GpuCheck::Layer(..) => Some("a layer of F16 over F16".to_owned()),
                _ => None,
            };
            assert_eq!(check.run(&|| processor(true), Precision::F32).unwrap(), expected, "{check:?}");
        }
    }
}
