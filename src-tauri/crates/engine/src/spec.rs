//! What a model is made of, as data: one value per mechanism that the decoder can build.
//!
//! An architecture file turns metadata into a `ModelSpec`; the decoder turns a `ModelSpec` into a graph.
//! Every number in a spec has been checked: shapes multiply without overflow, nothing is zero.

use std::sync::Arc;

use kernels::{Activation, HeadOrder, Mask, RopeStyle};

mod embeds;
mod role;
mod tensors;

pub use embeds::{EmbeddingHead, EmbeddingPrefixes, Pooling};
pub use role::Role;

/// A tensor that a model needs: its role, its layer (None: the model's own) and its shape, row-major.
pub type TensorSpec = (Role, Option<usize>, Vec<usize>);

/// A whole model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelSpec {
    /// The family's name as the architecture table has it.
    pub architecture: &'static str,
    pub n_vocab: usize,
    /// Width of the residual stream.
    pub d_model: usize,
    /// Positions the model was trained for.
    pub context_length: usize,
    pub embedding: Embedding,
    pub layers: Vec<LayerSpec>,
    pub output_norm: Norm,
    /// The output matrix is the embedding table.
    pub tied_embeddings: bool,
    /// Logits become cap · tanh(logit / cap).
    pub output_softcap: Option<f32>,
    /// What it makes of a text in place of logits. None: it has logits.
    pub embeds: Option<EmbeddingHead>,
}

impl ModelSpec {
    /// The attention of every layer that has one.
    pub fn attentions_mut(&mut self) -> impl Iterator<Item = &mut Attention> {
        self.layers.iter_mut().filter_map(|layer| layer.mixer.attention_mut())
    }
}

/// How a token becomes a row of the residual stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    /// Factor on the rows of the table.
    pub scale: f32,
    /// Rows of a table of learned positions, which are added.
    pub n_positions: Option<usize>,
    /// Rows of a table of kinds of text, of which the first is added: all is of one kind.
    pub n_kinds: Option<usize>,
    /// Of the sum.
    pub norm: Option<Norm>,
    /// A second, narrow embedding for every layer (Gemma 4 E).
    pub per_layer: Option<PerLayerEmbedding>,
}

impl Embedding {
    /// Rows of the table as they are.
    pub const PLAIN: Self =
        Self { scale: 1.0, n_positions: None, n_kinds: None, norm: None, per_layer: None };
}

/// Each layer's own input: (rows of a table · table_scale + norm(projection of the embedding · projection_scale)) ·
/// input_scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PerLayerEmbedding {
    /// Width of one layer's input.
    pub width: usize,
    pub table_scale: f32,
    pub projection_scale: f32,
    pub norm: Norm,
    pub input_scale: f32,
}

/// Where the norms of a layer stand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NormPosition {
    /// x += part(norm(x))
    #[default]
    Before,
    /// x = norm(x + part(x)) (BERT)
    After,
}

/// One layer: x += mixer(norm(x)); x += ffn(norm(x)), with norms after either part where a family has them.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerSpec {
    pub norms: NormPosition,
    pub mixer_norm: Norm,
    pub mixer: Mixer,
    pub mixer_post_norm: Option<Norm>,
    pub ffn_norm: Norm,
    pub ffn: Ffn,
    pub ffn_post_norm: Option<Norm>,
    pub per_layer_input: Option<PerLayerInput>,
    /// The layer's output is multiplied by a number of the file.
    pub output_scale: bool,
}

/// After the feed-forward part: x += norm(projection(act(gate(x)) · the layer's own embedding)).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PerLayerInput {
    pub width: usize,
    pub activation: Activation,
    pub norm: Norm,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Norm {
    /// x
    None,
    /// x / rms(x) · (weight + offset): an offset of 1 where a file stores weights around zero
    Rms { eps: f32, offset: f32 },
    /// x / rms(x)
    PlainRms { eps: f32 },
    /// mean and variance, with a weight and perhaps a bias
    Layer { eps: f32, bias: bool },
}

impl Norm {
    pub const fn rms(eps: f32) -> Self {
        Self::Rms { eps, offset: 0.0 }
    }

    /// The same with weights stored around zero.
    pub fn centred(self) -> Self {
        match self {
            Self::Rms { eps, .. } => Self::Rms { eps, offset: 1.0 },
            Self::None | Self::PlainRms { .. } | Self::Layer { .. } => self,
        }
    }
}

/// What exchanges information between positions.
#[derive(Debug, Clone, PartialEq)]
pub enum Mixer {
    Attention(Attention),
    ShortConv(ShortConv),
    DeltaNet(DeltaNet),
}

impl Mixer {
    pub fn attention(&self) -> Option<&Attention> {
        match self {
            Self::Attention(attention) => Some(attention),
            Self::ShortConv(_) | Self::DeltaNet(_) => None,
        }
    }

    pub fn attention_mut(&mut self) -> Option<&mut Attention> {
        match self {
            Self::Attention(attention) => Some(attention),
            Self::ShortConv(_) | Self::DeltaNet(_) => None,
        }
    }
}

