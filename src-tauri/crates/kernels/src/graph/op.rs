//! The closed list of operations with their parameters. Shapes are `(rows, width)`; weights are `[out, in]`.

use std::sync::Arc;

use super::{Routing, ValueId};
use crate::tensor::Tensor;

/// Coordinates of a row for rotations: time, row and column.
pub const N_COORDINATES: usize = 3;

/// Largest `k_dim` and `v_dim` of a gated delta rule: kernels keep one head on the stack.
pub const MAX_DELTA_HEAD_DIM: usize = 512;

/// Widest group of a Hadamard transform: what the shader's workgroup memory holds.
pub const MAX_HADAMARD_WIDTH: usize = 512;

/// Which elements of a head form a rotated pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RopeStyle {
    /// (2i, 2i+1): GGUF files of the llama family
    Interleaved,
    /// (i, i + n_rot/2): Hugging Face order
    Half,
}

/// Nonlinearity, standalone or in a gated unit.
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
    /// max(x, 0)²
    ReluSquared,
    /// single operands only (Huang and Schlag 2024, arXiv 2411.13010). x > 0: alpha_p·x² + beta·x; else
    /// (expm1(min(x, eps)) − x)·alpha_n + beta·x
    XIelu {
        /// factor on the square
        alpha_p: f32,
        /// factor on the exponential
        alpha_n: f32,
        /// slope at 0
        beta: f32,
        /// bound on the exponent, negative and near 0
        eps: f32,
    },
    /// gated units only: g·σ(1.702·g) · (u + 1) with g = min(gate, limit) and u = up within ±limit (gpt-oss)
    ClampedSwish {
        /// bound on gate and up
        limit: f32,
    },
}

/// Which positions of a sequence a row attends to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mask {
    /// its own and all earlier ones
    #[default]
    Causal,
    /// as `Causal`, but never the sequence's first position
    CausalAfterFirst,
    /// as `Causal`, and the rest of the image that the row is in: see `GivenRows::image_ends`
    CausalImages,
    /// all positions that the sequence has after the batch; the whole text must be one batch
    Bidirectional,
}

/// Attention of query heads over the stored keys and values of one layer.
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionShape {
    /// index into `KvLayout::layers`
    pub layer: usize,
    /// number of query heads; a multiple of `n_kv_heads`
    pub n_heads: usize,
    /// number of key/value heads
    pub n_kv_heads: usize,
    /// elements per head
    pub head_dim: usize,
    /// factor on q·k before the softmax
    pub scale: f32,
    /// visible positions
    pub mask: Mask,
    /// sliding window: position i sees j only if |i - j| < window; None: unlimited
    pub window: Option<usize>,
    /// scores become cap · tanh(score / cap) before the softmax
    pub softcap: Option<f32>,
    /// (n_heads) attention sinks: an extra score per head that takes part in the softmax and has no value
    pub sinks: Option<Arc<[f32]>>,
}

/// Rotation of the first `n_rot` elements of every head by coordinate · inv_freq.
#[derive(Clone, Debug, PartialEq)]
pub struct RopeShape {
    /// number of heads
    pub n_heads: usize,
    /// elements per head
    pub head_dim: usize,
    /// rotated elements per head; even
    pub n_rot: usize,
    /// (n_rot / 2) radians per position
    pub inv_freq: Arc<[f32]>,
    /// (n_rot / 2) which of the row's coordinates turns each pair, below `N_COORDINATES`; empty: the first turns all
    pub axes: Arc<[u8]>,
    /// factor on sine and cosine (YaRN); 1 otherwise
    pub mscale: f32,
    /// which elements form a pair
    pub style: RopeStyle,
}

impl RopeShape {
    /// Whether both turn every row by the same angles.
    pub(crate) fn has_angles_of(&self, other: &Self) -> bool {
        self.inv_freq == other.inv_freq && self.axes == other.axes && self.mscale == other.mscale
    }
}

/// What selects the row of an embedding table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// the token id
    Token,
    /// the token id, or 0 where the table ends before it
    TokenOrFirst,
    /// the token's position
    Position,
    /// the kind of the row, such as the first or second text of a pair, or the place of a patch in its image
    Kind,
}

/// How neighbouring rows become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowMerge {
    /// their mean: as wide as each
    Mean,
    /// one after another: as wide as all together
    Concat,
}

/// A column selection: columns `start..start + width` of each of `n_groups` groups of `stride` columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    /// number of groups
    pub n_groups: usize,
    /// columns per group
    pub stride: usize,
    /// first selected column of a group
    pub start: usize,
    /// selected columns per group
    pub width: usize,
}

/// Factors of a mixture: (n, m) for n groups of columns out of m.
#[derive(Clone, Debug)]
pub enum MixFactors {
    /// of each row: (rows, n · m)
    OfRow(ValueId),
    /// the same for all rows
    Same(Arc<[f32]>),
}

/// One matrix per expert, all of one shape.
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
    /// number of taps, K
    pub kernel: usize,
    /// (channels)
    pub bias: Option<Arc<[f32]>>,
    /// nonlinearity on the sum
    pub act: Activation,
}

