//! Qwen3-VL and Qwen3.5: images of any shape, a table of positions that is resampled to them, rotation by row and
//! column, blocks of patches joined by two layers.

use kernels::{Activation, RopeStyle, RowMerge};
use weights::Container;

use super::params::{TowerKey, TowerParams};
use super::{TowerFamily, names, siglip};
use crate::arch::hparams::{MAX_HEAD_DIM, MAX_HEADS, MAX_LAYERS, MAX_POSITIONS, MAX_WIDTH};
use crate::arch::numbers::{bounded, wrong};
use crate::arch::{TensorForm, TensorName};
use crate::error::Result;
use crate::spec::{
    Deepstack, DeepstackTap, Dense, ImageAttention, ImagePositions, ImageRuns, LayerSpec, Norm, PairOrder,
    PatchEmbedding, PatchGrid, PatchSamples, PatchSequence, Projector, ProjectorHidden, Role, Rope, Rotary,
    TableResampling, TowerSpec,
};

pub(super) struct Qwen3VlTower;

const D_MODEL: TowerKey = TowerKey { gguf: "embedding_length", hf: "hidden_size" };
const N_LAYERS: TowerKey = TowerKey { gguf: "block_count", hf: "depth" };
const N_HEADS: TowerKey = TowerKey { gguf: "attention.head_count", hf: "num_heads" };
const D_FF: TowerKey = TowerKey { gguf: "feed_forward_length", hf: "intermediate_size" };
const EPS: TowerKey = TowerKey { gguf: "attention.layer_norm_epsilon", hf: "" };
const PATCH_SIZE: TowerKey = TowerKey { gguf: "patch_size", hf: "patch_size" };
const IMAGE_SIZE: TowerKey = TowerKey { gguf: "image_size", hf: "" };
const N_POSITIONS: TowerKey = TowerKey { gguf: "", hf: "num_position_embeddings" };
const BLOCK_SIDE: TowerKey = TowerKey { gguf: "spatial_merge_size", hf: "spatial_merge_size" };
const D_OUT: TowerKey = TowerKey { gguf: "projection_dim", hf: "out_hidden_size" };
/// Fixed in the published code.
const DEFAULT_EPS: f64 = 1e-6;
const ROPE_THETA: f32 = 10_000.0;
/// Frames of a video that one patch spans; of an image both are the same.
const N_FRAMES: usize = 2;
/// Coordinates of a patch.
const ROW: u8 = 1;
const COLUMN: u8 = 2;

impl TowerFamily for Qwen3VlTower {
    fn projector_type(&self) -> &'static str {
        "qwen3vl_merger"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["qwen3_5", "qwen3_5_moe", "qwen3_vl", "qwen3_vl_moe"]
    }

    fn spec(&self, params: &TowerParams<'_>) -> Result<TowerSpec> {
        let d_model = params.count(D_MODEL, MAX_WIDTH)?;
        let eps = params.optional_real(EPS, 0.0, 1.0)?.unwrap_or(DEFAULT_EPS) as f32;
        let size = params.count(PATCH_SIZE, siglip::MAX_SIDE)?;
        let n_positions = match params.is_gguf() {
            true => (params.count(IMAGE_SIZE, siglip::MAX_SIDE)? / size).pow(2),
            false => params.count(N_POSITIONS, MAX_POSITIONS)?,
        };
        let side = bounded("positions per side", n_positions.isqrt() as u64, siglip::MAX_SIDE)?;
        let block_side = params.count(BLOCK_SIDE, siglip::MAX_SIDE)?;
        let norm = Norm::Layer { eps, bias: true };
        let n_layers = params.count(N_LAYERS, MAX_LAYERS)?;
        Ok(TowerSpec {
            family: self.projector_type(),
            d_model,
            patches: PatchEmbedding {
                size,
                n_frames: N_FRAMES,
                bias: true,
                samples: PatchSamples::CONVOLUTION,
                sample_norm: Norm::None,
                embedding_norm: Norm::None,
                grid: PatchGrid::Resampled { side, rule: TableResampling::Corners },
                sequence: PatchSequence::Blocks,
                norm: Norm::None,
            },
            layers: vec![layer(params, d_model, norm)?; n_layers],
            pairs: PairOrder::AsStored,
            has_bounds: false,
            output_norm: norm,
            projector: Projector {
                block_side,
                merge: RowMerge::Concat,
                scale: 1.0,
                is_standardized: false,
                is_joined: false,
                norm: Norm::None,
                hidden: Some(ProjectorHidden {
                    width: d_model * block_side * block_side,
                    activation: Activation::Gelu,
                    bias: true,
                }),
                d_out: params.count(D_OUT, MAX_WIDTH)?,
            },
            deepstack: deepstack(params, n_layers, eps)?,
            seen: ImageAttention::Causal,
            positions: ImagePositions::Grid,
            runs: ImageRuns::Whole,
        })
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        match container {
            Container::Gguf { .. } => gguf(role),
            Container::Safetensors => hugging_face(role),
        }
    }
}

