//! Phi 3.5 MoE: layer norms, biases also of the output matrix, LongRoPE with given factors, and experts that
//! SparseMixer chooses.

use kernels::{Activation, ExpertScoring};
use weights::Container;

use super::hparams::{HParamKey, HParams, MAX_EXPERTS, MAX_FACTOR, MAX_WIDTH};
use super::tensor_names::TensorName;
use super::{Architecture, keys, llama, names};
use crate::error::Result;
use crate::spec::{ExpertForm, Experts, Ffn, ModelSpec, Norm, Role, Rope, Router, RouterInput};

pub(super) struct PhiMoe;

const N_EXPERTS: HParamKey = HParamKey { gguf: keys::N_EXPERTS.gguf, hf: "num_local_experts" };
const JITTER: HParamKey = HParamKey { gguf: "", hf: "router_jitter_noise" };
const DEFAULT_JITTER: f64 = 0.01;
/// Factor on the rotated values of the published model. A GGUF has another, by llama.cpp's own rule.
const ROPE_FACTOR: f32 = 1.243_163_1;
/// SparseMixer is defined for two.
const N_USED: usize = 2;

impl Architecture for PhiMoe {
    fn gguf_name(&self) -> &'static str {
        "phimoe"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["phimoe"]
    }

    fn hf_defaults(&self) -> &'static [(&'static str, f64)] {
        &[
            ("rms_norm_eps", 1e-5),
            ("rope_theta", 1e6),
            ("num_local_experts", 16.0),
            ("num_experts_per_tok", 2.0),
            ("max_position_embeddings", 131_072.0),
        ]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let norm = Norm::Layer { eps: hparams.real(keys::RMS_EPS, 0.0, 1.0)? as f32, bias: true };
        let ffn = Ffn::Experts(experts(hparams)?);
        let mut spec = llama::spec_normed(hparams, self.gguf_name(), false, ffn, norm)?;
        spec.output_bias = match hparams.is_gguf() {
            true => hparams.has_tensor(Role::OutputBias, None),
            false => hparams.flag("lm_head_bias", false)?,
        };
        let window = hparams.window()?;
        let is_gguf = hparams.is_gguf();
        for attention in spec.attentions_mut() {
            attention.window = window;
            attention.set_rope_half();
            if let Rope::Rotary(rotary) = &mut attention.rope
                && is_gguf
                && rotary.mscale != 1.0
            {
                rotary.mscale = ROPE_FACTOR;
            }
        }
        Ok(spec)
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        let name = match (container, role) {
            (Container::Safetensors, Role::Router) => "block_sparse_moe.gate.weight",
            (Container::Safetensors, Role::ExpertGate) => "block_sparse_moe.experts.#.w1.weight",
            (Container::Safetensors, Role::ExpertUp) => "block_sparse_moe.experts.#.w3.weight",
            (Container::Safetensors, Role::ExpertDown) => "block_sparse_moe.experts.#.w2.weight",
            _ => return names::plain(container, role),
        };
        vec![name.into()]
    }
}

fn experts(hparams: &HParams<'_>) -> Result<Experts> {
    let n_experts = hparams.count(N_EXPERTS, MAX_EXPERTS)?;
    let n_used = hparams.count(keys::N_EXPERTS_USED, n_experts)?;
    if n_used != N_USED {
        return Err(hparams.unsupported(&format!("{n_used} experts for each token instead of {N_USED}")));
    }
    let jitter = hparams.optional_real(JITTER, 0.0, MAX_FACTOR)?.unwrap_or(DEFAULT_JITTER);
    Ok(Experts {
        n_experts,
        n_used,
        d_ff: hparams.count(keys::D_FF, MAX_WIDTH)?,
        activation: hparams.activation("hidden_act", Activation::Silu)?,
        renormalize: false,
        expert_scale: false,
        router_bias: false,
        bias: false,
        router_input: RouterInput::Normed,
        shared: None,
        form: ExpertForm::Gated,
        router: Router {
            scoring: ExpertScoring::SparseMixer { jitter: jitter as f32 },
            ..Router::default()
        },
    })
}