/// Gated delta rule (Yang et al. 2024, arXiv 2412.06464) over heads of a matrix state S (k_dim, v_dim), in f32:
/// S ← S·exp(g); d = β·(v − Sᵀk); S ← S + k·dᵀ; out = Sᵀq. Here q and k are scaled to length 1 (eps 1e-6 under the
/// root), q also by k_dim^-½, β = σ(beta) and g = decay · softplus(alpha + dt_bias).
/// The state holds S of every head, one after another.
#[derive(Clone, Debug, PartialEq)]
pub struct DeltaShape {
    /// index into `KvLayout::states`
    pub state: usize,
    /// number of query and key heads
    pub n_k_heads: usize,
    /// number of value heads; a multiple of `n_k_heads`
    pub n_v_heads: usize,
    /// elements per query or key head
    pub k_dim: usize,
    /// elements per value head
    pub v_dim: usize,
    /// which key head belongs to a value head
    pub order: HeadOrder,
    /// (n_v_heads) negative: −exp(A_log)
    pub decay: Arc<[f32]>,
    /// (n_v_heads)
    pub dt_bias: Arc<[f32]>,
}

/// Selective state space with one decay per head (Mamba-2, Dao & Gu 2024, arXiv 2405.21060), in f32:
/// S ← S·exp(dt·decay) + B·(dt·x)ᵀ; out = Sᵀ·C + skip·x, where dt = softplus(dt + dt_bias) within `dt_limits`.
/// The state holds S (d_state, head_dim) of every head, one after another.
#[derive(Clone, Debug, PartialEq)]
pub struct SsmShape {
    /// index into `KvLayout::states`
    pub state: usize,
    /// number of heads; a multiple of `n_groups`
    pub n_heads: usize,
    /// elements per head
    pub head_dim: usize,
    /// groups of consecutive heads that share B and C
    pub n_groups: usize,
    /// elements of B and of C
    pub d_state: usize,
    /// (n_heads) negative: −exp(A_log)
    pub decay: Arc<[f32]>,
    /// (n_heads) D
    pub skip: Arc<[f32]>,
    /// (n_heads)
    pub dt_bias: Arc<[f32]>,
    /// least and largest time step
    pub dt_limits: [f32; 2],
}

/// The key head that belongs to value head j.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadOrder {
    /// j / (n_v_heads / n_k_heads): Hugging Face
    Grouped,
    /// j % n_k_heads: GGUF
    Tiled,
}

