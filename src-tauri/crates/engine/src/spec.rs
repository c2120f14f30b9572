//! Structure of a model as data: one value per mechanism that the decoder can build.
//!
//! An architecture file turns metadata into a `ModelSpec`; the decoder turns that into a graph. All numbers are
//! checked: products do not overflow, nothing is zero.
//!
//! The Debug text of a spec is part of a checkpoint's identity: renaming a struct, field or variant here invalidates
//! stored checkpoints.

use std::fmt;

use kernels::{Activation, Mask};

/// Writes Debug text as derived, but for the fields after the semicolon only where they are not at their defaults:
/// stored checkpoints are named by this text.
macro_rules! debug_without_defaults {
    ($type:ident: $($field:ident),+; $($later:ident),+) => {
        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let Self { $($field),+, $($later),+ } = self;
                let mut text = f.debug_struct(stringify!($type));
                $(text.field(stringify!($field), $field);)+
                $(if !$crate::spec::is_default($later) {
                    text.field(stringify!($later), $later);
                })+
                text.finish()
            }
        }
    };
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

mod assistant;
mod attention;
mod draft;
mod embeds;
mod ffn;
mod latent;
mod recurrent;
mod role;
mod row_floats;
mod streams;
mod tensors;
mod tower;

pub use assistant::{ASSISTANT_LAYERS, Assistance, AssistantHead, AssistantMismatch, TokenClusters};
pub use attention::{Attention, KvSource, PositionScale, QkNormForm, Rope, Rotary};
pub use draft::{COMMON_TOKENS, DraftBlock, MTP_LAYERS, TensorOwner};
pub use embeds::{EmbeddingHead, EmbeddingPrefixes, PairForm, Pooling, RankHead};
pub use ffn::{Dense, ExpertForm, Experts, Ffn, Router, RouterInput, SharedExpert, SharedWeight};
pub use latent::{LatentAttention, QueryRank};
pub use recurrent::{Decay, DeltaNet, GateOrder, ShortConv, Ssm, SsmFactors};
pub use role::Role;
pub use streams::{AltUp, Laurel};
pub use tower::{
    Deepstack, DeepstackTap, ImageAttention, ImagePositions, ImageRuns, PairOrder, PatchEmbedding, PatchGrid,
    PatchSamples, PatchSequence, Projector, ProjectorHidden, SampleOrder, TableResampling, TowerSpec,
};

/// A tensor that a model needs: role, layer (`None` outside the layers) and shape, row-major.
pub type TensorSpec = (Role, Option<usize>, Vec<usize>);

/// A whole model.
#[derive(Clone, PartialEq)]
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
    /// Factor on the logits.
    pub output_scale: Option<f32>,
    /// Whether the output matrix has a bias.
    pub output_bias: bool,
    /// The draft block, where one is in use.
    pub draft: Option<DraftBlock>,
    /// Whether the model is an assistant, or has one.
    pub assistance: Option<Assistance>,
    /// Several residual streams instead of one.
    pub streams: Option<AltUp>,
}

debug_without_defaults! {
    ModelSpec: architecture, n_vocab, d_model, context_length, embedding, layers, output_norm, tied_embeddings,
        output_softcap, embeds;
        output_scale, output_bias, draft, assistance, streams
}

impl ModelSpec {
    /// Iterates over the attention of every layer that has one.
    pub fn attentions_mut(&mut self) -> impl Iterator<Item = &mut Attention> {
        self.layers.iter_mut().filter_map(|layer| layer.mixer.attention_mut())
    }

    /// Lets the model take the images that a tower embeds.
    pub fn take_images(&mut self, tower: &TowerSpec) {
        self.embedding.takes_images = true;
        self.embedding.n_image_layers = tower.deepstack.taps.len();
        let per_layer = self.embedding.per_layer.is_some();
        let is_seen_whole = |attention: &Attention| match tower.seen {
            ImageAttention::Whole => true,
            ImageAttention::WholeInWindows => attention.window.is_some() && !per_layer,
            ImageAttention::Causal => false,
        };
        for attention in self.attentions_mut().filter(|attention| is_seen_whole(attention)) {
            attention.mask = Mask::CausalImages;
        }
    }

    /// Lets the rotations of images follow rows and columns. `axes` returns what each of some pairs turns by.
    pub fn turn_by_axis(&mut self, axes: &dyn Fn(usize) -> Vec<u8>) {
        for attention in self.attentions_mut() {
            if let Rope::Rotary(rotary) = &attention.rope {
                let axes = axes(rotary.n_rot / 2).into();
                attention.rope = Rope::ByAxis { rotary: rotary.clone(), axes };
            }
        }
    }

