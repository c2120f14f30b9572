//! Hunyuan V1, dense or with experts: llama with heads normed after their rotation, whose base grows by a factor
//! alpha.

use kernels::Activation;
use weights::Container;

use super::hparams::{HParamKey, HParams, MAX_EXPERTS, MAX_WIDTH};
use super::tensor_names::TensorName;
use super::{Architecture, keys, llama, names};
use crate::error::Result;
use crate::spec::{ExpertForm, Experts, Ffn, ModelSpec, QkNormForm, Role, Router, RouterInput, SharedExpert, SharedWeight};

pub(super) struct HunyuanDense;
pub(super) struct HunyuanMoe;

const N_USED: HParamKey = HParamKey { gguf: keys::N_EXPERTS_USED.gguf, hf: "moe_topk" };
const N_SHARED: HParamKey = HParamKey { gguf: "expert_shared_count", hf: "num_shared_expert" };
const SHARED_D_FF: HParamKey = HParamKey { gguf: keys::SHARED_D_FF.gguf, hf: "" };
const N_DENSE: HParamKey = HParamKey { gguf: "leading_dense_block_count", hf: "moe_layer_num_skipped" };

impl Architecture for HunyuanDense {
    fn gguf_name(&self) -> &'static str {
        "hunyuan-dense"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["hunyuan_v1_dense"]
    }

    fn hf_defaults(&self) -> &'static [(&'static str, f64)] {
        &[("rms_norm_eps", 1e-5), ("max_position_embeddings", 2048.0)]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        dense(hparams, self.gguf_name())
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        tensor_names(container, role)
    }
}

impl Architecture for HunyuanMoe {
    fn gguf_name(&self) -> &'static str {
        "hunyuan-moe"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["hunyuan_v1_moe"]
    }

    fn hf_defaults(&self) -> &'static [(&'static str, f64)] {
        &[("rms_norm_eps", 1e-5), ("max_position_embeddings", 2048.0)]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let mut spec = dense(hparams, self.gguf_name())?;
        if hparams.optional_unbounded(N_DENSE)?.is_some_and(|n| n > 0) {
            return Err(hparams.unsupported("layers without experts before those with some"));
        }
        let experts = experts(hparams, spec.layers.len())?;
        for (layer, experts) in spec.layers.iter_mut().zip(experts) {
            layer.ffn = Ffn::Experts(experts);
        }
        Ok(spec)
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        match (container, role) {
            (Container::Safetensors, Role::Router) => vec!["mlp.gate.wg.weight".into()],
            (Container::Safetensors, Role::SharedGate) => vec!["mlp.shared_mlp.gate_proj.weight".into()],
            (Container::Safetensors, Role::SharedUp) => vec!["mlp.shared_mlp.up_proj.weight".into()],
            (Container::Safetensors, Role::SharedDown) => vec!["mlp.shared_mlp.down_proj.weight".into()],
            _ => tensor_names(container, role),
        }
    }
}

fn tensor_names(container: Container, role: Role) -> Vec<TensorName> {
    match (container, role) {
        (Container::Safetensors, Role::QueryNorm) => vec!["self_attn.query_layernorm.weight".into()],
        (Container::Safetensors, Role::KeyNorm) => vec!["self_attn.key_layernorm.weight".into()],
        _ => names::plain(container, role),
    }
}

fn dense(hparams: &HParams<'_>, architecture: &'static str) -> Result<ModelSpec> {
    if hparams.flag("use_cla", false)? {
        return Err(hparams.unsupported("layers that share keys and values (use_cla)"));
    }
    let mut spec = llama::spec(hparams, architecture, false)?;
    let norm = spec.output_norm;
    let has_norms = hparams.has_tensor(Role::QueryNorm, Some(0));
    for attention in spec.attentions_mut() {
        attention.qk_norm = has_norms.then_some(norm);
        attention.qk_norm_form = QkNormForm::RotatedHead;
        attention.set_rope_half();
    }
    Ok(spec)
}

/// Reads the experts of each layer, beside a shared one in models that mix both. Without a key of their own experts
/// are as wide as the feed-forward part would be.
fn experts(hparams: &HParams<'_>, n_layers: usize) -> Result<Vec<Experts>> {
    let by_layer = |key, max| hparams.positive_counts_by_layer(key, n_layers, max);
    let n_experts = by_layer(keys::N_EXPERTS, MAX_EXPERTS)?;
    let n_experts = n_experts.ok_or_else(|| hparams.missing(&hparams.name(keys::N_EXPERTS)))?;
    let n_used = by_layer(N_USED, MAX_EXPERTS)?.unwrap_or_else(|| vec![1; n_layers]);
    let d_ff = hparams.count(keys::D_FF, MAX_WIDTH)?;
    let widths = by_layer(keys::EXPERT_D_FF, MAX_WIDTH)?.unwrap_or_else(|| vec![d_ff; n_layers]);
    let shared_d_ff = match by_layer(SHARED_D_FF, MAX_WIDTH)? {
        Some(widths) => widths.into_iter().map(Some).collect(),
        None if !hparams.flag("use_mixed_mlp_moe", true)? => vec![None; n_layers],
        None => {
            let n_shared = by_layer(N_SHARED, MAX_EXPERTS)?.unwrap_or_else(|| vec![1; n_layers]);
            let shared: Vec<usize> = n_shared.iter().map(|n| n.saturating_mul(d_ff)).collect();
            hparams.note_count(SHARED_D_FF, shared[0]);
            shared.into_iter().map(Some).collect()
        }
    };
    let activation = hparams.activation("hidden_act", Activation::Silu)?;
    let one = |layer: usize| {
        let bounded = |n| hparams.bounded(&hparams.name(N_SHARED), n, MAX_WIDTH);
        let shared = shared_d_ff[layer].map(bounded).transpose()?;
        Ok(Experts {
            n_experts: n_experts[layer],
            n_used: hparams.bounded(&hparams.name(N_USED), n_used[layer], n_experts[layer])?,
            d_ff: widths[layer],
            activation,
            renormalize: true,
            expert_scale: false,
            router_bias: false,
            bias: false,
            router_input: RouterInput::Normed,
            shared: shared.map(|d_ff| SharedExpert { d_ff, weight: SharedWeight::One }),
            router: Router::default(),
            form: ExpertForm::Gated,
        })
    };
    (0..n_layers).map(one).collect()
}
