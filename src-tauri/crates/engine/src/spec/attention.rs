//! Structure of softmax attention: heads, norms, rotation, and where keys and values come from.

use std::fmt;
use std::sync::Arc;

use kernels::{Mask, RopeStyle};

use super::Norm;

/// Softmax attention over a paged key-value cache.
#[derive(Clone, PartialEq)]
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
    /// Norm of queries and keys.
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
    /// What the norm of queries and keys applies to, and when.
    pub qk_norm_form: QkNormForm,
}

debug_without_defaults! {
    Attention: n_heads, n_kv_heads, head_dim, scale, rope, mask, window, softcap, sinks, qk_norm, value_norm,
        position_scale, keys, output_gate, qkv_bias, out_bias;
        qk_norm_form
}

/// How queries and keys are normed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum QkNormForm {
    /// Each head before the rotation, all heads with the same weights.
    #[default]
    Head,
    /// Each head after the rotation, all heads with the same weights (Hunyuan).
    RotatedHead,
    /// Each head before the rotation, with separate weights (StableLM).
    OwnHead,
    /// All heads of a row together, before the rotation (OLMo 2).
    Projection,
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
    /// Keys and values of an earlier layer. In an assistant in use a layer of its target.
    OfLayer(usize),
    /// Keys and values of the last layer of a kind in the model that an assistant drafts for.
    OfTarget {
        /// Whether those layers have a window.
        slides: bool,
    },
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
    /// Rotary embedding in images: each pair turns by one of a row's coordinates.
    ByAxis {
        /// The rotation.
        rotary: Rotary,
        /// Coordinate of each pair: 0 the time, 1 the row, 2 the column. (n_rot / 2)
        axes: Arc<[u8]>,
    },
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
