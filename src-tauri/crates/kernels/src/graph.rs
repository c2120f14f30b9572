//! The forward pass as data: a flat list of operations in execution order, every shape checked as it is built.
//! The same graph runs on every backend. Knows nothing of rows: how many tokens there are is a run-time input.

use std::sync::Arc;

use crate::error::KernelError;
use crate::tensor::Tensor;

mod build;
pub use build::{GraphBuilder, MAX_HEAD_DIM};

/// Index into `Graph::values`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub u32);

impl ValueId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Index into the devices of the executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceId(pub usize);

/// How many rows a value has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// One for each token of the batch.
    Tokens,
    /// One for each token whose logits are wanted.
    Outputs,
}

/// A (rows, width) matrix of f32 activations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    pub rows: Rows,
    pub width: usize,
    pub device: DeviceId,
}

/// Which elements of a head form a rotated pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RopeStyle {
    /// (2i, 2i+1): GGUF files of the llama family.
    Interleaved,
    /// (i, i + n_rot/2): Hugging Face order.
    Half,
}

/// Nonlinearity of a gated unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// x · sigmoid(x)
    Silu,
    /// tanh approximation of GELU
    GeluTanh,
}

/// How keys and values are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KvDType {
    F32,
    F16,
    Q8_0,
    Q4_0,
}

/// What one layer keeps for each position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvLayerLayout {
    pub n_kv_heads: usize,
    pub head_dim: usize,
    pub dtype: KvDType,
}

/// The paged store: a page holds `page_len` positions of every layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KvLayout {
    /// tokens per page; always `PAGE_LEN`
    pub page_len: usize,
    pub layers: Vec<KvLayerLayout>,
}

/// Tokens per page: small enough that forks share most of a prompt, large enough that a page of one head is
/// several cache lines; attention kernels are written for it.
pub const PAGE_LEN: usize = 32;

impl KvLayout {
    /// `n_layers` equal layers.
    pub fn uniform(n_layers: usize, layer: KvLayerLayout) -> Self {
        Self { page_len: PAGE_LEN, layers: vec![layer; n_layers] }
    }
}

/// Query heads against the stored keys and values of one layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionShape {
    /// index into `KvLayout::layers`
    pub layer: usize,
    pub n_heads: usize,
    pub n_kv_heads: usize,
    pub head_dim: usize,
    /// factor on q·k before the softmax
    pub scale: f32,
    /// position i sees j with i - window < j ≤ i; all j ≤ i without
    pub window: Option<usize>,
}

/// Rotation of the first `n_rot` elements of every head by position · inv_freq.
#[derive(Clone, Debug, PartialEq)]
pub struct RopeShape {
    pub n_heads: usize,
    pub head_dim: usize,
    pub n_rot: usize,
    /// (n_rot / 2) angles per position, in radians
    pub inv_freq: Arc<[f32]>,
    /// factor on sine and cosine (YaRN); 1 otherwise
    pub mscale: f32,
    pub style: RopeStyle,
}

/// The closed list of operations. Shapes: `(rows, width)`; weights are `[out, in]`.
#[derive(Clone, Debug)]
pub enum Op {
    /// token ids → (tokens, d): rows of `table` [n_vocab, d] times `scale`
    Embed { table: Tensor, scale: f32 },
    /// x / rms(x) · weight, `weight` [width]
    RmsNorm { x: ValueId, weight: Tensor, eps: f32 },
    /// x · weightᵀ + bias; `weight` [out, in], `bias` [out]
    MatMul { x: ValueId, weight: Tensor, bias: Option<Tensor> },
    /// rotary embedding by the batch's positions
    Rope { x: ValueId, rope: RopeShape },
    /// k, v (tokens, n_kv_heads · head_dim) into the store at each row's position; no output value
    KvWrite { k: ValueId, v: ValueId, layer: usize },
    /// q (tokens, n_heads · head_dim) → same shape
    Attention { q: ValueId, attention: AttentionShape },
    /// a + b
    Add { a: ValueId, b: ValueId },
    /// act(gate) · up
    Glu { gate: ValueId, up: ValueId, act: Activation },
    /// (tokens, w) → (outputs, w): the rows whose logits are wanted
    OutputRows { x: ValueId },
    /// the same value on another device
    Copy { x: ValueId },
}

impl Op {
    /// Calls `f` with each value this operation reads.
    pub fn for_each_input(&self, mut f: impl FnMut(ValueId)) {
        match self {
            Op::Embed { .. } => {}
            Op::RmsNorm { x, .. }
            | Op::MatMul { x, .. }
            | Op::Rope { x, .. }
            | Op::OutputRows { x }
            | Op::Copy { x } => f(*x),
            Op::Attention { q, .. } => f(*q),
            Op::KvWrite { k: a, v: b, .. } | Op::Add { a, b } | Op::Glu { gate: a, up: b, .. } => {
                f(*a);
                f(*b);
            }
        }
    }
}

/// One operation with its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// "layers.3.ffn.down": errors, profiles and `Compare` speak of it
    pub name: String,
    pub device: DeviceId,
    pub op: Op,
    /// None for `KvWrite` only
    pub output: Option<ValueId>,
}

/// A whole forward pass, checked. Made by `GraphBuilder`.
#[derive(Clone, Debug)]
pub struct Graph {
    pub(crate) values: Vec<Value>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) kv: KvLayout,
    /// device of each KV layer
    pub(crate) kv_devices: Vec<DeviceId>,
    pub(crate) output: ValueId,
    pub(crate) n_vocab_in: usize,
}

impl Graph {
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// In execution order.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub fn kv(&self) -> &KvLayout {
        &self.kv
    }

    /// Where each KV layer lives.
    pub fn kv_devices(&self) -> &[DeviceId] {
        &self.kv_devices
    }

    /// The value that `Executor::output` returns: (outputs, width).
    pub fn output(&self) -> ValueId {
        self.output
    }

    /// Rows of the embedding table: token ids must be below it.
    pub fn n_vocab_in(&self) -> usize {
        self.n_vocab_in
    }

    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.index()]
    }

    /// One more than the largest device used.
    pub fn n_devices(&self) -> usize {
        self.nodes.iter().map(|n| n.device.0 + 1).max().unwrap_or(0)
    }

    /// The first error of a builder method, spelled once.
    pub(crate) fn mismatch(
        node: &str,
        what: &'static str,
        expected: impl ToString,
        found: impl ToString,
    ) -> KernelError {
        KernelError::Shape {
            node: node.to_owned(),
            what,
            expected: expected.to_string(),
            found: found.to_string(),
        }
    }
}
