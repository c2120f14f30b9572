//! Structure of a model as data: one value per mechanism that the decoder can build.
//!
//! An architecture file turns metadata into a `ModelSpec`; the decoder turns that into a graph. All numbers are
//! checked: products do not overflow, nothing is zero.
//!
//! The Debug text of a spec is part of a checkpoint's identity: renaming a struct, field or variant here invalidates
//! stored checkpoints.

use std::sync::Arc;

use kernels::{Activation, HeadOrder, Mask, RopeStyle};

mod embeds;
mod role;
mod tensors;

pub use embeds::{EmbeddingHead, EmbeddingPrefixes, Pooling};
pub use role::Role;

/// A tensor that a model needs: role, layer (`None` outside the layers) and shape, row-major.
pub type TensorSpec = (Role, Option<usize>, Vec<usize>);

/// A whole model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelSpec {
    /// The family's name in the architecture table.
    pub architecture: &'static str,
    /// Tokens in the vocabulary.
    pub n_vocab: usize,
    /// Width of the residual stream.
    pub d_model: usize,
    /// Positions the model was trained for.
    pub context_length: usize,
    /// How a token enters the residual stream.
    pub embedding: Embedding,
    /// The layers, first to last.
    pub layers: Vec<LayerSpec>,
    /// Norm before the output matrix.
    pub output_norm: Norm,
    /// Whether the output matrix is the embedding table.
    pub tied_embeddings: bool,
    /// Logits become cap · tanh(logit / cap).
    pub output_softcap: Option<f32>,
    /// Embedding output instead of logits.
    pub embeds: Option<EmbeddingHead>,
}

impl ModelSpec {
    /// Iterates over the attention of every layer that has one.
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
    /// Rows of a table of token types (BERT). The first is added to every token.
    pub n_kinds: Option<usize>,
    /// Norm of the sum.
    pub norm: Option<Norm>,
    /// A second, narrow embedding per layer (Gemma 4 E).
    pub per_layer: Option<PerLayerEmbedding>,
}

impl Embedding {
    /// Unscaled rows of the table, and nothing else.
    pub const PLAIN: Self =
        Self { scale: 1.0, n_positions: None, n_kinds: None, norm: None, per_layer: None };
}

/// Per-layer inputs: (table row · table_scale + norm(projection of the embedding · projection_scale)) · input_scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PerLayerEmbedding {
    /// Width of one layer's input.
    pub width: usize,
    /// Factor on the rows of the table.
    pub table_scale: f32,
    /// Factor on the projected embedding.
    pub projection_scale: f32,
    /// Norm of the projection.
    pub norm: Norm,
    /// Factor on the sum.
    pub input_scale: f32,
}

/// Position of a layer's norms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NormPosition {
    /// x += part(norm(x))
    #[default]
    Before,
    /// x = norm(x + part(x)) (BERT)
    After,
}

/// One layer: x += mixer(norm(x)); x += ffn(norm(x)), with post-norms where a family has them.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerSpec {
    /// Where the norms are.
    pub norms: NormPosition,
    /// Norm of the mixer's input, or of the sum with `NormPosition::After`.
    pub mixer_norm: Norm,
    /// Exchanges information between positions.
    pub mixer: Mixer,
    /// Norm of the mixer's output.
    pub mixer_post_norm: Option<Norm>,
    /// Norm of the feed-forward input, or of the sum with `NormPosition::After`.
    pub ffn_norm: Norm,
    /// The feed-forward part.
    pub ffn: Ffn,
    /// Norm of the feed-forward output.
    pub ffn_post_norm: Option<Norm>,
    /// Adds a per-layer embedding at the end.
    pub per_layer_input: Option<PerLayerInput>,
    /// Multiplies the layer's output by a number of the file.
    pub output_scale: bool,
}

/// After the feed-forward part: x += norm(projection(act(gate(x)) · per-layer input)).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PerLayerInput {
    /// Width of the input.
    pub width: usize,
    /// Activation of the gate.
    pub activation: Activation,
    /// Norm of the projected result.
    pub norm: Norm,
}

