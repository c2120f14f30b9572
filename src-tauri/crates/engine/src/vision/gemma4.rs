//! Gemma 4: images of any shape, tables of positions for columns and rows, rotation by both, four norms in a layer.
//! Blocks of nine patches are averaged and projected by one matrix. Models for phones bound what their products take and give.

use kernels::{Activation, RopeStyle, RowMerge};
use serde_json::Value;
use weights::Container;

use super::params::{TowerKey, TowerParams};
use super::{TowerFamily, names, siglip};
use crate::arch::TensorName;
use crate::arch::hparams::{MAX_HEAD_DIM, MAX_HEADS, MAX_LAYERS, MAX_WIDTH};
use crate::arch::numbers::bounded;
use crate::error::Result;
use crate::spec::{
    Deepstack, Dense, Ffn, ImageAttention, ImagePositions, ImageRuns, LayerSpec, Norm, PairOrder,
    PatchEmbedding, PatchGrid, PatchSamples, PatchSequence, Projector, Role, Rope, Rotary, SampleOrder,
    TowerSpec,
};

pub(super) struct Gemma4Tower;

const D_MODEL: TowerKey = TowerKey { gguf: "embedding_length", hf: "hidden_size" };
const N_LAYERS: TowerKey = TowerKey { gguf: "block_count", hf: "num_hidden_layers" };
const N_HEADS: TowerKey = TowerKey { gguf: "attention.head_count", hf: "num_attention_heads" };
const N_KV_HEADS: TowerKey = TowerKey { gguf: "", hf: "num_key_value_heads" };
const HEAD_DIM: TowerKey = TowerKey { gguf: "", hf: "head_dim" };
const D_FF: TowerKey = TowerKey { gguf: "feed_forward_length", hf: "intermediate_size" };
const EPS: TowerKey = TowerKey { gguf: "attention.layer_norm_epsilon", hf: "rms_norm_eps" };
const PATCH_SIZE: TowerKey = TowerKey { gguf: "patch_size", hf: "patch_size" };
const BLOCK_SIDE: TowerKey = TowerKey { gguf: "projector.scale_factor", hf: "pooling_kernel_size" };
const N_POSITIONS: TowerKey = TowerKey { gguf: "", hf: "position_embedding_size" };
const D_OUT: TowerKey = TowerKey { gguf: "projection_dim", hf: "" };
const DEFAULT_BLOCK_SIDE: usize = 3;
const DEFAULT_N_POSITIONS: usize = 10_240;
const DEFAULT_EPS: f64 = 1e-6;
const ROPE_THETA: f64 = 100.0;
/// Coordinates of a patch.
const ROW: u8 = 1;
const COLUMN: u8 = 2;
const QUERY_NORM: &str = "v.blk.0.attn_q_norm.weight";
const KEY: &str = "v.blk.0.attn_k.weight";
const TABLE: &str = "v.position_embd.weight";

