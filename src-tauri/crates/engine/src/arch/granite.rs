//! Granite 3 and 4, dense or with experts: llama with factors on the embedding, the scores of attention, what layers
//! add, and the logits.

use kernels::Activation;
use weights::Container;

use super::hparams::{HParamKey, HParams, MAX_EXPERTS, MAX_FACTOR, MAX_WIDTH};
use super::tensor_names::TensorName;
use super::{Architecture, keys, llama, names};
use crate::error::Result;
use crate::spec::{ExpertForm, Experts, Ffn, ModelSpec, Role, Router, RouterInput};

pub(super) struct Granite;
pub(super) struct GraniteMoe;

const EMBEDDING_FACTOR: HParamKey = HParamKey { gguf: "embedding_scale", hf: "embedding_multiplier" };
const ATTENTION_FACTOR: HParamKey = HParamKey { gguf: "attention.scale", hf: "attention_multiplier" };
const RESIDUAL_FACTOR: HParamKey = HParamKey { gguf: "residual_scale", hf: "residual_multiplier" };
/// Divides the logits.
const LOGITS_DIVISOR: HParamKey = HParamKey { gguf: "logit_scale", hf: "logits_scaling" };
const N_EXPERTS: HParamKey = HParamKey { gguf: keys::N_EXPERTS.gguf, hf: "num_local_experts" };
const SHARED_D_FF: HParamKey = HParamKey { gguf: keys::SHARED_D_FF.gguf, hf: "" };

/// As transformers' configurations.
const DEFAULTS: &[(&str, f64)] =
    &[("attention_multiplier", 1.0), ("rms_norm_eps", 1e-6), ("max_position_embeddings", 2048.0)];

impl Architecture for Granite {
    fn gguf_name(&self) -> &'static str {
        "granite"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["granite"]
    }

    fn hf_defaults(&self) -> &'static [(&'static str, f64)] {
        DEFAULTS
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let mut spec = llama::spec(hparams, self.gguf_name(), false)?;
        apply_factors(hparams, &mut spec)?;
        Ok(spec)
    }
}

impl Architecture for GraniteMoe {
    fn gguf_name(&self) -> &'static str {
        "granitemoe"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["granitemoe"]
    }

    fn hf_defaults(&self) -> &'static [(&'static str, f64)] {
        &[
            ("attention_multiplier", 1.0),
            ("rms_norm_eps", 1e-6),
            ("max_position_embeddings", 2048.0),
            ("num_local_experts", 8.0),
            ("num_experts_per_tok", 2.0),
        ]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        if hparams.optional_unbounded(SHARED_D_FF)?.is_some_and(|n| n > 0) {
            return Err(hparams.unsupported("a shared expert"));
        }
        let n_experts = hparams.count(N_EXPERTS, MAX_EXPERTS)?;
        let experts = Experts {
            n_experts,
            n_used: hparams.count(keys::N_EXPERTS_USED, n_experts)?,
            d_ff: hparams.count(keys::D_FF, MAX_WIDTH)?,
            activation: hparams.activation("hidden_act", Activation::Silu)?,
            // A softmax over the chosen logits is a softmax over all, divided by its sum over the chosen.
            renormalize: true,
            expert_scale: false,
            router_bias: false,
            bias: false,
            router_input: RouterInput::Normed,
            shared: None,
            router: Router::default(),
            form: ExpertForm::Gated,
        };
        let mut spec = llama::spec_with(hparams, self.gguf_name(), false, Ffn::Experts(experts))?;
        apply_factors(hparams, &mut spec)?;
        Ok(spec)
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        const GATE_UP: &[Role] = &[Role::ExpertGate, Role::ExpertUp];
        match (container, role) {
            (Container::Safetensors, Role::Router) => vec!["block_sparse_moe.router.layer.weight".into()],
            (Container::Safetensors, Role::ExpertGate | Role::ExpertUp) => {
                vec![TensorName::rows("block_sparse_moe.input_linear.weight", GATE_UP)]
            }
            (Container::Safetensors, Role::ExpertDown) => {
                vec!["block_sparse_moe.output_linear.weight".into()]
            }
            _ => names::plain(container, role),
        }
    }
}

/// Reads the four factors. In a GGUF 0 means none.
pub(super) fn apply_factors(hparams: &HParams<'_>, spec: &mut ModelSpec) -> Result<()> {
    let factor = |key: HParamKey| -> Result<Option<f32>> {
        let found = hparams.optional_real(key, -MAX_FACTOR, MAX_FACTOR)?;
        Ok(found.filter(|x| *x != 0.0 || !hparams.is_gguf()).map(|x| x as f32))
    };
    spec.embedding.scale = factor(EMBEDDING_FACTOR)?.unwrap_or(1.0);
    let residual_scale = factor(RESIDUAL_FACTOR)?.filter(|x| *x != 1.0);
    spec.layers.iter_mut().for_each(|layer| layer.residual_scale = residual_scale);
    if let Some(scale) = factor(ATTENTION_FACTOR)? {
        spec.attentions_mut().for_each(|attention| attention.scale = scale);
    }
    if let Some(divisor) = factor(LOGITS_DIVISOR)? {
        if divisor == 0.0 {
            return Err(hparams.wrong(&hparams.name(LOGITS_DIVISOR), "it is 0".into()));
        }
        spec.output_scale = Some(divisor.recip());
    }
    Ok(())
}
