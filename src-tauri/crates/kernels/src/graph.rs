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

/// Nonlinearity, of a gated unit or by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Activation {
    /// x
    Identity,
    /// σ(x)
    Sigmoid,
    /// x · σ(x)
    Silu,
    /// x · Φ(x), with the error function
    Gelu,
    /// tanh approximation of GELU
    GeluTanh,
    /// gated units only: g·σ(1.702·g) · (u + 1) with g = min(gate, limit) and u = up within ±limit (gpt-oss)
    ClampedSwish { limit: f32 },
}

/// How keys and values are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    /// the layer's attention sees no further back than so many positions; None: all
    pub window: Option<usize>,
}

/// How long a layer keeps its keys and values, and with that which pages hold them: those of different kinds are
/// numbered apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retention {
    /// all positions
    All,
    /// as many as the longest window of the graph reaches
    Window,
}

impl KvLayerLayout {
    pub fn retention(&self) -> Retention {
        match self.window {
            None => Retention::All,
            Some(_) => Retention::Window,
        }
    }

    /// The same in fewer bits, as positions lie that have aged. None: a window lets go of them anyway, there would be
    /// no fewer, or heads are no whole blocks.
    pub fn aged(&self) -> Option<Self> {
        match self.retention() {
            Retention::All => crate::ops::kv_write::aged(*self),
            Retention::Window => None,
        }
    }

    /// Bytes of this layer in one page.
    pub fn page_bytes(&self) -> usize {
        2 * self.n_kv_heads * PAGE_LEN * crate::ops::kv_write::row_bytes(self.dtype, self.head_dim)
    }
}

/// What a sequence keeps: paged keys and values, where a page holds `page_len` positions of every layer of its kind,
/// and the states of recurrent layers, one slot for all of them together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KvLayout {
    /// tokens per page; always `PAGE_LEN`
    pub page_len: usize,
    pub layers: Vec<KvLayerLayout>,
    /// floats that each recurrent layer keeps of the past
    pub states: Vec<usize>,
}

/// Tokens per page: small enough that forks share most of a prompt, large enough that a page of one head is
/// several cache lines; attention kernels are written for it.
pub const PAGE_LEN: usize = 32;

/// Stands in a page table where a window has passed.
pub const NO_PAGE: u32 = u32::MAX;

impl KvLayout {
    /// All layers that keep everything, and there are some, can do so in fewer bits.
    pub fn can_age(&self) -> bool {
        let mut all = self.layers.iter().filter(|layer| layer.retention() == Retention::All).peekable();
        all.peek().is_some() && all.all(|layer| layer.aged().is_some())
    }

    /// The longest window; None: every layer keeps all positions.
    pub fn window(&self) -> Option<usize> {
        self.layers.iter().filter_map(|layer| layer.window).max()
    }

    /// `n_layers` equal layers.
    pub fn uniform(n_layers: usize, layer: KvLayerLayout) -> Self {
        Self { page_len: PAGE_LEN, layers: vec![layer; n_layers], states: Vec::new() }
    }
}

/// Which positions of a sequence a row's attention looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mask {
    /// its own and those before
    #[default]
    Causal,
    /// all that the sequence has after the batch: a text goes through in one
    Bidirectional,
}

/// Query heads against the stored keys and values of one layer.
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionShape {
    /// index into `KvLayout::layers`
    pub layer: usize,
    pub n_heads: usize,
    pub n_kv_heads: usize,
    pub head_dim: usize,
    /// factor on q·k before the softmax
    pub scale: f32,
    pub mask: Mask,
    /// position i sees j with |i - j| < window, of those that the mask leaves; all of them without
    pub window: Option<usize>,
    /// scores become cap · tanh(score / cap) before the softmax
    pub softcap: Option<f32>,
    /// (n_heads) a further score of each head that takes part in the softmax and has no value
    pub sinks: Option<Arc<[f32]>>,
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

/// What picks the row of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    Token,
    Position,
    /// The same one for every row.
    First,
}