/// Normalization of a vector x.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Norm {
    /// x
    None,
    /// x / rms(x) · (weight + offset). The offset is 1 where a file stores weights around zero.
    Rms {
        /// Added to the mean square.
        eps: f32,
        /// Added to each weight.
        offset: f32,
    },
    /// x / rms(x)
    PlainRms {
        /// Added to the mean square.
        eps: f32,
    },
    /// Mean and variance, with a weight and optional bias.
    Layer {
        /// Added to the variance.
        eps: f32,
        /// Whether it has a bias.
        bias: bool,
    },
}

impl Norm {
    /// Returns an RMS norm without offset.
    pub const fn rms(eps: f32) -> Self {
        Self::Rms { eps, offset: 0.0 }
    }

    /// Returns the norm for weights stored around zero.
    pub fn centred(self) -> Self {
        match self {
            Self::Rms { eps, .. } => Self::Rms { eps, offset: 1.0 },
            Self::None | Self::PlainRms { .. } | Self::Layer { .. } => self,
        }
    }
}

/// The part of a layer that exchanges information between positions.
#[derive(Debug, Clone, PartialEq)]
pub enum Mixer {
    /// Softmax attention.
    Attention(Attention),
    /// Gated short convolution.
    ShortConv(ShortConv),
    /// Gated DeltaNet.
    DeltaNet(DeltaNet),
}

impl Mixer {
    /// Returns the attention, if it is one.
    pub fn attention(&self) -> Option<&Attention> {
        match self {
            Self::Attention(attention) => Some(attention),
            Self::ShortConv(_) | Self::DeltaNet(_) => None,
        }
    }

    /// Returns the attention, if it is one.
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
    /// Query heads.
    pub n_heads: usize,
    /// Divides `n_heads`.
    pub n_kv_heads: usize,
    /// Size of a head.
    pub head_dim: usize,
    /// Factor on q·k.
    pub scale: f32,
    /// Rotation of queries and keys.
    pub rope: Rope,
    /// Positions that a query may see.
    pub mask: Mask,
    /// A query at position i sees j with |i − j| < window, as far as the mask permits.
    pub window: Option<usize>,
    /// Scores become cap · tanh(score / cap).
    pub softcap: Option<f32>,
    /// An additional score per head without a value (attention sinks).
    pub sinks: bool,
    /// Norm of each query and key head, before the rotation.
    pub qk_norm: Option<Norm>,
    /// Norm of each value head, without a tensor.
    pub value_norm: Option<Norm>,
    /// Scales queries by their position.
    pub position_scale: Option<PositionScale>,
    /// Source of keys and values.
    pub keys: KvSource,
    /// The query projection also yields a gate: per head its query, then its gate. The output is multiplied by
    /// σ(gate).
    pub output_gate: bool,
    /// Biases of query, key and value projections.
    pub qkv_bias: bool,
    /// Bias of the output projection.
    pub out_bias: bool,
}

impl Attention {
    /// Sets the rotation to pairs half a head apart, in either container.
    pub fn set_rope_half(&mut self) {
        if let Rope::Rotary(rotary) = &mut self.rope {
            rotary.style = RopeStyle::Half;
        }
    }
}

/// Source of an attention's keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KvSource {
    /// Two projections of the layer's input.
    Projected,
    /// Values are the keys' projection before norm and rotation.
    SharedByValues,
    /// Keys and values of an earlier layer.
    OfLayer(usize),
}

/// Queries times 1 + beta · ln(1 + ⌊position / original_context⌋).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PositionScale {
    /// Factor on the logarithm.
    pub beta: f32,
    /// Positions before the context was extended.
    pub original_context: u32,
}

/// Position encoding of an attention.
#[derive(Debug, Clone, PartialEq)]
pub enum Rope {
    /// No rotation in this layer.
    None,
    /// Rotary embedding.
    Rotary(Rotary),
}

/// Rotary position embedding: pair p of a head is rotated by position × `inv_freq[p]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Rotary {
    /// Rotated dimensions of a head, even. The rest pass unchanged.
    pub n_rot: usize,
    /// (n_rot / 2)
    pub inv_freq: Arc<[f32]>,
    /// Factor on the rotated values.
    pub mscale: f32,
    /// Which dimensions form a pair.
    pub style: RopeStyle,
}

