//! StableLM 2: layer norms, partial rotation; in some models attention and feed-forward part side by side, and heads
//! normed with weights of their own.

use weights::Container;

use super::hparams::{HParamKey, HParams, MAX_WIDTH};
use super::tensor_names::TensorName;
use super::{Architecture, keys, llama, names};
use crate::error::Result;
use crate::spec::{Dense, Ffn, ModelSpec, Norm, NormPosition, QkNormForm, Role};

pub(super) struct StableLm;

const EPS: HParamKey = HParamKey { gguf: "attention.layer_norm_epsilon", hf: "layer_norm_eps" };

impl Architecture for StableLm {
    fn gguf_name(&self) -> &'static str {
        "stablelm"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["stablelm", "stablelm_epoch"]
    }

    fn hf_defaults(&self) -> &'static [(&'static str, f64)] {
        &[("layer_norm_eps", 1e-5), ("partial_rotary_factor", 0.25), ("max_position_embeddings", 4096.0)]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let dense = Dense {
            d_ff: hparams.count(keys::D_FF, MAX_WIDTH)?,
            activation: hparams.activation("hidden_act", kernels::Activation::Silu)?,
            bias: false,
        };
        let eps = hparams.real(EPS, 0.0, 1.0)? as f32;
        let norm = Norm::Layer { eps, bias: true };
        let mut spec = llama::spec_normed(hparams, self.gguf_name(), false, Ffn::Gated(dense), norm)?;
        let qkv_bias = hparams.has_bias("use_qkv_bias", Role::QueryBias)?;
        let norms_heads = hparams.has_bias("qk_layernorm", Role::QueryNorm)?;
        for attention in spec.attentions_mut() {
            attention.qkv_bias = qkv_bias;
            attention.out_bias = false;
            attention.qk_norm = norms_heads.then_some(Norm::Layer { eps, bias: false });
            attention.qk_norm_form = QkNormForm::OwnHead;
            attention.set_rope_half();
        }
        let is_parallel = match hparams.is_gguf() {
            true => !hparams.has_tensor(Role::FfnNorm, Some(0)),
            false => hparams.flag("use_parallel_residual", false)?,
        };
        if is_parallel {
            for layer in &mut spec.layers {
                layer.norms = NormPosition::Parallel;
                layer.ffn_norm = Norm::None;
            }
        }
        Ok(spec)
    }

    /// Each head has a tensor.
    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        match (container, role) {
            (Container::Safetensors, Role::QueryNorm) => {
                vec!["self_attn.q_layernorm.norms.#.weight".into()]
            }
            (Container::Safetensors, Role::KeyNorm) => {
                vec!["self_attn.k_layernorm.norms.#.weight".into()]
            }
            _ => names::plain(container, role),
        }
    }
}