/// Some columns of every row: of each of `n_groups` groups of `stride` columns those from `start`, `width` of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    pub n_groups: usize,
    pub stride: usize,
    pub start: usize,
    pub width: usize,
}

/// How a router's logits choose experts: softmax over all of them, the `n_used` largest (of equals the first).
#[derive(Clone, Debug, PartialEq)]
pub struct Routing {
    pub n_experts: usize,
    pub n_used: usize,
    /// weights of the chosen ones are divided by their sum
    pub renormalize: bool,
    /// (n_experts) factor on the weight of each, after that
    pub expert_scale: Option<Arc<[f32]>>,
}

/// One matrix for each expert, all of one shape.
#[derive(Clone, Debug)]
pub struct Experts {
    /// (n_experts) of `[out, in]`
    pub weights: Arc<[Tensor]>,
    /// `[n_experts, out]`
    pub bias: Option<Tensor>,
}

/// Depthwise causal convolution over time: out[t] = act(Σⱼ weight[j] · x[t − K + 1 + j] + bias), channel by channel.
/// The state holds the last K − 1 inputs, oldest first: (K − 1, channels).
#[derive(Clone, Debug, PartialEq)]
pub struct ConvShape {
    /// index into `KvLayout::states`
    pub state: usize,
    /// (channels, K), the last tap is the current token's
    pub weight: Arc<[f32]>,
    pub kernel: usize,
    /// (channels)
    pub bias: Option<Arc<[f32]>>,
    pub act: Activation,
}

/// Gated delta rule (Yang et al. 2024, arXiv 2412.06464) over heads of a matrix state S (k_dim, v_dim), in f32:
/// S ← S·exp(g); d = β·(v − Sᵀk); S ← S + k·dᵀ; out = Sᵀq, where q and k are scaled to length 1 (eps 1e-6 under the
/// root), q besides by k_dim^-½, β = σ(beta) and g = decay · softplus(alpha + dt_bias).
/// The state holds every head's S, one after another.
#[derive(Clone, Debug, PartialEq)]
pub struct DeltaShape {
    /// index into `KvLayout::states`
    pub state: usize,
    pub n_k_heads: usize,
    /// a multiple of `n_k_heads`
    pub n_v_heads: usize,
    pub k_dim: usize,
    pub v_dim: usize,
    pub order: HeadOrder,
    /// (n_v_heads) negative: −exp(A_log)
    pub decay: Arc<[f32]>,
    /// (n_v_heads)
    pub dt_bias: Arc<[f32]>,
}

/// Which key head value head j goes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadOrder {
    /// j / (n_v_heads / n_k_heads): Hugging Face
    Grouped,
    /// j % n_k_heads: GGUF
    Tiled,
}

