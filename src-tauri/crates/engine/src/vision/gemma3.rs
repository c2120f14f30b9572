//! Gemma 3: SigLIP over a fixed square, averaged, normed and projected by one matrix.

use kernels::RowMerge;
use weights::Container;

use super::params::{TowerKey, TowerParams};
use super::{TowerFamily, siglip};
use crate::arch::hparams::MAX_WIDTH;
use crate::arch::{TensorForm, TensorName};
use crate::error::Result;
use crate::spec::{
    Deepstack, ImageAttention, ImagePositions, ImageRuns, Norm, PairOrder, PatchEmbedding, PatchGrid,
    PatchSamples, PatchSequence, Projector, Role, TowerSpec,
};

pub(super) struct Gemma3Tower;

const D_OUT: TowerKey = TowerKey { gguf: "projection_dim", hf: "" };
const BLOCK_SIDE: TowerKey = TowerKey { gguf: "projector.scale_factor", hf: "" };
/// Of every published model; GGUF files name no other.
const DEFAULT_BLOCK_SIDE: usize = 4;
const N_EMBEDDINGS: &str = "mm_tokens_per_image";
const DEFAULT_N_EMBEDDINGS: usize = 256;

impl TowerFamily for Gemma3Tower {
    fn projector_type(&self) -> &'static str {
        "gemma3"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["gemma3"]
    }

    fn spec(&self, params: &TowerParams<'_>) -> Result<TowerSpec> {
        let tower = siglip::Siglip::read(params, &siglip::DEFAULTS)?;
        let side = tower.image_size / tower.patch_size;
        let block_side = match params.is_gguf() {
            true => params.optional_count(BLOCK_SIDE, siglip::MAX_SIDE)?.unwrap_or(DEFAULT_BLOCK_SIDE),
            false => {
                let n = params.model_count(N_EMBEDDINGS, MAX_WIDTH)?.unwrap_or(DEFAULT_N_EMBEDDINGS);
                side / n.isqrt()
            }
        };
        if side == 0 || block_side == 0 || !side.is_multiple_of(block_side) {
            return Err(params.unsupported(&format!("blocks of {block_side} patches in a side of {side}")));
        }
        let Norm::Layer { eps, .. } = tower.norm else { unreachable!("SigLIP has layer norms") };
        // GGUF files store the weight with 1 added.
        let offset = if params.is_gguf() { 0.0 } else { 1.0 };
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
                merge: RowMerge::Mean,
                scale: 1.0,
                is_standardized: false,
                is_joined: false,
                norm: Norm::Rms { eps, offset },
                hidden: None,
                d_out,
            },
            deepstack: Deepstack::NONE,
            seen: ImageAttention::Whole,
            positions: ImagePositions::Line,
            runs: ImageRuns::Whole,
        })
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        // Stored as [in, out] in either container.
        let projection =
            |name| vec![TensorName { name, form: TensorForm::Transposed(&[Role::ProjectorOut]) }];
        match (container, role) {
            (Container::Gguf { .. }, Role::ProjectorNorm) => vec!["mm.soft_emb_norm.weight".into()],
            (Container::Gguf { .. }, Role::ProjectorOut) => projection("mm.input_projection.weight"),
            (Container::Safetensors, Role::ProjectorNorm) => {
                vec!["multi_modal_projector.mm_soft_emb_norm.weight".into()]
            }
            (Container::Safetensors, Role::ProjectorOut) => {
                projection("multi_modal_projector.mm_input_projection_weight")
            }
            _ => siglip::tensor_names(container, role),
        }
    }
}
