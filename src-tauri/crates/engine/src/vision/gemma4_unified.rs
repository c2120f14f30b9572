//! Gemma 4 without a tower (12B): each block of pixels is normed, projected by one matrix and normed again. Its place is
//! added from tables for columns and rows, and the sum is normed and projected to the language model's width.

use kernels::RowMerge;
use weights::Container;

use super::params::{TowerKey, TowerParams};
use super::{TowerFamily, gemma4, siglip};
use crate::arch::hparams::MAX_WIDTH;
use crate::arch::numbers::bounded;
use crate::arch::{TensorForm, TensorName};
use crate::error::Result;
use crate::spec::{
    Deepstack, ImagePositions, ImageRuns, Norm, PairOrder, PatchEmbedding, PatchGrid, PatchSamples,
    PatchSequence, Projector, Role, SampleOrder, TowerSpec,
};

pub(super) struct Gemma4UnifiedTower;

const D_MODEL: TowerKey = TowerKey { gguf: "embedding_length", hf: "mm_embed_dim" };
const EPS: TowerKey = TowerKey { gguf: "attention.layer_norm_epsilon", hf: "rms_norm_eps" };
/// Pixels per side of what Gemma 4's tower takes for a patch.
const PATCH_SIZE: TowerKey = TowerKey { gguf: "patch_size", hf: "patch_size" };
const BLOCK_SIDE: TowerKey = TowerKey { gguf: "projector.scale_factor", hf: "pooling_kernel_size" };
const N_POSITIONS: TowerKey = TowerKey { gguf: "", hf: "mm_posemb_size" };
const D_OUT: TowerKey = TowerKey { gguf: "projection_dim", hf: "" };
const DEFAULT_PATCH_SIZE: usize = 16;
const DEFAULT_BLOCK_SIDE: usize = 3;
const DEFAULT_N_POSITIONS: usize = 1120;
const DEFAULT_EPS: f64 = 1e-6;
/// Of the layer norms: PyTorch's default, which no file states.
const LAYER_NORM_EPS: f32 = 1e-5;
const TABLE: &str = "v.position_embd.weight";

impl TowerFamily for Gemma4UnifiedTower {
    fn projector_type(&self) -> &'static str {
        "gemma4uv"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["gemma4_unified"]
    }

    fn spec(&self, params: &TowerParams<'_>) -> Result<TowerSpec> {
        let d_model = params.count(D_MODEL, MAX_WIDTH)?;
        let eps = params.optional_real(EPS, 0.0, 1.0)?.unwrap_or(DEFAULT_EPS) as f32;
        let pixels = params.count_or(PATCH_SIZE, siglip::MAX_SIDE, DEFAULT_PATCH_SIZE)?;
        let side = params.optional_count(BLOCK_SIDE, siglip::MAX_SIDE)?.unwrap_or(DEFAULT_BLOCK_SIDE);
        let size = bounded("pixels per side of a block", (pixels * side) as u64, siglip::MAX_SIDE)?;
        let d_out = match params.is_gguf() {
            true => params.count(D_OUT, MAX_WIDTH)?,
            false => params.text_count("hidden_size", MAX_WIDTH)?,
        };
        let n_positions = match params.shape_of(TABLE) {
            Some([_, side, _]) => bounded("positions per side", *side as u64, siglip::MAX_SIDE)?,
            _ => params.count_or(N_POSITIONS, siglip::MAX_SIDE, DEFAULT_N_POSITIONS)?,
        };
        let norm = Norm::Layer { eps: LAYER_NORM_EPS, bias: true };
        // A GGUF's projection and first norm take the samples channel by channel.
        let stored = if params.is_gguf() { SampleOrder::ChannelsFirst } else { SampleOrder::ChannelsLast };
        Ok(TowerSpec {
            family: self.projector_type(),
            d_model,
            patches: PatchEmbedding {
                size,
                n_frames: 1,
                bias: true,
                samples: PatchSamples { given: SampleOrder::ChannelsLast, stored, is_unit: false },
                sample_norm: norm,
                embedding_norm: norm,
                grid: PatchGrid::Axes { side: n_positions },
                sequence: PatchSequence::Raster,
                norm,
            },
            layers: Vec::new(),
            pairs: PairOrder::AsStored,
            has_bounds: false,
            output_norm: Norm::None,
            projector: Projector {
                block_side: 1,
                merge: RowMerge::Mean,
                scale: 1.0,
                is_standardized: false,
                is_joined: false,
                norm: Norm::PlainRms { eps },
                hidden: None,
                d_out,
            },
            deepstack: Deepstack::NONE,
            seen: gemma4::seen(params)?,
            positions: ImagePositions::Line,
            runs: ImageRuns::Whole,
        })
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        let flat = |name| vec![TensorName { name, form: TensorForm::Flat }];
        let name = match (container, role) {
            // A matrix over samples.
            (Container::Gguf { .. }, Role::PatchEmbedding) => return flat("v.patch_embd.weight"),
            (Container::Gguf { .. }, Role::PatchEmbeddingBias) => "v.patch_embd.bias",
            (Container::Gguf { .. }, Role::PatchSampleNorm) => "v.patch_norm.1.weight",
            (Container::Gguf { .. }, Role::PatchSampleNormBias) => "v.patch_norm.1.bias",
            (Container::Gguf { .. }, Role::PatchEmbeddingNorm) => "v.patch_norm.2.weight",
            (Container::Gguf { .. }, Role::PatchEmbeddingNormBias) => "v.patch_norm.2.bias",
            (Container::Gguf { .. }, Role::PatchNorm) => "v.patch_norm.3.weight",
            (Container::Gguf { .. }, Role::PatchNormBias) => "v.patch_norm.3.bias",
            (Container::Gguf { .. }, Role::PositionEmbedding) => TABLE,
            (Container::Gguf { .. }, Role::ProjectorOut) => "mm.input_projection.weight",
            (Container::Safetensors, Role::PatchEmbedding) => "vision_embedder.patch_dense.weight",
            (Container::Safetensors, Role::PatchEmbeddingBias) => "vision_embedder.patch_dense.bias",
            (Container::Safetensors, Role::PatchSampleNorm) => "vision_embedder.patch_ln1.weight",
            (Container::Safetensors, Role::PatchSampleNormBias) => "vision_embedder.patch_ln1.bias",
            (Container::Safetensors, Role::PatchEmbeddingNorm) => "vision_embedder.patch_ln2.weight",
            (Container::Safetensors, Role::PatchEmbeddingNormBias) => "vision_embedder.patch_ln2.bias",
            (Container::Safetensors, Role::PatchNorm) => "vision_embedder.pos_norm.weight",
            (Container::Safetensors, Role::PatchNormBias) => "vision_embedder.pos_norm.bias",
            (Container::Safetensors, Role::PositionEmbedding) => {
                return vec![TensorName { name: "vision_embedder.pos_embedding", form: TensorForm::Places }];
            }
            (Container::Safetensors, Role::ProjectorOut) => "embed_vision.embedding_projection.weight",
            _ => return Vec::new(),
        };
        vec![name.into()]
    }
}
