//! Idefics3 and SmolVLM: SigLIP over square tiles, blocks of patches joined by one matrix.

use kernels::RowMerge;
use weights::Container;

use super::TowerFamily;
use super::params::{TowerKey, TowerParams};
use super::siglip::{self, SiglipDefaults};
use crate::arch::TensorName;
use crate::arch::hparams::MAX_WIDTH;
use crate::error::Result;
use crate::spec::{
    Deepstack, ImageAttention, ImagePositions, ImageRuns, Norm, PairOrder, PatchEmbedding, PatchGrid,
    PatchSamples, PatchSequence, Projector, Role, TowerSpec,
};

pub(super) struct Idefics3Tower;

const D_OUT: TowerKey = TowerKey { gguf: "projection_dim", hf: "" };
const BLOCK_SIDE: TowerKey = TowerKey { gguf: "projector.scale_factor", hf: "" };
const DEFAULT_BLOCK_SIDE: usize = 2;
const DEFAULTS: SiglipDefaults =
    SiglipDefaults { d_model: 1152, n_layers: 12, n_heads: 16, d_ff: 3072, patch_size: 32, image_size: 224 };

impl TowerFamily for Idefics3Tower {
    fn projector_type(&self) -> &'static str {
        "idefics3"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["idefics3", "smolvlm"]
    }

    fn spec(&self, params: &TowerParams<'_>) -> Result<TowerSpec> {
        let tower = siglip::Siglip::read(params, &DEFAULTS)?;
        let side = tower.image_size / tower.patch_size;
        let block_side = match params.is_gguf() {
            true => params.optional_count(BLOCK_SIDE, siglip::MAX_SIDE)?,
            false => params.model_count("scale_factor", siglip::MAX_SIDE)?,
        };
        let block_side = block_side.unwrap_or(DEFAULT_BLOCK_SIDE);
        if side == 0 || !side.is_multiple_of(block_side) {
            return Err(params.unsupported(&format!("blocks of {block_side} patches in a side of {side}")));
        }
        let d_out = match params.is_gguf() {
            true => params.count(D_OUT, MAX_WIDTH)?,
            false => params.text_count("hidden_size", MAX_WIDTH)?,
        };
        Ok(TowerSpec {
            family: self.projector_type(),
            d_model: tower.d_model,
            patches: PatchEmbedding {
                size: tower.patch_size,
                n_frames: 1,
                bias: true,
                samples: PatchSamples::CONVOLUTION,
                sample_norm: Norm::None,
                embedding_norm: Norm::None,
                grid: PatchGrid::Square { side },
                sequence: PatchSequence::Raster,
                norm: Norm::None,
            },
            layers: tower.layers,
            pairs: PairOrder::AsStored,
            has_bounds: false,
            output_norm: tower.norm,
            projector: Projector {
                block_side,
                merge: RowMerge::Concat,
                scale: 1.0,
                is_standardized: false,
                is_joined: false,
                norm: Norm::None,
                hidden: None,
                d_out,
            },
            deepstack: Deepstack::NONE,
            seen: ImageAttention::Causal,
            positions: ImagePositions::Line,
            runs: ImageRuns::Whole,
        })
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        match (container, role) {
            (Container::Gguf { .. }, Role::ProjectorOut) => vec!["mm.model.fc.weight".into()],
            (Container::Safetensors, Role::ProjectorOut) => {
                vec!["connector.modality_projection.proj.weight".into()]
            }
            _ => siglip::tensor_names(container, role),
        }
    }
}
