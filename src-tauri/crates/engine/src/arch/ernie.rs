//! ERNIE 4.5, dense or with experts: llama with rotated pairs side by side in either container. Experts are chosen by
//! biased scores, beside a shared one.

use kernels::{Activation, RopeStyle};
use serde_json::Value;
use weights::Container;

use super::hparams::{HParamKey, HParams, MAX_EXPERTS, MAX_LAYERS, MAX_WIDTH};
use super::tensor_names::TensorName;
use super::{Architecture, keys, llama, names};
use crate::error::Result;
use crate::spec::{Dense, ExpertForm, Experts, Ffn, ModelSpec, Role, Rope, Router, RouterInput, SharedExpert, SharedWeight};

pub(super) struct Ernie;
pub(super) struct ErnieMoe;

const N_EXPERTS: HParamKey = HParamKey { gguf: keys::N_EXPERTS.gguf, hf: "moe_num_experts" };
const N_USED: HParamKey = HParamKey { gguf: keys::N_EXPERTS_USED.gguf, hf: "moe_k" };
const N_SHARED: HParamKey = HParamKey { gguf: "expert_shared_count", hf: "moe_num_shared_experts" };
const SHARED_D_FF: HParamKey = HParamKey { gguf: keys::SHARED_D_FF.gguf, hf: "" };
const INTERVAL: HParamKey = HParamKey { gguf: "interleave_moe_layer_step", hf: "moe_layer_interval" };
const FIRST_SPARSE: HParamKey = HParamKey { gguf: "leading_dense_block_count", hf: "moe_layer_start_index" };
const LAST_SPARSE: &str = "moe_layer_end_index";
const MIN_SUM: HParamKey = HParamKey { gguf: "", hf: "moe_norm_min" };
const DEFAULT_MIN_SUM: f64 = 1e-12;

impl Architecture for Ernie {
    fn gguf_name(&self) -> &'static str {
        "ernie4_5"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["ernie4_5"]
    }

    fn hf_defaults(&self) -> &'static [(&'static str, f64)] {
        &[("rms_norm_eps", 1e-5), ("rope_theta", 5e5), ("head_dim", 128.0), ("max_position_embeddings", 131_072.0)]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        dense(hparams, self.gguf_name())
    }
}

impl Architecture for ErnieMoe {
    fn gguf_name(&self) -> &'static str {
        "ernie4_5-moe"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["ernie4_5_moe"]
    }

    fn hf_defaults(&self) -> &'static [(&'static str, f64)] {
        &[
            ("rms_norm_eps", 1e-5),
            ("rope_theta", 5e5),
            ("max_position_embeddings", 131_072.0),
            ("moe_num_experts", 64.0),
            ("moe_k", 6.0),
            ("moe_num_shared_experts", 2.0),
            ("moe_layer_start_index", 1.0),
        ]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let mut spec = dense(hparams, self.gguf_name())?;
        let sparse = sparse_layers(hparams, spec.layers.len())?;
        let Some(first) = sparse.iter().position(|is_sparse| *is_sparse) else { return Ok(spec) };
        let experts = experts(hparams, first)?;
        for (layer, _) in spec.layers.iter_mut().zip(sparse).filter(|(_, is_sparse)| *is_sparse) {
            layer.ffn = Ffn::Experts(experts.clone());
        }
        Ok(spec)
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        match (container, role) {
            (Container::Safetensors, Role::RouterSelectionBias) => {
                vec!["mlp.moe_statics.e_score_correction_bias".into()]
            }
            (Container::Safetensors, Role::SharedGate) => vec!["mlp.shared_experts.gate_proj.weight".into()],
            (Container::Safetensors, Role::SharedUp) => vec!["mlp.shared_experts.up_proj.weight".into()],
            (Container::Safetensors, Role::SharedDown) => vec!["mlp.shared_experts.down_proj.weight".into()],
            _ => names::plain(container, role),
        }
    }
}

