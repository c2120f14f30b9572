//! GLM 4.5 and 4.6: partial rotation, biases of queries, keys and values, and experts as in DeepSeek V3.

use weights::Container;

use super::hparams::{HParamKey, HParams};
use super::tensor_names::TensorName;
use super::{Architecture, biased_router, llama};
use crate::error::Result;
use crate::spec::{ModelSpec, Role};

pub(super) struct Glm4Moe;

/// Layers at a GGUF's end for multi-token prediction. Plain decoding leaves them out.
const N_DRAFT_LAYERS: HParamKey = HParamKey { gguf: "nextn_predict_layers", hf: "" };

impl Architecture for Glm4Moe {
    fn gguf_name(&self) -> &'static str {
        "glm4moe"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["glm4_moe"]
    }

    fn hf_defaults(&self) -> &'static [(&'static str, f64)] {
        &[
            ("rms_norm_eps", 1e-5),
            ("partial_rotary_factor", 0.5),
            ("max_position_embeddings", 131_072.0),
            ("n_routed_experts", 128.0),
            ("n_shared_experts", 1.0),
            ("num_experts_per_tok", 8.0),
            ("first_k_dense_replace", 1.0),
        ]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let mut spec = llama::spec(hparams, self.gguf_name(), false)?;
        let n_draft_layers = hparams.optional_unbounded(N_DRAFT_LAYERS)?.unwrap_or(0);
        let n_layers = spec.layers.len() as u64;
        if n_draft_layers >= n_layers {
            let message = format!("{n_draft_layers} of {n_layers} layers");
            return Err(hparams.wrong(&hparams.name(N_DRAFT_LAYERS), message));
        }
        spec.layers.truncate((n_layers - n_draft_layers) as usize);
        let norm = spec.output_norm;
        let has_norms = match hparams.is_gguf() {
            true => hparams.has_tensor(Role::QueryNorm, Some(0)),
            false => hparams.flag("use_qk_norm", false)?,
        };
        for attention in spec.attentions_mut() {
            attention.qk_norm = has_norms.then_some(norm);
            attention.out_bias = false;
            attention.set_rope_half();
        }
        biased_router::add_experts(hparams, &mut spec, true)?;
        Ok(spec)
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        match (container, role) {
            (Container::Gguf { .. }, Role::FfnNorm) => vec!["post_attention_norm.weight".into()],
            _ => biased_router::tensor_names(container, role),
        }
    }
}
