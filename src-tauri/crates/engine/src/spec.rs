//! What a model is made of, as data: one value per mechanism that the decoder can build.
//!
//! An architecture file turns metadata into a `ModelSpec`; the decoder turns a `ModelSpec` into a graph.
//! Every number in a spec has been checked: shapes multiply without overflow, nothing is zero.

use std::sync::Arc;

use kernels::RopeStyle;

/// Which of a model's tensors is meant. An architecture maps it to the name in its container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    TokenEmbedding,
    OutputNorm,
    Output,
    AttentionNorm,
    Query,
    QueryBias,
    Key,
    KeyBias,
    Value,
    ValueBias,
    AttentionOut,
    AttentionOutBias,
    FfnNorm,
    Gate,
    GateBias,
    Up,
    UpBias,
    Down,
    DownBias,
}

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
    pub layers: Vec<LayerSpec>,
    pub output_norm: Norm,
    /// The output matrix is the embedding table.
    pub tied_embeddings: bool,
}

/// One transformer layer: x += attention(norm(x)); x += ffn(norm(x)).
#[derive(Debug, Clone, PartialEq)]
pub struct LayerSpec {
    pub attention_norm: Norm,
    pub attention: Attention,
    pub ffn_norm: Norm,
    pub ffn: Ffn,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Norm {
    Rms { eps: f32 },
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
    /// A query at position i sees j > i − window.
    pub window: Option<usize>,
    /// Query, key and value projections carry a bias.
    pub qkv_bias: bool,
    pub out_bias: bool,
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

impl ModelSpec {
    /// Every tensor the model needs: its role, its layer (None: the model's own) and its shape, row-major.
    pub fn tensors(&self) -> Vec<(Role, Option<usize>, Vec<usize>)> {
        let d = self.d_model;
        let mut all =
            vec![(Role::TokenEmbedding, None, vec![self.n_vocab, d]), (Role::OutputNorm, None, vec![d])];
        if !self.tied_embeddings {
            all.push((Role::Output, None, vec![self.n_vocab, d]));
        }
        for (index, layer) in self.layers.iter().enumerate() {
            layer.tensors(d, &mut |role, shape| all.push((role, Some(index), shape)));
        }
        all
    }
}

impl LayerSpec {
    fn tensors(&self, d: usize, add: &mut dyn FnMut(Role, Vec<usize>)) {
        let a = &self.attention;
        let (q, kv) = (a.n_heads * a.head_dim, a.n_kv_heads * a.head_dim);
        add(Role::AttentionNorm, vec![d]);
        add(Role::Query, vec![q, d]);
        add(Role::Key, vec![kv, d]);
        add(Role::Value, vec![kv, d]);
        if a.qkv_bias {
            add(Role::QueryBias, vec![q]);
            add(Role::KeyBias, vec![kv]);
            add(Role::ValueBias, vec![kv]);
        }
        add(Role::AttentionOut, vec![d, q]);
        if a.out_bias {
            add(Role::AttentionOutBias, vec![d]);
        }
        add(Role::FfnNorm, vec![d]);
        match self.ffn {
            Ffn::Gated { d_ff, activation: _, bias } => {
                add(Role::Gate, vec![d_ff, d]);
                add(Role::Up, vec![d_ff, d]);
                add(Role::Down, vec![d, d_ff]);
                if bias {
                    add(Role::GateBias, vec![d_ff]);
                    add(Role::UpBias, vec![d_ff]);
                    add(Role::DownBias, vec![d]);
                }
            }
        }
    }
}

/// The feed-forward part.
#[derive(Debug, Clone, PartialEq)]
pub enum Ffn {
    /// down(act(gate(x)) · up(x))
    Gated { d_ff: usize, activation: kernels::Activation, bias: bool },
}