impl TowerFamily for Gemma4Tower {
    fn projector_type(&self) -> &'static str {
        "gemma4v"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["gemma4"]
    }

    fn spec(&self, params: &TowerParams<'_>) -> Result<TowerSpec> {
        let d_model = params.count_or(D_MODEL, MAX_WIDTH, 768)?;
        let eps = params.optional_real(EPS, 0.0, 1.0)?.unwrap_or(DEFAULT_EPS) as f32;
        let vision_flag = |key: &str| params.vision_value(key).and_then(Value::as_bool).unwrap_or(false);
        let (is_standardized, has_bounds) = match params.is_gguf() {
            true => (params.has_tensor_with("v.std_scale"), params.has_tensor_with(".input_max")),
            false => (vision_flag("standardize"), vision_flag("use_clipped_linears")),
        };
        let heads = VisionHeads::read(params, d_model)?;
        let d_out = match params.is_gguf() {
            true => params.count(D_OUT, MAX_WIDTH)?,
            false => params.text_count("hidden_size", MAX_WIDTH)?,
        };
        // A repository's projection is a matrix over samples, a GGUF's a convolution.
        let stored = if params.is_gguf() { SampleOrder::ChannelsFirst } else { SampleOrder::ChannelsLast };
        Ok(TowerSpec {
            family: self.projector_type(),
            d_model,
            patches: PatchEmbedding {
                size: params.count_or(PATCH_SIZE, siglip::MAX_SIDE, 16)?,
                n_frames: 1,
                bias: false,
                samples: PatchSamples { given: SampleOrder::ChannelsLast, stored, is_unit: true },
                sample_norm: Norm::None,
                embedding_norm: Norm::None,
                grid: PatchGrid::Axes { side: n_positions(params)? },
                sequence: PatchSequence::Raster,
                norm: Norm::None,
            },
            layers: vec![layer(params, &heads, eps)?; params.count_or(N_LAYERS, MAX_LAYERS, 16)?],
            pairs: PairOrder::WithinHalves { head_dim: heads.head_dim },
            has_bounds,
            output_norm: Norm::None,
            projector: Projector {
                block_side: params
                    .optional_count(BLOCK_SIDE, siglip::MAX_SIDE)?
                    .unwrap_or(DEFAULT_BLOCK_SIDE),
                merge: RowMerge::Mean,
                scale: (d_model as f32).sqrt(),
                is_standardized,
                is_joined: false,
                norm: Norm::PlainRms { eps },
                hidden: None,
                d_out,
            },
            deepstack: Deepstack::NONE,
            seen: seen(params)?,
            positions: ImagePositions::Line,
            runs: ImageRuns::Whole,
        })
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        match (container, role) {
            (Container::Gguf { .. }, Role::ProjectorOut) => vec!["mm.input_projection.weight".into()],
            (Container::Gguf { .. }, _) => names::gguf(role),
            (Container::Safetensors, _) => hugging_face(role),
        }
    }
}

/// Heads of the tower's attention.
struct VisionHeads {
    n_heads: usize,
    n_kv_heads: usize,
    head_dim: usize,
}

impl VisionHeads {
    fn read(params: &TowerParams<'_>, d_model: usize) -> Result<Self> {
        let n_heads = params.count_or(N_HEADS, MAX_HEADS, 12)?;
        let first = |name: &str| params.shape_of(name).and_then(|shape| shape.first().copied());
        let head_dim = match params.is_gguf() {
            true => first(QUERY_NORM).unwrap_or(d_model / n_heads),
            false => params.count_or(HEAD_DIM, MAX_HEAD_DIM, 64)?,
        };
        let head_dim = bounded("the size of a vision head", head_dim as u64, MAX_HEAD_DIM)?;
        let n_kv_heads = match params.is_gguf() {
            true => first(KEY).map_or(n_heads, |rows| rows / head_dim),
            false => params.count_or(N_KV_HEADS, MAX_HEADS, n_heads)?,
        };
        if !head_dim.is_multiple_of(4) || n_kv_heads == 0 || !n_heads.is_multiple_of(n_kv_heads) {
            return Err(params.unsupported(&format!("{n_heads} heads of {head_dim} over {n_kv_heads}")));
        }
        Ok(Self { n_heads, n_kv_heads, head_dim })
    }
}

fn n_positions(params: &TowerParams<'_>) -> Result<usize> {
    match params.shape_of(TABLE) {
        Some([_, side, _]) => bounded("positions per side", *side as u64, siglip::MAX_SIDE),
        _ => params.count_or(N_POSITIONS, siglip::MAX_SIDE, DEFAULT_N_POSITIONS),
    }
}