/// Layers whose rows the language model takes too, where a repository's config does not list them.
const DEFAULT_TAPS: [usize; 3] = [8, 16, 24];
const TAPS: &str = "deepstack_visual_indexes";

fn deepstack(params: &TowerParams<'_>, n_layers: usize, eps: f32) -> Result<Deepstack> {
    let layers: Vec<usize> = match params.gguf_flags("clip.vision.is_deepstack_layers")? {
        Some(flags) => (0..flags.len()).filter(|layer| flags[*layer]).collect(),
        None => match params.vision_value(TAPS) {
            Some(listed) => {
                let layers = listed.as_array().map(|all| all.iter().map(|n| n.as_u64()).collect());
                let layers: Option<Vec<u64>> = layers.flatten();
                let layers = layers.ok_or_else(|| wrong(TAPS, format!("{listed} is no list of layers")))?;
                layers.into_iter().map(|layer| usize::try_from(layer).unwrap_or(usize::MAX)).collect()
            }
            None if !params.is_gguf() && params.has_tensor_with("deepstack") => DEFAULT_TAPS.to_vec(),
            None => Vec::new(),
        },
    };
    // A GGUF names them by layer, a repository by their place in the list.
    let number = |(place, layer): (usize, usize)| if params.is_gguf() { layer } else { place };
    let taps = layers.iter().copied().enumerate();
    let mut taps: Vec<DeepstackTap> =
        taps.map(|tap| DeepstackTap { layer: tap.1, number: number(tap) }).collect();
    taps.sort_by_key(|tap| tap.layer);
    let is_distinct = taps.windows(2).all(|pair| pair[0].layer < pair[1].layer);
    if !is_distinct || taps.last().is_some_and(|tap| tap.layer >= n_layers) {
        return Err(wrong(TAPS, format!("{layers:?} are not different layers of {n_layers}")));
    }
    Ok(Deepstack { taps, eps })
}

fn layer(params: &TowerParams<'_>, d_model: usize, norm: Norm) -> Result<LayerSpec> {
    let n_heads = params.count(N_HEADS, MAX_HEADS)?;
    let head_dim = bounded("the size of a vision head", (d_model / n_heads) as u64, MAX_HEAD_DIM)?;
    if !d_model.is_multiple_of(n_heads) || !head_dim.is_multiple_of(4) {
        return Err(params.unsupported(&format!("{n_heads} heads in a width of {d_model}")));
    }
    // A half of the pairs turns by row, the other by column, at the same frequencies.
    let n_each = head_dim / 4;
    let frequency = |i: usize| ROPE_THETA.powf(-((i % n_each) as f32) / n_each as f32);
    let rotary = Rotary {
        n_rot: head_dim,
        inv_freq: (0..2 * n_each).map(frequency).collect(),
        mscale: 1.0,
        style: RopeStyle::Half,
    };
    let axes = (0..2 * n_each).map(|i| if i < n_each { ROW } else { COLUMN }).collect();
    let activation = params.activation(Activation::GeluTanh)?;
    let dense = Dense { d_ff: params.count(D_FF, MAX_WIDTH)?, activation, bias: true };
    Ok(siglip::layer(norm, n_heads, head_dim, Rope::ByAxis { rotary, axes }, dense))
}

