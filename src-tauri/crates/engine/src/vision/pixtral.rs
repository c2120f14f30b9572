//! Pixtral, the tower of Mistral 3: images of any shape, rotation by row and column, blocks of patches joined by a matrix
//! and projected by two layers. Markers of the text lie between the rows of an image.

use kernels::{Activation, RopeStyle, RowMerge};
use weights::Container;

use super::params::{TowerKey, TowerParams};
use super::{TowerFamily, names, siglip};
use crate::arch::TensorName;
use crate::arch::hparams::{MAX_HEAD_DIM, MAX_HEADS, MAX_LAYERS, MAX_WIDTH};
use crate::arch::numbers::bounded;
use crate::error::Result;
use crate::spec::{
    Deepstack, Dense, Ffn, ImageAttention, ImagePositions, ImageRuns, LayerSpec, Norm, PairOrder,
    PatchEmbedding, PatchGrid, PatchSamples, PatchSequence, Projector, ProjectorHidden, Role, Rope, Rotary,
    TowerSpec,
};

pub(super) struct PixtralTower;

const D_MODEL: TowerKey = TowerKey { gguf: "embedding_length", hf: "hidden_size" };
const N_LAYERS: TowerKey = TowerKey { gguf: "block_count", hf: "num_hidden_layers" };
const N_HEADS: TowerKey = TowerKey { gguf: "attention.head_count", hf: "num_attention_heads" };
const D_FF: TowerKey = TowerKey { gguf: "feed_forward_length", hf: "intermediate_size" };
const EPS: TowerKey = TowerKey { gguf: "attention.layer_norm_epsilon", hf: "" };
const PATCH_SIZE: TowerKey = TowerKey { gguf: "patch_size", hf: "patch_size" };
const BLOCK_SIDE: TowerKey = TowerKey { gguf: "spatial_merge_size", hf: "" };
const HEAD_DIM: TowerKey = TowerKey { gguf: "", hf: "head_dim" };
const D_OUT: TowerKey = TowerKey { gguf: "projection_dim", hf: "" };
const DEFAULT_BLOCK_SIDE: usize = 2;
const ROPE_THETA: f64 = 10_000.0;
/// Fixed in the published code.
const TOWER_EPS: f64 = 1e-5;
const DEFAULT_TEXT_EPS: f64 = 1e-6;
/// Coordinates of a patch.
const ROW: u8 = 1;
const COLUMN: u8 = 2;
const LAST_LAYER: i64 = -1;

impl TowerFamily for PixtralTower {
    fn projector_type(&self) -> &'static str {
        "pixtral"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["mistral3"]
    }

    fn spec(&self, params: &TowerParams<'_>) -> Result<TowerSpec> {
        if let Some(layer) =
            params.model_value("vision_feature_layer").filter(|n| n.as_i64() != Some(LAST_LAYER))
        {
            return Err(params.unsupported(&format!("the output of layer {layer}")));
        }
        let d_model = params.count_or(D_MODEL, MAX_WIDTH, 1024)?;
        let eps = params.optional_real(EPS, 0.0, 1.0)?.unwrap_or(TOWER_EPS) as f32;
        let norm = Norm::rms(eps);
        // A GGUF has one for both.
        let projector_norm = match params.is_gguf() {
            true => norm,
            false => {
                Norm::rms(params.text_real("rms_norm_eps", 0.0, 1.0)?.unwrap_or(DEFAULT_TEXT_EPS) as f32)
            }
        };
        Ok(TowerSpec {
            family: self.projector_type(),
            d_model,
            patches: PatchEmbedding {
                size: params.count_or(PATCH_SIZE, siglip::MAX_SIDE, 16)?,
                n_frames: 1,
                bias: false,
                samples: PatchSamples::CONVOLUTION,
                sample_norm: Norm::None,
                embedding_norm: Norm::None,
                grid: PatchGrid::Plain,
                sequence: PatchSequence::Raster,
                norm,
            },
            layers: vec![layer(params, d_model, norm)?; params.count_or(N_LAYERS, MAX_LAYERS, 24)?],
            pairs: PairOrder::AsStored,
            has_bounds: false,
            output_norm: projector_norm,
            projector: projector(params)?,
            deepstack: Deepstack::NONE,
            seen: ImageAttention::Causal,
            positions: ImagePositions::Line,
            runs: ImageRuns::Rows,
        })
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        match container {
            Container::Gguf { .. } => gguf(role),
            Container::Safetensors => hugging_face(role),
        }
    }
}