/// What rows of an image see of it. A GGUF does not say; models with an embedding for each layer are causal.
pub(super) fn seen(params: &TowerParams<'_>) -> Result<ImageAttention> {
    const KEY: &str = "use_bidirectional_attention";
    if params.is_gguf() {
        return Ok(ImageAttention::WholeInWindows);
    }
    let text = params.model_value("text_config").and_then(|text| text.get(KEY));
    match text.filter(|value| !value.is_null()).map(Value::as_str) {
        None => Ok(ImageAttention::Causal),
        Some(Some("vision")) => Ok(ImageAttention::WholeInWindows),
        Some(_) => Err(params.unsupported(&format!("{KEY} = {}", text.unwrap_or(&Value::Null)))),
    }
}

fn layer(params: &TowerParams<'_>, heads: &VisionHeads, eps: f32) -> Result<LayerSpec> {
    let theta = params.rope_theta(ROPE_THETA)?;
    // The first half of a head turns by column, the second by row, at the same frequencies.
    let n_each = heads.head_dim / 4;
    let frequency = |i: usize| theta.powf(-((i % n_each) as f64) / n_each as f64) as f32;
    let rotary = Rotary {
        n_rot: heads.head_dim,
        inv_freq: (0..2 * n_each).map(frequency).collect(),
        mscale: 1.0,
        style: RopeStyle::Half,
    };
    let axes = (0..2 * n_each).map(|i| if i < n_each { COLUMN } else { ROW }).collect();
    let activation = params.activation(Activation::GeluTanh)?;
    let dense = Dense { d_ff: params.count_or(D_FF, MAX_WIDTH, 3072)?, activation, bias: false };
    let norm = Norm::rms(eps);
    let mut layer = siglip::layer(norm, heads.n_heads, heads.head_dim, Rope::ByAxis { rotary, axes }, dense);
    layer.ffn = Ffn::Gated(dense);
    (layer.mixer_post_norm, layer.ffn_post_norm) = (Some(norm), Some(norm));
    if let Some(attention) = layer.mixer.attention_mut() {
        attention.n_kv_heads = heads.n_kv_heads;
        attention.scale = 1.0;
        (attention.qk_norm, attention.value_norm) = (Some(norm), Some(Norm::PlainRms { eps }));
        (attention.qkv_bias, attention.out_bias) = (false, false);
    }
    Ok(layer)
}

fn hugging_face(role: Role) -> Vec<TensorName> {
    let names: &[&'static str] = match role {
        Role::PatchEmbedding => &["patch_embedder.input_proj.weight"],
        Role::PositionEmbedding => &["patch_embedder.position_embedding_table"],
        Role::StandardBias => &["std_bias"],
        Role::StandardScale => &["std_scale"],
        Role::ProjectorOut => &["embed_vision.embedding_projection.weight"],
        Role::MixerNorm => &["encoder.layers.#.input_layernorm.weight"],
        Role::MixerPostNorm => &["encoder.layers.#.post_attention_layernorm.weight"],
        Role::Query => &["encoder.layers.#.self_attn.q_proj.linear.weight"],
        Role::QueryNorm => &["encoder.layers.#.self_attn.q_norm.weight"],
        Role::Key => &["encoder.layers.#.self_attn.k_proj.linear.weight"],
        Role::KeyNorm => &["encoder.layers.#.self_attn.k_norm.weight"],
        Role::Value => &["encoder.layers.#.self_attn.v_proj.linear.weight"],
        Role::AttentionOut => &["encoder.layers.#.self_attn.o_proj.linear.weight"],
        Role::FfnNorm => &["encoder.layers.#.pre_feedforward_layernorm.weight"],
        Role::FfnPostNorm => &["encoder.layers.#.post_feedforward_layernorm.weight"],
        Role::Gate => &["encoder.layers.#.mlp.gate_proj.linear.weight"],
        Role::Up => &["encoder.layers.#.mlp.up_proj.linear.weight"],
        Role::Down => &["encoder.layers.#.mlp.down_proj.linear.weight"],
        _ => &[],
    };
    names.iter().map(|name| TensorName::from(*name)).collect()
}
