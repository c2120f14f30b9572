//! GPT-OSS: MXFP4 experts with biases and a clamped gate, attention sinks, a window in every second layer, YaRN.

use kernels::Activation;
use weights::Container;

use super::hparams::{HParams, HParamKey, MAX_EXPERTS, MAX_FACTOR, MAX_POSITIONS, MAX_WIDTH};
use super::tensor_names::{TensorForm, TensorName};
use super::{Architecture, keys, llama, names};
use crate::error::Result;
use crate::spec::{ExpertForm, Experts, Ffn, ModelSpec, Role, Router, RouterInput};

pub(super) struct GptOss;

const N_EXPERTS: HParamKey = HParamKey { gguf: keys::N_EXPERTS.gguf, hf: "num_local_experts" };
/// Width of each expert. config.json has no separate key for it.
const D_FF: HParamKey = HParamKey { gguf: keys::EXPERT_D_FF.gguf, hf: keys::D_FF.hf };
const LIMIT: HParamKey = HParamKey { gguf: "", hf: "swiglu_limit" };
/// Value of every published model. GGUF has no key for it.
const DEFAULT_LIMIT: f64 = 7.0;

impl Architecture for GptOss {
    fn gguf_name(&self) -> &'static str {
        "gpt-oss"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["gpt_oss"]
    }

    fn hf_quantization(&self) -> Option<&'static str> {
        Some("mxfp4")
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let mut spec = llama::spec_with(hparams, self.gguf_name(), false, Ffn::Experts(experts(hparams)?))?;
        let window = hparams.optional_count(keys::WINDOW, MAX_POSITIONS)?;
        let slides: Vec<bool> = match hparams.layer_types(spec.layers.len())? {
            Some(types) => types.iter().map(|kind| *kind == "sliding_attention").collect(),
            None => (0..spec.layers.len()).map(|layer| layer % 2 == 0).collect(),
        };
        for (attention, slides) in spec.attentions_mut().zip(slides) {
            attention.window = window.filter(|_| slides);
            attention.sinks = true;
            attention.qkv_bias = true;
            attention.out_bias = true;
            attention.set_rope_half();
        }
        Ok(spec)
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        match container {
            Container::Gguf { .. } => match role {
                Role::FfnNorm => vec!["post_attention_norm.weight".into(), "ffn_norm.weight".into()],
                _ => names::plain(container, role),
            },
            Container::Safetensors => hugging_face(role),
        }
    }
}

/// Rows of gate and up projections alternate. Experts are MXFP4 as published, or matrices of [in, out].
fn hugging_face(role: Role) -> Vec<TensorName> {
    const GATE_UP: &[Role] = &[Role::ExpertGate, Role::ExpertUp];
    const GATE_UP_BIAS: &[Role] = &[Role::ExpertGateBias, Role::ExpertUpBias];
    const DOWN: &[Role] = &[Role::ExpertDown];
    let tensor = |name, form| TensorName { name, form };
    match role {
        Role::Router => vec!["mlp.router.weight".into()],
        Role::RouterBias => vec!["mlp.router.bias".into()],
        Role::ExpertGate | Role::ExpertUp => {
            let name = "mlp.experts.gate_up_proj";
            vec![tensor(name, TensorForm::Mxfp4(GATE_UP)), tensor(name, TensorForm::TransposedInterleaved(GATE_UP))]
        }
        Role::ExpertDown => {
            let name = "mlp.experts.down_proj";
            vec![tensor(name, TensorForm::Mxfp4(DOWN)), tensor(name, TensorForm::Transposed(DOWN))]
        }
        Role::ExpertGateBias | Role::ExpertUpBias => {
            vec![tensor("mlp.experts.gate_up_proj_bias", TensorForm::Interleaved(GATE_UP_BIAS))]
        }
        Role::ExpertDownBias => vec!["mlp.experts.down_proj_bias".into()],
        other => names::plain(Container::Safetensors, other),
    }
}

fn experts(hparams: &HParams<'_>) -> Result<Experts> {
    let n_experts = hparams.count(N_EXPERTS, MAX_EXPERTS)?;
    let limit = hparams.optional_real(LIMIT, f64::MIN_POSITIVE, MAX_FACTOR)?.unwrap_or(DEFAULT_LIMIT);
    Ok(Experts {
        n_experts,
        n_used: hparams.count(keys::N_EXPERTS_USED, n_experts)?,
        d_ff: hparams.count(D_FF, MAX_WIDTH)?,
        activation: Activation::ClampedSwish { limit: limit as f32 },
        renormalize: true,
        expert_scale: false,
        router_bias: true,
        bias: true,
        router_input: RouterInput::Normed,
        shared: None,
        router: Router::default(),
        form: ExpertForm::Gated,
    })
}
