//! Qwen3-Next: as Qwen 3.5 with experts, but queries, keys, values and gates of a DeltaNet alternate by key head.

use kernels::{Activation, HeadOrder};
use weights::Container;

use super::hparams::{HParams, MAX_WIDTH};
use super::tensor_names::{TensorForm, TensorName};
use super::{Architecture, keys, qwen, qwen35};
use crate::error::Result;
use crate::spec::{Dense, DraftBlock, Experts, Ffn, Mixer, ModelSpec, Role, SharedExpert, SharedWeight};

pub(super) struct Qwen3Next;

impl Architecture for Qwen3Next {
    fn gguf_name(&self) -> &'static str {
        "qwen3next"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["qwen3_next"]
    }

    fn hf_defaults(&self) -> &'static [(&'static str, f64)] {
        &[
            ("rms_norm_eps", 1e-6),
            ("head_dim", 256.0),
            ("partial_rotary_factor", 0.25),
            ("max_position_embeddings", 32_768.0),
            ("linear_conv_kernel_dim", 4.0),
            ("linear_key_head_dim", 128.0),
            ("linear_value_head_dim", 128.0),
            ("linear_num_key_heads", 16.0),
            ("linear_num_value_heads", 32.0),
        ]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let d_ff = hparams.count(keys::SHARED_D_FF, MAX_WIDTH)?;
        let shared = SharedExpert { d_ff, weight: SharedWeight::Gate };
        let renormalize = hparams.is_gguf() || hparams.flag("norm_topk_prob", true)?;
        let experts = Experts { shared: Some(shared), renormalize, ..qwen::experts(hparams)? };
        let mut spec = qwen35::spec(hparams, self.gguf_name(), Ffn::Experts(experts))?;
        let sparse = qwen::sparse_layers(hparams, spec.layers.len())?;
        for (layer, is_sparse) in spec.layers.iter_mut().zip(sparse) {
            if let Mixer::DeltaNet(delta) = &mut layer.mixer {
                delta.order = HeadOrder::Grouped;
            }
            if !is_sparse {
                layer.ffn = Ffn::Gated(Dense {
                    d_ff: hparams.count(keys::D_FF, MAX_WIDTH)?,
                    activation: hparams.activation("hidden_act", Activation::Silu)?,
                    bias: false,
                });
            }
        }
        Ok(spec)
    }

    fn draft_block(&self, hparams: &HParams<'_>, spec: &ModelSpec) -> Result<Option<DraftBlock>> {
        qwen35::draft_block(hparams, spec)
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        let by_key_head = |name| TensorName { name, form: TensorForm::ByKeyHead };
        match (container, role) {
            (Container::Gguf { .. }, Role::DeltaQkv) => {
                vec!["attn_qkv.weight".into(), by_key_head("ssm_in.weight")]
            }
            (Container::Gguf { .. }, Role::DeltaGate) => {
                vec!["attn_gate.weight".into(), by_key_head("ssm_in.weight")]
            }
            (Container::Gguf { .. }, Role::DeltaBeta) => vec!["ssm_beta.weight".into(), by_key_head("ssm_ba.weight")],
            (Container::Gguf { .. }, Role::DeltaAlpha) => vec!["ssm_alpha.weight".into(), by_key_head("ssm_ba.weight")],
            (Container::Safetensors, Role::DeltaQkv | Role::DeltaGate) => {
                vec![by_key_head("linear_attn.in_proj_qkvz.weight")]
            }
            (Container::Safetensors, Role::DeltaBeta | Role::DeltaAlpha) => {
                vec![by_key_head("linear_attn.in_proj_ba.weight")]
            }
            _ => qwen35::tensor_names(container, role),
        }
    }
}
