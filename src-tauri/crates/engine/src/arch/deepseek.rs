//! DeepSeek V2, V3 and Moonlight: latent attention, experts in all layers but the first.

use kernels::{Activation, ExpertScoring, RopeStyle};
use weights::Container;

use super::hparams::{HParamKey, HParams, MAX_LAYERS, MAX_WIDTH};
use super::tensor_names::TensorName;
use super::{Architecture, biased_router, keys, latent};
use crate::error::Result;
use crate::spec::{Dense, Ffn, ModelSpec, Role};

pub(super) struct DeepSeek;

/// Layers at a GGUF's end for multi-token prediction. Plain decoding leaves them out.
const N_DRAFT_LAYERS: HParamKey = HParamKey { gguf: "nextn_predict_layers", hf: "" };
const N_EXPERTS: HParamKey = HParamKey { gguf: keys::N_EXPERTS.gguf, hf: "n_routed_experts" };
/// Every how many layers there are experts, behind the dense ones.
const FREQUENCY: HParamKey = HParamKey { gguf: "", hf: "moe_layer_freq" };

impl Architecture for DeepSeek {
    fn gguf_name(&self) -> &'static str {
        "deepseek2"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["deepseek_v3", "deepseek_v2"]
    }

    fn hf_defaults(&self) -> &'static [(&'static str, f64)] {
        &[("rms_norm_eps", 1e-6)]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let dense = Dense {
            d_ff: hparams.count(keys::D_FF, MAX_WIDTH)?,
            activation: hparams.activation("hidden_act", Activation::Silu)?,
            bias: false,
        };
        if hparams.flag("mlp_bias", false)? {
            return Err(hparams.unsupported("biases of the feed-forward part (mlp_bias)"));
        }
        let style = match hparams.flag("rope_interleave", true)? {
            true => RopeStyle::Interleaved,
            false => RopeStyle::Half,
        };
        let mut spec = latent::spec(hparams, self.gguf_name(), (false, Ffn::Gated(dense)), style)?;
        let n_draft_layers = hparams.optional_unbounded(N_DRAFT_LAYERS)?.unwrap_or(0);
        let n_layers = spec.layers.len() as u64;
        if n_draft_layers >= n_layers {
            let message = format!("{n_draft_layers} of {n_layers} layers");
            return Err(hparams.wrong(&hparams.name(N_DRAFT_LAYERS), message));
        }
        spec.layers.truncate((n_layers - n_draft_layers) as usize);
        if hparams.optional_unbounded(N_EXPERTS)?.is_some_and(|n| n > 0) {
            if hparams.optional_count(FREQUENCY, MAX_LAYERS)?.is_some_and(|n| n != 1) {
                return Err(hparams.unsupported("experts in some of the later layers only (moe_layer_freq)"));
            }
            let is_v3 = hparams.value("model_type").and_then(|name| name.as_str()) == Some("deepseek_v3");
            biased_router::add_scored_experts(hparams, &mut spec, is_v3, scoring(hparams, is_v3)?)?;
        }
        Ok(spec)
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        match role {
            Role::SharedGate | Role::SharedUp | Role::SharedDown => biased_router::tensor_names(container, role),
            _ => latent::tensor_names(container, role),
        }
    }
}

/// Reads how experts are scored, and checks how they are chosen.
fn scoring(hparams: &HParams<'_>, is_v3: bool) -> Result<ExpertScoring> {
    let text = |key: &str| hparams.value(key).and_then(|name| name.as_str());
    if let Some(method) = text("topk_method")
        && !["greedy", "group_limited_greedy", "noaux_tc"].contains(&method)
    {
        return Err(hparams.unsupported(&format!("experts chosen by \"{method}\" (topk_method)")));
    }
    match text("scoring_func") {
        Some("sigmoid") => Ok(ExpertScoring::Sigmoid),
        Some("softmax") => Ok(ExpertScoring::Softmax),
        Some(other) => Err(hparams.unsupported(&format!("experts scored by \"{other}\" (scoring_func)"))),
        None if is_v3 => Ok(ExpertScoring::Sigmoid),
        None => Ok(ExpertScoring::Softmax),
    }
}
