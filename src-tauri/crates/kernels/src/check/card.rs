//! What of a graph a card is checked for, check by check, so that what passed one needs it no more.

use std::sync::Arc;

use weights::DType;

use super::{
    BATCHES, FLOAT, K, KV, LONG, N_VOCAB, Noise, PRODUCT, attention, capacity, compare_on, experts, finish,
    matrix, products, recurrent, rope, row_by_row, with_batches,
};
use crate::backend::{Backend, Retain};
use crate::compare::farthest;
use crate::error::KernelError;
use crate::graph::{
    Activation, AttentionShape, DeviceId, Graph, GraphBuilder, KvDType, KvLayerLayout, KvLayout, Mask, Op,
    RopeStyle,
};
use crate::matmul::packed;
use crate::scalar::Scalar;
use crate::tensor::Tensor;

/// Products of weights that a card has as halves, each off by up to 5e-4 of itself, in rows that may be several times
/// the mean.
const HALVED: f32 = 4e-3;
/// Attention over what a card has stored: where it rounds the other way, a value is one of 15 off.
const STORED: f32 = 3e-2;

/// One thing that a card may do wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CardCheck {
    RowByRow,
    Product(DType),
    Attention(KvDType),
    Recurrent,
    Experts(DType),
    /// a layer, with all that runs together in it
    Layer(KvDType),
}

impl CardCheck {
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
        for layer in &graph.kv().layers {
            checks.extend([Self::Attention(layer.dtype), Self::Layer(layer.dtype)]);
        }
        if !graph.kv().states.is_empty() {
            checks.push(Self::Recurrent);
        }
        checks.sort_unstable();
        checks.dedup();
        checks
    }

    /// By which it is remembered.
    pub fn name(self) -> String {
        match self {
            Self::RowByRow => "row by row".into(),
            Self::Product(dtype) => format!("product of {dtype}"),
            Self::Attention(kv) => format!("attention over {kv:?}"),
            Self::Recurrent => "recurrent layers".into(),
            Self::Experts(dtype) => format!("product of experts of {dtype}"),
            Self::Layer(kv) => format!("a layer over {kv:?}"),
        }
    }

    /// The first kernel that is wrong. `halves`: all products have operands of them.
    pub fn run(
        self,
        make: &dyn Fn() -> Box<dyn Backend>,
        halves: bool,
    ) -> Result<Option<String>, KernelError> {
        let of_weights = |dtype| if packed::is_exact(dtype) { PRODUCT } else { HALVED };
        let (graph, tolerance) = match self {
            Self::RowByRow => (row_by_row()?, FLOAT),
            Self::Product(dtype) => (products(std::iter::once(dtype))?, of_weights(dtype)),
            Self::Attention(kv) => (attention(kv)?, STORED),
            Self::Recurrent => (recurrent()?, FLOAT),
            Self::Experts(dtype) => (experts(dtype)?, of_weights(dtype)),
            Self::Layer(kv) => {
                let is_wrong = self.is_far_at_once(&Arc::new(layer(kv)?), &mut *make())?;
                return Ok(is_wrong.then(|| self.name()));
            }
        };
        let tolerance = if halves { tolerance.max(HALVED) } else { tolerance };
        compare_on(&Arc::new(graph), &mut *make(), self.lengths(), tolerance)
    }

    /// Of the batches: where there is attention, the last of them go over more than one stretch of the context.
    fn lengths(self) -> &'static [usize] {
        match self {
            Self::Attention(_) | Self::Layer(_) => &LONG,
            Self::RowByRow | Self::Product(_) | Self::Recurrent | Self::Experts(_) => &BATCHES,
        }
    }

    /// Whether the whole graph, run at once as a model's is, ends elsewhere than the reference.
    fn is_far_at_once(self, graph: &Arc<Graph>, device: &mut dyn Backend) -> Result<bool, KernelError> {
        let mut reference = Scalar::new();
        for backend in [&mut reference as &mut dyn Backend, &mut *device] {
            backend.prepare(graph, DeviceId(0), capacity(self.lengths()), Retain::Needed)?;
        }
        let (n_nodes, output) = (graph.nodes().len(), graph.output());
        with_batches(graph, self.lengths(), &mut |batches| {
            for batch in batches {
                for backend in [&mut reference as &mut dyn Backend, &mut *device] {
                    backend.begin(batch)?;
                    backend.run(0..n_nodes, batch, None)?;
                }
                let n_rows = batch.rows(graph.value(output).rows);
                let (expected, found) = (reference.read(output, n_rows), device.read(output, n_rows));
                if farthest(expected, found).is_some_and(|(_, off)| off > STORED) {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }
}

/// A layer as most models have it, whose steps are joined as theirs are.
fn layer(dtype: KvDType) -> Result<Graph, KernelError> {
    let KvLayerLayout { n_kv_heads, head_dim, .. } = KV;
    let n_heads = 2 * n_kv_heads;
    let mut noise = Noise(6);
    let mut b = GraphBuilder::new(KvLayout::uniform(1, KvLayerLayout { dtype, ..KV }))?;
    let mut weight =
        |rows, cols| -> Result<Tensor, KernelError> { matrix(DType::F16, rows, cols, &mut noise) };
    let [q, k, v] = [n_heads, n_kv_heads, n_kv_heads].map(|n| weight(n * head_dim, K));
    let [o, gate, up, down] = [(K, n_heads * head_dim), (K, K), (K, K), (K, K)].map(|(r, c)| weight(r, c));
    let norms = [Noise(7).tensor(&[K])?, Noise(8).tensor(&[K])?, Noise(9).tensor(&[K])?];
    let x = b.embed("embedding", &Noise(10).tensor(&[N_VOCAB, K])?, 1.0)?;
    let h = b.rms_norm("norm before attention", x, &norms[0], 1e-5)?;
    let q = b.matmul("queries", h, &q?, None)?;
    let k = b.matmul("keys", h, &k?, None)?;
    let v = b.matmul("values", h, &v?, None)?;
    let q = b.rope("rope of queries", q, &rope(n_heads, head_dim, RopeStyle::Half))?;
    let k = b.rope("rope of keys", k, &rope(n_kv_heads, head_dim, RopeStyle::Half))?;
    b.kv_write("writing of keys and values", k, v, 0)?;
    let shape = AttentionShape {
        layer: 0,
        n_heads,
        n_kv_heads,
        head_dim,
        scale: 0.005,
        mask: Mask::Causal,
        window: None,
        softcap: None,
        sinks: None,
    };
    let a = b.attention("attention", q, shape)?;
    let a = b.matmul("output of attention", a, &o?, None)?;
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
        let graph = layer(KvDType::F16).unwrap();
        let checks = CardCheck::of(&graph);
        let names: Vec<String> = checks.iter().map(|check| check.name()).collect();
        assert_eq!(
            names,
            ["row by row", "product of F32", "product of F16", "attention over F16", "a layer over F16"]
        );
        for check in checks {
            let right = check.run(&|| processor(false), false).unwrap();
            assert_eq!(right, None, "{check:?}");
            let expected = match check {
                CardCheck::RowByRow => Some("addition".to_owned()),
                CardCheck::Layer(_) => Some("a layer over F16".to_owned()),
                _ => None,
            };
            assert_eq!(check.run(&|| processor(true), false).unwrap(), expected, "{check:?}");
        }
    }
}