/// An operation with its operands and parameters.
#[allow(missing_docs)] // the formulas name the fields
#[derive(Clone, Debug)]
pub enum Op {
    /// rows of `table` [n, d] times `scale` → (tokens, d)
    Embed { table: Tensor, scale: f32, by: Lookup },
    /// each group of `width` columns, a power of two, times the orthonormal Hadamard matrix, which is its own inverse
    Hadamard { x: ValueId, width: usize },
    /// columns `start..start + width` of the rows that the batch gives, zero for other rows → (tokens, width)
    Given { start: usize, width: usize },
    /// x, but columns `start..start + width of x` of given rows instead of their own
    ReplaceGiven { x: ValueId, start: usize },
    /// x / rms(x) · (weight + offset), for each group of `width` columns; `weight` [width], 1 without
    RmsNorm { x: ValueId, weight: Option<Tensor>, offset: f32, eps: f32, width: usize },
    /// (x − mean) / √(variance + eps) · weight + bias, with mean and variance of each group of `width` columns; both
    /// [width of x]
    LayerNorm { x: ValueId, weight: Tensor, bias: Option<Tensor>, eps: f32, width: usize },
    /// x · weightᵀ + bias; `weight` [out, in], `bias` [out]
    MatMul { x: ValueId, weight: Tensor, bias: Option<Tensor> },
    /// rotary embedding by the rows' coordinates
    Rope { x: ValueId, rope: RopeShape },
    /// x · (1 + beta · ln(1 + ⌊position / original_context⌋))
    PositionScale { x: ValueId, beta: f32, original_context: u32 },
    /// stores k, v (tokens, n_kv_heads · head_dim) at each row's position; no output value
    KvWrite { k: ValueId, v: ValueId, layer: usize },
    /// q (tokens, n_heads · head_dim) → same shape
    Attention { q: ValueId, attention: AttentionShape },
    /// a + b
    Add { a: ValueId, b: ValueId },
    /// x · factor
    Scale { x: ValueId, factor: f32 },
    /// cap · tanh(x / cap)
    Softcap { x: ValueId, cap: f32 },
    /// min(max(x, low), high)
    Clamp { x: ValueId, low: f32, high: f32 },
    /// act(x)
    Activate { x: ValueId, act: Activation },
    /// act(gate) · up
    Glu { gate: ValueId, up: ValueId, act: Activation },
    /// σ(gate) · x with one gate for each row: gate (rows, 1)
    RowGate { gate: ValueId, x: ValueId },
    /// x · factors, column by column; `factors` [width of x]
    ScaleColumns { x: ValueId, factors: Arc<[f32]> },
    /// (rows, n_groups · stride) → (rows, n_groups · width)
    Columns { x: ValueId, columns: Columns },
    /// a (rows, n_groups · w), b (rows, n_groups · v) → (rows, n_groups · (w + v)): each group of `a`, then that of `b`
    JoinColumns { a: ValueId, b: ValueId, n_groups: usize },
    /// base (rows, n · width), x (rows, m · width) → (rows, n · width): base[j] + Σᵢ factors[j, i] · x[i]
    Mix { base: ValueId, x: ValueId, factors: MixFactors, width: usize },
    /// x (rows, n · w), of (rows, w): each group of x · √(mean(of²)) / √(max(mean of its squares, least))
    MatchRms { x: ValueId, of: ValueId, least: f32 },
    /// max(x − mean − deviations · standard deviation, 0), with mean and deviation of all elements of the row
    GaussianTopK { x: ValueId, deviations: f32 },
    /// router logits (tokens, n_experts) → (tokens, 2 · n_used): indices of the chosen experts, largest first, then
    /// their weights
    MoeRoute { logits: ValueId, routing: Routing },
    /// a route to all `n` experts in their order, with weights of 1 → (tokens, 2 · n)
    RouteAll { n: usize },
    /// multiplication with each chosen expert: x (tokens, in), or (tokens, n_used · in) with one part per expert →
    /// (tokens, n_used · out); `route` is the output of `MoeRoute`
    ExpertMatMul { x: ValueId, route: ValueId, experts: Experts },
    /// x (tokens, n_used · w) → (tokens, w): the sum weighted by `route`
    ExpertSum { x: ValueId, route: ValueId },
    /// x (tokens, channels) → same shape; reads and advances the sequence's state
    ShortConv { x: ValueId, conv: ConvShape },
    /// qkv (tokens, 2 · n_k_heads · k_dim + n_v_heads · v_dim), beta and alpha (tokens, n_v_heads) →
    /// (tokens, n_v_heads · v_dim); reads and advances the sequence's state
    DeltaNet { qkv: ValueId, beta: ValueId, alpha: ValueId, delta: DeltaShape },
    /// xbc (tokens, n_heads · head_dim + 2 · n_groups · d_state): x, B and C; dt (tokens, n_heads) →
    /// (tokens, n_heads · head_dim); reads and advances the sequence's state
    Ssm { xbc: ValueId, dt: ValueId, ssm: SsmShape },
    /// (tokens, w) → (outputs, w): the rows whose logits are computed
    OutputRows { x: ValueId },
    /// (tokens, w) → (outputs, w or n · w): each output row and the `n` − 1 after it, merged
    MergeRows { x: ValueId, n: usize, merge: RowMerge },
    /// the same value on another device
    Copy { x: ValueId },
}

impl Op {
    /// Whether it advances a recurrent state.
    pub fn is_recurrent(&self) -> bool {
        matches!(self, Op::ShortConv { .. } | Op::DeltaNet { .. } | Op::Ssm { .. })
    }

    /// Calls `f` with each value this operation reads.
    pub fn for_each_input(&self, mut f: impl FnMut(ValueId)) {
        match self {
            Op::Embed { .. } | Op::Given { .. } | Op::RouteAll { .. } => {}
            Op::ReplaceGiven { x, .. }
            | Op::MergeRows { x, .. }
            | Op::RmsNorm { x, .. }
            | Op::LayerNorm { x, .. }
            | Op::MatMul { x, .. }
            | Op::Rope { x, .. }
            | Op::PositionScale { x, .. }
            | Op::Attention { q: x, .. }
            | Op::Scale { x, .. }
            | Op::Softcap { x, .. }
            | Op::Clamp { x, .. }
            | Op::Hadamard { x, .. }
            | Op::Activate { x, .. }
            | Op::Columns { x, .. }
            | Op::ScaleColumns { x, .. }
            | Op::GaussianTopK { x, .. }
            | Op::MoeRoute { logits: x, .. }
            | Op::ShortConv { x, .. }
            | Op::OutputRows { x }
            | Op::Copy { x } => f(*x),
            Op::KvWrite { k: a, v: b, .. }
            | Op::Add { a, b }
            | Op::Glu { gate: a, up: b, .. }
            | Op::RowGate { gate: a, x: b }
            | Op::JoinColumns { a, b, .. }
            | Op::MatchRms { x: a, of: b, .. }
            | Op::Ssm { xbc: a, dt: b, .. }
            | Op::ExpertMatMul { x: a, route: b, .. }
            | Op::ExpertSum { x: a, route: b } => {
                f(*a);
                f(*b);
            }
            Op::Mix { base, x, factors, .. } => {
                f(*base);
                f(*x);
                match factors {
                    MixFactors::OfRow(factors) => f(*factors),
                    MixFactors::Same(_) => {}
                }
            }
            Op::DeltaNet { qkv, beta, alpha, .. } => {
                f(*qkv);
                f(*beta);
                f(*alpha);
            }
        }
    }
}
