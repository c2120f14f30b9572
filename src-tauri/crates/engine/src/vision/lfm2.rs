//! LFM2-VL: SigLIP 2 over tiles of any shape, with a table of positions that is resampled to them; blocks of patches
//! joined by two layers.

use kernels::{Activation, RowMerge};
use weights::Container;

use super::params::{TowerKey, TowerParams};
use super::{TowerFamily, siglip};
use crate::arch::TensorName;
use crate::arch::hparams::{MAX_POSITIONS, MAX_WIDTH};
use crate::arch::numbers::bounded;
use crate::error::Result;
use crate::spec::{
    Deepstack, ImageAttention, ImagePositions, ImageRuns, Norm, PairOrder, PatchEmbedding, PatchGrid,
    PatchSamples, PatchSequence, Projector, ProjectorHidden, Role, SampleOrder, TableResampling, TowerSpec,
};

pub(super) struct Lfm2Tower;

const D_OUT: TowerKey = TowerKey { gguf: "projection_dim", hf: "" };
const N_POSITIONS: TowerKey = TowerKey { gguf: "", hf: "num_patches" };
const BLOCK_SIDE: TowerKey = TowerKey { gguf: "projector.scale_factor", hf: "" };
const DEFAULT_N_POSITIONS: usize = 256;
const DEFAULT_BLOCK_SIDE: usize = 2;
const DEFAULT_HIDDEN: usize = 2560;
/// Fixed in the published code.
const PROJECTOR_EPS: f32 = 1e-5;
/// The last layer, after its norm.
const LAST_LAYER: i64 = -1;
const TABLE: &str = "v.position_embd.weight";
const HIDDEN: &str = "mm.1.weight";

impl TowerFamily for Lfm2Tower {
    fn projector_type(&self) -> &'static str {
        "lfm2"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["lfm2_vl"]
    }

    fn spec(&self, params: &TowerParams<'_>) -> Result<TowerSpec> {
        if let Some(layer) =
            params.model_value("vision_feature_layer").filter(|n| n.as_i64() != Some(LAST_LAYER))
        {
            return Err(params.unsupported(&format!("the output of layer {layer}")));
        }
        let tower = siglip::Siglip::read(params, &siglip::DEFAULTS)?;
        let n_positions = match params.shape_of(TABLE) {
            Some(shape) => shape.first().copied().unwrap_or(0),
            None => params.count_or(N_POSITIONS, MAX_POSITIONS, DEFAULT_N_POSITIONS)?,
        };
        let side = bounded("positions per side", n_positions.isqrt() as u64, siglip::MAX_SIDE)?;
        let block_side = match params.is_gguf() {
            true => params.optional_count(BLOCK_SIDE, siglip::MAX_SIDE)?,
            false => params.model_count("downsample_factor", siglip::MAX_SIDE)?,
        };
        // A repository's projection is a matrix over samples, a GGUF's a convolution.
        let stored = if params.is_gguf() { SampleOrder::ChannelsFirst } else { SampleOrder::ChannelsLast };
        Ok(TowerSpec {
            family: self.projector_type(),
            d_model: tower.d_model,
            patches: PatchEmbedding {
                size: tower.patch_size,
                n_frames: 1,
                bias: true,
                samples: PatchSamples { given: SampleOrder::ChannelsLast, stored, is_unit: false },
                sample_norm: Norm::None,
                embedding_norm: Norm::None,
                grid: PatchGrid::Resampled { side, rule: TableResampling::Antialiased },
                sequence: PatchSequence::Raster,
                norm: Norm::None,
            },
            layers: tower.layers,
            pairs: PairOrder::AsStored,
            has_bounds: false,
            output_norm: tower.norm,
            projector: projector(params, block_side.unwrap_or(DEFAULT_BLOCK_SIDE))?,
            deepstack: Deepstack::NONE,
            seen: ImageAttention::Causal,
            positions: ImagePositions::Line,
            runs: ImageRuns::Whole,
        })
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        let name = match (container, role) {
            (Container::Gguf { .. }, Role::ProjectorNorm) => "mm.input_norm.weight",
            (Container::Gguf { .. }, Role::ProjectorNormBias) => "mm.input_norm.bias",
            (Container::Gguf { .. }, Role::ProjectorHidden) => HIDDEN,
            (Container::Gguf { .. }, Role::ProjectorHiddenBias) => "mm.1.bias",
            (Container::Gguf { .. }, Role::ProjectorOut) => "mm.2.weight",
            (Container::Gguf { .. }, Role::ProjectorOutBias) => "mm.2.bias",
            (Container::Safetensors, Role::ProjectorNorm) => "multi_modal_projector.layer_norm.weight",
            (Container::Safetensors, Role::ProjectorNormBias) => "multi_modal_projector.layer_norm.bias",
            (Container::Safetensors, Role::ProjectorHidden) => "multi_modal_projector.linear_1.weight",
            (Container::Safetensors, Role::ProjectorHiddenBias) => "multi_modal_projector.linear_1.bias",
            (Container::Safetensors, Role::ProjectorOut) => "multi_modal_projector.linear_2.weight",
            (Container::Safetensors, Role::ProjectorOutBias) => "multi_modal_projector.linear_2.bias",
            _ => return siglip::tensor_names(container, role),
        };
        vec![name.into()]
    }
}

fn projector(params: &TowerParams<'_>, block_side: usize) -> Result<Projector> {
    let (has_norm, bias, width, d_out) = match params.is_gguf() {
        true => (
            params.has_tensor_with("mm.input_norm."),
            params.has_tensor_with("mm.1.bias"),
            params.shape_of(HIDDEN).and_then(|shape| shape.first().copied()).unwrap_or(0),
            params.count(D_OUT, MAX_WIDTH)?,
        ),
        false => (
            params.model_flag("projector_use_layernorm", true),
            params.model_flag("projector_bias", true),
            params.model_count("projector_hidden_size", MAX_WIDTH)?.unwrap_or(DEFAULT_HIDDEN),
            params.text_count("hidden_size", MAX_WIDTH)?,
        ),
    };
    let width = bounded("the projector's width", width as u64, MAX_WIDTH)?;
    let activation = params.projector_activation(Activation::Gelu)?;
    Ok(Projector {
        block_side,
        merge: RowMerge::Concat,
        scale: 1.0,
        is_standardized: false,
        is_joined: false,
        norm: if has_norm { Norm::Layer { eps: PROJECTOR_EPS, bias: true } } else { Norm::None },
        hidden: Some(ProjectorHidden { width, activation, bias }),
        d_out,
    })
}