fn projector(params: &TowerParams<'_>) -> Result<Projector> {
    let block_side = match params.is_gguf() {
        true => params.optional_count(BLOCK_SIDE, siglip::MAX_SIDE)?,
        false => params.model_count("spatial_merge_size", siglip::MAX_SIDE)?,
    };
    let (d_out, bias) = match params.is_gguf() {
        true => (params.count(D_OUT, MAX_WIDTH)?, params.has_tensor_with("mm.1.bias")),
        false => {
            let bias = params.model_flag("multimodal_projector_bias", false);
            (params.text_count("hidden_size", MAX_WIDTH)?, bias)
        }
    };
    let activation = params.projector_activation(Activation::Gelu)?;
    Ok(Projector {
        block_side: block_side.unwrap_or(DEFAULT_BLOCK_SIDE),
        merge: RowMerge::Concat,
        scale: 1.0,
        is_standardized: false,
        is_joined: true,
        norm: Norm::None,
        hidden: Some(ProjectorHidden { width: d_out, activation, bias }),
        d_out,
    })
}

fn layer(params: &TowerParams<'_>, d_model: usize, norm: Norm) -> Result<LayerSpec> {
    let n_heads = params.count_or(N_HEADS, MAX_HEADS, 16)?;
    let head_dim = params.optional_count(HEAD_DIM, MAX_HEAD_DIM)?.unwrap_or(d_model / n_heads);
    let head_dim = bounded("the size of a vision head", head_dim as u64, MAX_HEAD_DIM)?;
    if !head_dim.is_multiple_of(4) {
        return Err(params.unsupported(&format!("heads of {head_dim}")));
    }
    let theta = params.rope_theta(ROPE_THETA)?;
    // Of the frequencies of a head the even ones turn by row, the odd ones by column.
    let n_each = head_dim / 4;
    let frequency = |n: usize| theta.powf(-2.0 * n as f64 / head_dim as f64) as f32;
    let frequencies = |odd: usize| (0..n_each).map(move |i| frequency(2 * i + odd));
    let rotary = Rotary {
        n_rot: head_dim,
        inv_freq: frequencies(0).chain(frequencies(1)).collect(),
        mscale: 1.0,
        style: if params.is_gguf() { RopeStyle::Interleaved } else { RopeStyle::Half },
    };
    let axes = (0..2 * n_each).map(|i| if i < n_each { ROW } else { COLUMN }).collect();
    let activation = match params.gguf_flag("clip.use_gelu")? {
        Some(true) => Activation::Gelu,
        Some(false) => Activation::Silu,
        None if params.is_gguf() => Activation::Silu,
        None => params.activation(Activation::Gelu)?,
    };
    let dense = Dense { d_ff: params.count_or(D_FF, MAX_WIDTH, 4096)?, activation, bias: false };
    let mut layer = siglip::layer(norm, n_heads, head_dim, Rope::ByAxis { rotary, axes }, dense);
    layer.ffn = Ffn::Gated(dense);
    if let Some(attention) = layer.mixer.attention_mut() {
        (attention.qkv_bias, attention.out_bias) = (false, false);
    }
    Ok(layer)
}

fn gguf(role: Role) -> Vec<TensorName> {
    let name = match role {
        Role::OutputNorm => "mm.input_norm.weight",
        Role::ProjectorMerge => "mm.patch_merger.weight",
        Role::ProjectorHidden => "mm.1.weight",
        Role::ProjectorHiddenBias => "mm.1.bias",
        Role::ProjectorOut => "mm.2.weight",
        Role::ProjectorOutBias => "mm.2.bias",
        _ => return names::gguf(role),
    };
    vec![name.into()]
}

fn hugging_face(role: Role) -> Vec<TensorName> {
    let name = match role {
        Role::PatchEmbedding => "patch_conv.weight",
        Role::PatchNorm => "ln_pre.weight",
        Role::OutputNorm => "multi_modal_projector.norm.weight",
        Role::ProjectorMerge => "multi_modal_projector.patch_merger.merging_layer.weight",
        Role::ProjectorHidden => "multi_modal_projector.linear_1.weight",
        Role::ProjectorHiddenBias => "multi_modal_projector.linear_1.bias",
        Role::ProjectorOut => "multi_modal_projector.linear_2.weight",
        Role::ProjectorOutBias => "multi_modal_projector.linear_2.bias",
        Role::MixerNorm => "transformer.layers.#.attention_norm.weight",
        Role::Query => "transformer.layers.#.attention.q_proj.weight",
        Role::Key => "transformer.layers.#.attention.k_proj.weight",
        Role::Value => "transformer.layers.#.attention.v_proj.weight",
        Role::AttentionOut => "transformer.layers.#.attention.o_proj.weight",
        Role::FfnNorm => "transformer.layers.#.ffn_norm.weight",
        Role::Gate => "transformer.layers.#.feed_forward.gate_proj.weight",
        Role::Up => "transformer.layers.#.feed_forward.up_proj.weight",
        Role::Down => "transformer.layers.#.feed_forward.down_proj.weight",
        _ => return Vec::new(),
    };
    vec![name.into()]
}