/// Softmax attention over a paged key-value cache.
#[derive(Debug, Clone, PartialEq)]
pub struct Attention {
    pub n_heads: usize,
    /// Divides `n_heads`.
    pub n_kv_heads: usize,
    pub head_dim: usize,
    /// Factor on q·k.
    pub scale: f32,
    pub rope: Rope,
    pub mask: Mask,
    /// A query at position i sees j with |i − j| < window, of those that the mask leaves.
    pub window: Option<usize>,
    /// Scores become cap · tanh(score / cap).
    pub softcap: Option<f32>,
    /// A further score per head that has no value.
    pub sinks: bool,
    /// Norm of each query and each key head, before the rotation.
    pub qk_norm: Option<Norm>,
    /// Norm of each value head; it has no tensor.
    pub value_norm: Option<Norm>,
    /// Queries grow with their position.
    pub position_scale: Option<PositionScale>,
    pub keys: KvSource,
    /// The query projection also makes a gate: for each head its query, then its gate. The output is multiplied by
    /// σ(gate).
    pub output_gate: bool,
    /// Query, key and value projections carry a bias.
    pub qkv_bias: bool,
    pub out_bias: bool,
}

impl Attention {
    /// Pairs are halves of a head apart, in either container.
    pub fn set_rope_half(&mut self) {
        if let Rope::Rotary(rotary) = &mut self.rope {
            rotary.style = RopeStyle::Half;
        }
    }
}

/// Where an attention's keys and values come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KvSource {
    Projected,
    /// Values are the keys' projection before norm and rotation.
    SharedByValues,
    /// Those of an earlier layer.
    OfLayer(usize),
}

/// Queries times 1 + beta · ln(1 + ⌊position / original_context⌋).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PositionScale {
    pub beta: f32,
    pub original_context: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Rope {
    /// No positional rotation in this layer.
    None,
    Rotary(Rotary),
}

/// Rotary position embedding: pair p of a head turns by position × inv_freq[p].
#[derive(Debug, Clone, PartialEq)]
pub struct Rotary {
    /// Rotated dimensions of a head, even; the rest pass unchanged.
    pub n_rot: usize,
    /// (n_rot / 2)
    pub inv_freq: Arc<[f32]>,
    /// Factor on the rotated values.
    pub mscale: f32,
    pub style: RopeStyle,
}

/// Gated short convolution (LFM2): out(C · conv(B · x)) with B, C and x from one projection.
#[derive(Debug, Clone, PartialEq)]
pub struct ShortConv {
    /// Taps, the current token's included.
    pub kernel: usize,
    /// Both projections and the convolution carry a bias.
    pub bias: bool,
}

/// Gated DeltaNet: a matrix state per head instead of a cache.
#[derive(Debug, Clone, PartialEq)]
pub struct DeltaNet {
    pub n_k_heads: usize,
    pub n_v_heads: usize,
    pub k_dim: usize,
    pub v_dim: usize,
    /// Taps of the convolution before it.
    pub kernel: usize,
    pub order: HeadOrder,
    pub decay: Decay,
    pub norm: Norm,
}

impl DeltaNet {
    /// Width of queries, keys and values together.
    pub fn qkv_width(&self) -> usize {
        2 * self.n_k_heads * self.k_dim + self.value_width()
    }

    pub fn value_width(&self) -> usize {
        self.n_v_heads * self.v_dim
    }
}

/// What a file stores of the decay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decay {
    /// its logarithm: the factor is −exp(x)
    Log,
    /// the factor itself
    Factor,
}

/// The feed-forward part.
#[derive(Debug, Clone, PartialEq)]
pub enum Ffn {
    /// down(act(gate(x)) · up(x))
    Gated(Dense),
    /// down(act(up(x)))
    Plain(Dense),
    Experts(Experts),
    /// Both, side by side on the residual stream, each with norms of its own (Gemma 4): the experts' input is
    /// normed apart, either output is normed before the sum.
    GatedAndExperts {
        dense: Dense,
        experts: Experts,
        norm: Norm,
    },
}

impl Ffn {
    pub fn experts(&self) -> Option<&Experts> {
        match self {
            Self::Experts(experts) | Self::GatedAndExperts { experts, .. } => Some(experts),
            Self::Gated(_) | Self::Plain(_) => None,
        }
    }
}

/// MemoryEstimate of a dense feed-forward part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dense {
    pub d_ff: usize,
    pub activation: Activation,
    pub bias: bool,
}

/// A mixture of experts: a router chooses some for each token.
#[derive(Debug, Clone, PartialEq)]
pub struct Experts {
    pub n_experts: usize,
    pub n_used: usize,
    pub d_ff: usize,
    pub activation: Activation,
    /// Weights of the chosen experts are made to sum to 1.
    pub renormalize: bool,
    /// A factor on each expert's weight.
    pub expert_scale: bool,
    pub router_bias: bool,
    /// Every expert's projections carry biases.
    pub bias: bool,
    pub router_input: RouterInput,
    pub shared: Option<SharedExpert>,
}

/// What a router reads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RouterInput {
    /// What the experts read.
    Normed,
    /// The residual stream, normed without weight, times a vector of the file, times `scale`.
    Residual { eps: f32, scale: f32 },
}

/// An expert that every token passes through, weighted by a gate of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SharedExpert {
    pub d_ff: usize,
}