/// Reads what both share. One flag stands for all biases.
fn dense(hparams: &HParams<'_>, architecture: &'static str) -> Result<ModelSpec> {
    let mut spec = llama::spec(hparams, architecture, true)?;
    let bias = |role| hparams.has_bias("use_bias", role);
    let (qkv_bias, out_bias, ffn_bias) =
        (bias(Role::QueryBias)?, bias(Role::AttentionOutBias)?, bias(Role::GateBias)?);
    for layer in &mut spec.layers {
        if let Some(attention) = layer.mixer.attention_mut() {
            attention.qkv_bias = qkv_bias;
            attention.out_bias = out_bias;
            if let Rope::Rotary(rotary) = &mut attention.rope {
                rotary.style = RopeStyle::Interleaved;
            }
        }
        if let Ffn::Gated(Dense { bias, .. }) = &mut layer.ffn {
            *bias = ffn_bias;
        }
    }
    Ok(spec)
}

/// Returns which layers have experts: every `interval`-th from a first to a last one.
fn sparse_layers(hparams: &HParams<'_>, n_layers: usize) -> Result<Vec<bool>> {
    let interval = hparams.optional_count(INTERVAL, MAX_LAYERS)?.unwrap_or(1);
    let first = hparams.optional_unbounded(FIRST_SPARSE)?.unwrap_or(0);
    let last = match hparams.value(LAST_SPARSE) {
        None => n_layers as u64,
        Some(Value::Number(n)) if n.as_i64() == Some(-1) => n_layers as u64,
        Some(value) => match value.as_u64() {
            Some(last) => last,
            None => return Err(hparams.wrong(LAST_SPARSE, format!("{value} is not the index of a layer"))),
        },
    };
    Ok((0..n_layers)
        .map(|layer| (first..=last).contains(&(layer as u64)) && (layer + 1) % interval == 0)
        .collect())
}

fn experts(hparams: &HParams<'_>, first: usize) -> Result<Experts> {
    if let Some(gate) = hparams.value("moe_gate").filter(|gate| gate.as_str() != Some("topk")) {
        return Err(hparams.unsupported(&format!("a router called {gate}")));
    }
    if hparams.flag("use_bias", false)? {
        return Err(hparams.unsupported("experts with biases (use_bias)"));
    }
    let n_experts = hparams.count(N_EXPERTS, MAX_EXPERTS)?;
    let d_ff = hparams.count(keys::EXPERT_D_FF, MAX_WIDTH)?;
    let n_shared = hparams.optional_unbounded(N_SHARED)?.unwrap_or(0);
    let shared_d_ff = match hparams.optional_unbounded(SHARED_D_FF)? {
        Some(n) => n,
        None => n_shared.saturating_mul(d_ff as u64),
    };
    let shared = match usize::try_from(shared_d_ff) {
        Ok(0) => None,
        n => {
            let n = hparams.bounded(&hparams.name(N_SHARED), n.unwrap_or(usize::MAX), MAX_WIDTH)?;
            hparams.note_count(SHARED_D_FF, n);
            Some(SharedExpert { d_ff: n, weight: SharedWeight::One })
        }
    };
    let min_sum = hparams.optional_real(MIN_SUM, 0.0, 1.0)?.unwrap_or(DEFAULT_MIN_SUM);
    let selection_bias = hparams.has_tensor(Role::RouterSelectionBias, Some(first));
    Ok(Experts {
        n_experts,
        n_used: hparams.count(N_USED, n_experts)?,
        d_ff,
        activation: hparams.activation("hidden_act", Activation::Silu)?,
        renormalize: true,
        expert_scale: false,
        router_bias: false,
        bias: false,
        router_input: RouterInput::Normed,
        shared,
        // The original takes the larger of the sum and the bound: the same where scores are not all but zero.
        router: Router { selection_bias, sum_epsilon: min_sum as f32, ..Router::default() },
        form: ExpertForm::Gated,
    })
}