/// Gated short convolution (LFM2): out(C · conv(B · x)) with B, C and x from one projection.
#[derive(Debug, Clone, PartialEq)]
pub struct ShortConv {
    /// Taps, including the current token's.
    pub kernel: usize,
    /// Biases of both projections and of the convolution.
    pub bias: bool,
}

/// Gated DeltaNet: a matrix state per head instead of a cache.
#[derive(Debug, Clone, PartialEq)]
pub struct DeltaNet {
    /// Query and key heads.
    pub n_k_heads: usize,
    /// Value heads.
    pub n_v_heads: usize,
    /// Size of a query or key head.
    pub k_dim: usize,
    /// Size of a value head.
    pub v_dim: usize,
    /// Taps of the convolution before it.
    pub kernel: usize,
    /// How value heads map to key heads.
    pub order: HeadOrder,
    /// How the decay is stored.
    pub decay: Decay,
    /// Norm of each output head.
    pub norm: Norm,
}

impl DeltaNet {
    /// Returns the width of queries, keys and values together.
    pub fn qkv_width(&self) -> usize {
        2 * self.n_k_heads * self.k_dim + self.value_width()
    }

    /// Returns the width of all value heads.
    pub fn value_width(&self) -> usize {
        self.n_v_heads * self.v_dim
    }
}

/// How a file stores the decay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decay {
    /// Its logarithm: the factor is −exp(x).
    Log,
    /// The factor itself.
    Factor,
}

/// The feed-forward part of a layer.
#[derive(Debug, Clone, PartialEq)]
pub enum Ffn {
    /// down(act(gate(x)) · up(x))
    Gated(Dense),
    /// down(act(up(x)))
    Plain(Dense),
    /// Mixture of experts.
    Experts(Experts),
    /// Both in parallel on the residual stream, with separate norms (Gemma 4): the experts' input is normed
    /// separately, and both outputs are normed before the sum.
    GatedAndExperts {
        /// The dense part.
        dense: Dense,
        /// The experts.
        experts: Experts,
        /// Norm of the experts' input and of both outputs.
        norm: Norm,
    },
}

impl Ffn {
    /// Returns the experts, if it has any.
    pub fn experts(&self) -> Option<&Experts> {
        match self {
            Self::Experts(experts) | Self::GatedAndExperts { experts, .. } => Some(experts),
            Self::Gated(_) | Self::Plain(_) => None,
        }
    }
}

/// Sizes of a dense feed-forward part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dense {
    /// Width of the hidden layer.
    pub d_ff: usize,
    /// Activation of the hidden layer.
    pub activation: Activation,
    /// Whether every projection has a bias.
    pub bias: bool,
}

/// Mixture of experts: a router chooses some for each token.
#[derive(Debug, Clone, PartialEq)]
pub struct Experts {
    /// Number of experts.
    pub n_experts: usize,
    /// Experts chosen for each token.
    pub n_used: usize,
    /// Width of an expert's hidden layer.
    pub d_ff: usize,
    /// Activation of the hidden layers.
    pub activation: Activation,
    /// Whether the weights of the chosen experts are normalized to sum to 1.
    pub renormalize: bool,
    /// Whether each expert's weight has a factor.
    pub expert_scale: bool,
    /// Whether the router has a bias.
    pub router_bias: bool,
    /// Whether every expert's projections have biases.
    pub bias: bool,
    /// Input of the router.
    pub router_input: RouterInput,
    /// Expert that every token passes through.
    pub shared: Option<SharedExpert>,
}

/// Input of a router.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RouterInput {
    /// The experts' input.
    Normed,
    /// The residual stream, normed without weight, times a vector of the file, times `scale`.
    Residual {
        /// Epsilon of the norm.
        eps: f32,
        /// Factor on the result.
        scale: f32,
    },
}

/// An expert that every token passes through, weighted by its own gate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SharedExpert {
    /// Width of its hidden layer.
    pub d_ff: usize,
}