/// The closed list of operations. Shapes: `(rows, width)`; weights are `[out, in]`.
#[derive(Clone, Debug)]
pub enum Op {
    /// rows of `table` [n, d] times `scale` → (tokens, d)
    Embed { table: Tensor, scale: f32, by: Lookup },
    /// x / rms(x) · (weight + offset), for each group of `width` columns; `weight` [width], 1 without
    RmsNorm { x: ValueId, weight: Option<Tensor>, offset: f32, eps: f32, width: usize },
    /// (x − mean) / √(variance + eps) · weight + bias; both [width]
    LayerNorm { x: ValueId, weight: Tensor, bias: Option<Tensor>, eps: f32 },
    /// x · weightᵀ + bias; `weight` [out, in], `bias` [out]
    MatMul { x: ValueId, weight: Tensor, bias: Option<Tensor> },
    /// rotary embedding by the batch's positions
    Rope { x: ValueId, rope: RopeShape },
    /// x · (1 + beta · ln(1 + ⌊position / original_context⌋))
    PositionScale { x: ValueId, beta: f32, original_context: u32 },
    /// k, v (tokens, n_kv_heads · head_dim) into the store at each row's position; no output value
    KvWrite { k: ValueId, v: ValueId, layer: usize },
    /// q (tokens, n_heads · head_dim) → same shape
    Attention { q: ValueId, attention: AttentionShape },
    /// a + b
    Add { a: ValueId, b: ValueId },
    /// x · factor
    Scale { x: ValueId, factor: f32 },
    /// cap · tanh(x / cap)
    Softcap { x: ValueId, cap: f32 },
    /// act(x)
    Activate { x: ValueId, act: Activation },
    /// act(gate) · up
    Glu { gate: ValueId, up: ValueId, act: Activation },
    /// σ(gate) · x with one gate for each row: gate (rows, 1)
    RowGate { gate: ValueId, x: ValueId },
    /// (rows, n_groups · stride) → (rows, n_groups · width)
    Columns { x: ValueId, columns: Columns },
    /// router logits (tokens, n_experts) → (tokens, 2 · n_used): numbers of the chosen experts, largest first, then
    /// their weights
    MoeRoute { logits: ValueId, routing: Routing },
    /// each chosen expert's product: x (tokens, in), or (tokens, n_used · in) with a part for each →
    /// (tokens, n_used · out); `route` is what `MoeRoute` made
    ExpertMatMul { x: ValueId, route: ValueId, experts: Experts },
    /// x (tokens, n_used · w) → (tokens, w): the sum weighted by `route`
    ExpertSum { x: ValueId, route: ValueId },
    /// x (tokens, channels) → same shape; reads and advances the sequence's state
    ShortConv { x: ValueId, conv: ConvShape },
    /// qkv (tokens, 2 · n_k_heads · k_dim + n_v_heads · v_dim), beta and alpha (tokens, n_v_heads) →
    /// (tokens, n_v_heads · v_dim); reads and advances the sequence's state
    DeltaNet { qkv: ValueId, beta: ValueId, alpha: ValueId, delta: DeltaShape },
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
            | Op::LayerNorm { x, .. }
            | Op::MatMul { x, .. }
            | Op::Rope { x, .. }
            | Op::PositionScale { x, .. }
            | Op::Attention { q: x, .. }
            | Op::Scale { x, .. }
            | Op::Softcap { x, .. }
            | Op::Activate { x, .. }
            | Op::Columns { x, .. }
            | Op::MoeRoute { logits: x, .. }
            | Op::ShortConv { x, .. }
            | Op::OutputRows { x }
            | Op::Copy { x } => f(*x),
            Op::KvWrite { k: a, v: b, .. }
            | Op::Add { a, b }
            | Op::Glu { gate: a, up: b, .. }
            | Op::RowGate { gate: a, x: b }
            | Op::ExpertMatMul { x: a, route: b, .. }
            | Op::ExpertSum { x: a, route: b } => {
                f(*a);
                f(*b);
            }
            Op::DeltaNet { qkv, beta, alpha, .. } => {
                f(*qkv);
                f(*beta);
                f(*alpha);
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
    /// device of each recurrent layer's state
    pub(crate) state_devices: Vec<DeviceId>,
    pub(crate) output: ValueId,
    pub(crate) n_vocab_in: usize,
    /// rows of the smallest table of learned positions
    pub(crate) n_positions: Option<usize>,
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

    /// Where each recurrent layer's state lives.
    pub fn state_devices(&self) -> &[DeviceId] {
        &self.state_devices
    }

    /// The value that `Executor::output` returns: (outputs, width).
    pub fn output(&self) -> ValueId {
        self.output
    }

    /// Rows of the embedding table: token ids must be below it.
    pub fn n_vocab_in(&self) -> usize {
        self.n_vocab_in
    }

    /// Positions must be below it; None: there is no table of positions.
    pub fn n_positions(&self) -> Option<usize> {
        self.n_positions
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
