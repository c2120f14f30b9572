//! SigLIP, the tower of several families: layer norms, full attention, learned positions.

use kernels::{Activation, Mask};
use weights::Container;

use super::names;
use super::params::{TowerKey, TowerParams};
use crate::arch::TensorName;
use crate::arch::hparams::{MAX_HEAD_DIM, MAX_HEADS, MAX_LAYERS, MAX_WIDTH};
use crate::arch::numbers::bounded;
use crate::error::Result;
use crate::spec::{
    Attention, Dense, Ffn, KvSource, LayerSpec, Mixer, Norm, NormPosition, QkNormForm, Role, Rope,
};

/// Bound on the sides of patches and images, in samples: beyond any published tower.
pub(super) const MAX_SIDE: usize = 1 << 14;

const D_MODEL: TowerKey = TowerKey { gguf: "embedding_length", hf: "hidden_size" };
const N_LAYERS: TowerKey = TowerKey { gguf: "block_count", hf: "num_hidden_layers" };
const N_HEADS: TowerKey = TowerKey { gguf: "attention.head_count", hf: "num_attention_heads" };
const D_FF: TowerKey = TowerKey { gguf: "feed_forward_length", hf: "intermediate_size" };
const EPS: TowerKey = TowerKey { gguf: "attention.layer_norm_epsilon", hf: "layer_norm_eps" };
const PATCH_SIZE: TowerKey = TowerKey { gguf: "patch_size", hf: "patch_size" };
const IMAGE_SIZE: TowerKey = TowerKey { gguf: "image_size", hf: "image_size" };
/// SigLIP's own; published configs omit it.
const DEFAULT_EPS: f64 = 1e-6;

/// Numbers that published configs omit because transformers knows them.
pub(super) struct SiglipDefaults {
    pub d_model: usize,
    pub n_layers: usize,
    pub n_heads: usize,
    pub d_ff: usize,
    pub patch_size: usize,
    pub image_size: usize,
}

/// Those of SigLIP itself.
pub(super) const DEFAULTS: SiglipDefaults =
    SiglipDefaults { d_model: 768, n_layers: 12, n_heads: 12, d_ff: 3072, patch_size: 16, image_size: 224 };

/// What all SigLIP towers have.
pub(super) struct Siglip {
    /// Width of the residual stream.
    pub d_model: usize,
    /// Norm of the layers and of their output.
    pub norm: Norm,
    /// The layers, first to last.
    pub layers: Vec<LayerSpec>,
    /// Samples per side of a patch.
    pub patch_size: usize,
    /// Samples per side of the image that the table of positions is for.
    pub image_size: usize,
}

impl Siglip {
    /// Reads the tower's numbers.
    pub(super) fn read(params: &TowerParams<'_>, defaults: &SiglipDefaults) -> Result<Self> {
        let d_model = params.count_or(D_MODEL, MAX_WIDTH, defaults.d_model)?;
        let n_heads = params.count_or(N_HEADS, MAX_HEADS, defaults.n_heads)?;
        if !d_model.is_multiple_of(n_heads) {
            return Err(params.unsupported(&format!("{n_heads} heads in a width of {d_model}")));
        }
        let head_dim = bounded("the size of a vision head", (d_model / n_heads) as u64, MAX_HEAD_DIM)?;
        let eps = params.optional_real(EPS, 0.0, 1.0)?.unwrap_or(DEFAULT_EPS) as f32;
        let norm = Norm::Layer { eps, bias: true };
        let activation = params.activation(Activation::GeluTanh)?;
        let d_ff = params.count_or(D_FF, MAX_WIDTH, defaults.d_ff)?;
        let dense = Dense { d_ff, activation, bias: true };
        let layer = layer(norm, n_heads, head_dim, Rope::None, dense);
        Ok(Self {
            d_model,
            norm,
            layers: vec![layer; params.count_or(N_LAYERS, MAX_LAYERS, defaults.n_layers)?],
            patch_size: params.count_or(PATCH_SIZE, MAX_SIDE, defaults.patch_size)?,
            image_size: params.count_or(IMAGE_SIZE, MAX_SIDE, defaults.image_size)?,
        })
    }
}

/// A layer in which every patch attends to all others, with biases everywhere.
pub(super) fn layer(norm: Norm, n_heads: usize, head_dim: usize, rope: Rope, dense: Dense) -> LayerSpec {
    let attention = Attention {
        n_heads,
        n_kv_heads: n_heads,
        head_dim,
        scale: (head_dim as f32).sqrt().recip(),
        rope,
        mask: Mask::Bidirectional,
        window: None,
        softcap: None,
        sinks: false,
        qk_norm: None,
        value_norm: None,
        position_scale: None,
        keys: KvSource::Projected,
        output_gate: false,
        qkv_bias: true,
        out_bias: true,
        qk_norm_form: QkNormForm::Head,
    };
    LayerSpec {
        norms: NormPosition::Before,
        mixer_norm: norm,
        mixer: Mixer::Attention(attention),
        mixer_post_norm: None,
        ffn_norm: norm,
        ffn: Ffn::Plain(dense),
        ffn_post_norm: None,
        per_layer_input: None,
        output_scale: false,
        residual_scale: None,
        laurel: None,
    }
}

/// Returns the names of a role outside the projector.
pub(super) fn tensor_names(container: Container, role: Role) -> Vec<TensorName> {
    let name = match container {
        Container::Gguf { .. } => return names::gguf(role),
        Container::Safetensors => match role {
            Role::PatchEmbedding => "embeddings.patch_embedding.weight",
            Role::PatchEmbeddingBias => "embeddings.patch_embedding.bias",
            Role::PositionEmbedding => "embeddings.position_embedding.weight",
            Role::OutputNorm => "post_layernorm.weight",
            Role::OutputNormBias => "post_layernorm.bias",
            Role::MixerNorm => "encoder.layers.#.layer_norm1.weight",
            Role::MixerNormBias => "encoder.layers.#.layer_norm1.bias",
            Role::Query => "encoder.layers.#.self_attn.q_proj.weight",
            Role::QueryBias => "encoder.layers.#.self_attn.q_proj.bias",
            Role::Key => "encoder.layers.#.self_attn.k_proj.weight",
            Role::KeyBias => "encoder.layers.#.self_attn.k_proj.bias",
            Role::Value => "encoder.layers.#.self_attn.v_proj.weight",
            Role::ValueBias => "encoder.layers.#.self_attn.v_proj.bias",
            Role::AttentionOut => "encoder.layers.#.self_attn.out_proj.weight",
            Role::AttentionOutBias => "encoder.layers.#.self_attn.out_proj.bias",
            Role::FfnNorm => "encoder.layers.#.layer_norm2.weight",
            Role::FfnNormBias => "encoder.layers.#.layer_norm2.bias",
            Role::Up => "encoder.layers.#.mlp.fc1.weight",
            Role::UpBias => "encoder.layers.#.mlp.fc1.bias",
            Role::Down => "encoder.layers.#.mlp.fc2.weight",
            Role::DownBias => "encoder.layers.#.mlp.fc2.bias",
            _ => return Vec::new(),
        },
    };
    vec![name.into()]
}