    /// Returns whether rows of an image see later ones, so that it must be read in one run.
    pub fn reads_images_whole(&self) -> bool {
        let attentions = self.layers.iter().filter_map(|layer| layer.mixer.attention());
        attentions.into_iter().any(|attention| attention.mask == Mask::CausalImages)
    }
}

/// How a token becomes a row of the residual stream.
#[derive(Clone, PartialEq)]
pub struct Embedding {
    /// Factor on the rows of the table.
    pub scale: f32,
    /// Rows of a table of learned positions, which are added.
    pub n_positions: Option<usize>,
    /// Rows of a table of token types (BERT). The first is added to every token.
    pub n_kinds: Option<usize>,
    /// Norm of the sum.
    pub norm: Option<Norm>,
    /// A second, narrow embedding per layer (Gemma 3n, Gemma 4 E).
    pub per_layer: Option<PerLayerEmbedding>,
    /// Whether rows of images replace those of tokens.
    pub takes_images: bool,
    /// First layers after which further rows of images are added (deepstack).
    pub n_image_layers: usize,
}

debug_without_defaults!(Embedding: scale, n_positions, n_kinds, norm, per_layer; takes_images, n_image_layers);

impl Embedding {
    /// Unscaled rows of the table, and nothing else.
    pub const PLAIN: Self = Self {
        scale: 1.0,
        n_positions: None,
        n_kinds: None,
        norm: None,
        per_layer: None,
        takes_images: false,
        n_image_layers: 0,
    };
}

/// Per-layer inputs: (table row · table_scale + norm(projection of the embedding · projection_scale)) · input_scale.
#[derive(Clone, Copy, PartialEq)]
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
    /// Rows of the table, if it is not as long as the vocabulary. Tokens beyond it have the first row.
    pub n_rows: Option<usize>,
}

debug_without_defaults! {
    PerLayerEmbedding: width, table_scale, projection_scale, norm, input_scale;
        n_rows
}

/// Position of a layer's norms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NormPosition {
    /// x += part(norm(x))
    #[default]
    Before,
    /// x = norm(x + part(x)) (BERT)
    After,
    /// x += mixer(n) + ffn(n) with n = norm(x) (Cohere). There is no norm of the feed-forward input.
    Parallel,
}

/// One layer: x += mixer(norm(x)); x += ffn(norm(x)), with post-norms where a family has them.
#[derive(Clone, PartialEq)]
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
    /// Factor on what the mixer and the feed-forward part add to the residual stream.
    pub residual_scale: Option<f32>,
    /// A low-rank branch beside the mixer. Only with `NormPosition::Before`.
    pub laurel: Option<Laurel>,
}

debug_without_defaults! {
    LayerSpec: norms, mixer_norm, mixer, mixer_post_norm, ffn_norm, ffn, ffn_post_norm, per_layer_input, output_scale;
        residual_scale, laurel
}

/// After the feed-forward part: x += norm(projection(act(gate(x)) · per-layer input)). Of several streams this is added
/// to all but the first, and x is the active one.
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
    /// Attention over a compressed cache.
    Latent(LatentAttention),
    /// State space.
    Ssm(Ssm),
    /// Attention and a state space on the same input, each with a factor on its output (Falcon H1).
    AttentionAndSsm {
        /// The attention, and the factor on its output.
        attention: (Attention, f32),
        /// The state space, and the factor on its output.
        ssm: (Ssm, f32),
    },
    /// Nothing: the layer has only a feed-forward part.
    None,
}

impl Mixer {
    /// Returns the attention, if it has one.
    pub fn attention(&self) -> Option<&Attention> {
        match self {
            Self::Attention(attention) | Self::AttentionAndSsm { attention: (attention, _), .. } => {
                Some(attention)
            }
            Self::Latent(latent) => Some(&latent.attention),
            Self::ShortConv(_) | Self::DeltaNet(_) | Self::Ssm(_) | Self::None => None,
        }
    }

    /// Returns the attention, if it has one.
    pub fn attention_mut(&mut self) -> Option<&mut Attention> {
        match self {
            Self::Attention(attention) | Self::AttentionAndSsm { attention: (attention, _), .. } => {
                Some(attention)
            }
            Self::Latent(latent) => Some(&mut latent.attention),
            Self::ShortConv(_) | Self::DeltaNet(_) | Self::Ssm(_) | Self::None => None,
        }
    }
}