fn gguf(role: Role) -> Vec<TensorName> {
    let name = match role {
        Role::PatchEmbeddingNext => "v.patch_embd.weight.1",
        Role::ProjectorHidden => "mm.0.weight",
        Role::ProjectorHiddenBias => "mm.0.bias",
        Role::ProjectorOut => "mm.2.weight",
        Role::ProjectorOutBias => "mm.2.bias",
        Role::DeepNorm => "v.deepstack.#.norm.weight",
        Role::DeepNormBias => "v.deepstack.#.norm.bias",
        Role::DeepHidden => "v.deepstack.#.fc1.weight",
        Role::DeepHiddenBias => "v.deepstack.#.fc1.bias",
        Role::DeepOut => "v.deepstack.#.fc2.weight",
        Role::DeepOutBias => "v.deepstack.#.fc2.bias",
        _ => return names::gguf(role),
    };
    vec![name.into()]
}

fn hugging_face(role: Role) -> Vec<TensorName> {
    let name = match role {
        Role::PatchEmbedding | Role::PatchEmbeddingNext => {
            let index = usize::from(role == Role::PatchEmbeddingNext);
            let form = TensorForm::Frame { index, n: N_FRAMES };
            return vec![TensorName { name: "patch_embed.proj.weight", form }];
        }
        Role::Query | Role::Key | Role::Value => {
            return vec![TensorName::rows("blocks.#.attn.qkv.weight", names::QKV)];
        }
        Role::QueryBias | Role::KeyBias | Role::ValueBias => {
            return vec![TensorName::rows("blocks.#.attn.qkv.bias", names::QKV_BIAS)];
        }
        Role::PatchEmbeddingBias => "patch_embed.proj.bias",
        Role::PositionEmbedding => "pos_embed.weight",
        Role::OutputNorm => "merger.norm.weight",
        Role::OutputNormBias => "merger.norm.bias",
        Role::ProjectorHidden => "merger.linear_fc1.weight",
        Role::ProjectorHiddenBias => "merger.linear_fc1.bias",
        Role::ProjectorOut => "merger.linear_fc2.weight",
        Role::ProjectorOutBias => "merger.linear_fc2.bias",
        Role::DeepNorm => "deepstack_merger_list.#.norm.weight",
        Role::DeepNormBias => "deepstack_merger_list.#.norm.bias",
        Role::DeepHidden => "deepstack_merger_list.#.linear_fc1.weight",
        Role::DeepHiddenBias => "deepstack_merger_list.#.linear_fc1.bias",
        Role::DeepOut => "deepstack_merger_list.#.linear_fc2.weight",
        Role::DeepOutBias => "deepstack_merger_list.#.linear_fc2.bias",
        Role::MixerNorm => "blocks.#.norm1.weight",
        Role::MixerNormBias => "blocks.#.norm1.bias",
        Role::AttentionOut => "blocks.#.attn.proj.weight",
        Role::AttentionOutBias => "blocks.#.attn.proj.bias",
        Role::FfnNorm => "blocks.#.norm2.weight",
        Role::FfnNormBias => "blocks.#.norm2.bias",
        Role::Up => "blocks.#.mlp.linear_fc1.weight",
        Role::UpBias => "blocks.#.mlp.linear_fc1.bias",
        Role::Down => "blocks.#.mlp.linear_fc2.weight",
        Role::DownBias => "blocks.#.mlp.linear_fc2.bias",
        _ => return Vec::new(),
    };
    vec![name.into()]
}
