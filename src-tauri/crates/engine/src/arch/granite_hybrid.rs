//! Granite 4 hybrid: state spaces with attention in a few layers, each beside experts and a shared part, or that part
//! alone; the factors of Granite.

use kernels::Activation;
use weights::Container;

use super::hparams::{HParamKey, HParams, MAX_EXPERTS, MAX_HEADS, MAX_LAYERS, MAX_POSITIONS, MAX_WIDTH};
use super::ssm::{self, PREFIXED};
use super::tensor_names::TensorName;
use super::{Architecture, granite, keys, llama, names, rope};
use crate::error::Result;
use crate::spec::{
    Dense, Embedding, ExpertForm, Experts, Ffn, Mixer, ModelSpec, Norm, Role, Rope, Router, RouterInput,
    SharedExpert, SharedWeight,
};

pub(super) struct GraniteHybrid;

const N_EXPERTS: HParamKey = HParamKey { gguf: keys::N_EXPERTS.gguf, hf: "num_local_experts" };
const SHARED_D_FF: HParamKey = HParamKey { gguf: keys::SHARED_D_FF.gguf, hf: "shared_intermediate_size" };
/// Whether a GGUF's attention is rotated.
const ROTATES: &str = "rope.scaling.finetuned";

impl Architecture for GraniteHybrid {
    fn gguf_name(&self) -> &'static str {
        "granitehybrid"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["granitemoehybrid"]
    }

    fn hf_defaults(&self) -> &'static [(&'static str, f64)] {
        &[("attention_multiplier", 1.0), ("rms_norm_eps", 1e-6), ("max_position_embeddings", 2048.0)]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let n_layers = hparams.count(keys::N_LAYERS, MAX_LAYERS)?;
        let d_model = hparams.count(keys::D_MODEL, MAX_WIDTH)?;
        let norm = Norm::rms(hparams.real(keys::RMS_EPS, 0.0, 1.0)? as f32);
        let attends = attends(hparams, n_layers)?;
        let ssm = match attends.iter().position(Option::is_none) {
            Some(layer) => Some(ssm::read(hparams, &PREFIXED, d_model, (Some(norm), layer))?),
            None => None,
        };
        let ffn = ffn(hparams)?;
        let n_heads = hparams.count(keys::N_HEADS, MAX_HEADS)?;
        let mut layers = Vec::with_capacity(n_layers);
        for (layer, n_kv_heads) in attends.into_iter().enumerate() {
            let mixer = match (n_kv_heads, &ssm) {
                (None, Some(ssm)) => Mixer::Ssm(ssm.clone()),
                (n_kv_heads, _) => {
                    let n_kv_heads = n_kv_heads.unwrap_or(n_heads);
                    let head_dim = llama::head_dim(hparams, d_model, n_heads)?;
                    let heads = llama::AttentionHeads { n_heads, n_kv_heads, head_dim }.checked(hparams)?;
                    let mut attention = llama::plain_attention(heads, rope(hparams, head_dim)?);
                    let has = |role| match hparams.is_gguf() {
                        true => Ok(hparams.has_tensor(role, Some(layer))),
                        false => hparams.flag("attention_bias", false),
                    };
                    attention.qkv_bias = has(Role::QueryBias)?;
                    attention.out_bias = has(Role::AttentionOutBias)?;
                    Mixer::Attention(attention)
                }
            };
            layers.push(ssm::layer(norm, mixer, ffn.clone()));
        }
        let mut spec = ModelSpec {
            architecture: self.gguf_name(),
            n_vocab: hparams.n_vocab()?,
            d_model,
            context_length: hparams.count(keys::CONTEXT, MAX_POSITIONS)?,
            embedding: Embedding::PLAIN,
            layers,
            output_norm: norm,
            tied_embeddings: hparams.tied_embeddings(false)?,
            output_softcap: None,
            embeds: None,
            output_scale: None,
            output_bias: false,
            draft: None,
            assistance: None,
            streams: None,
        };
        granite::apply_factors(hparams, &mut spec)?;
        Ok(spec)
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        const GATE_UP: &[Role] = &[Role::ExpertGate, Role::ExpertUp];
        const SHARED_GATE_UP: &[Role] = &[Role::SharedGate, Role::SharedUp];
        let name = match (container, role) {
            (Container::Gguf { .. }, _) => return ssm::tensor_names(container, role),
            (Container::Safetensors, Role::Router) => "block_sparse_moe.router.layer.weight",
            (Container::Safetensors, Role::ExpertGate | Role::ExpertUp) => {
                return vec![TensorName::rows("block_sparse_moe.input_linear.weight", GATE_UP)];
            }
            (Container::Safetensors, Role::ExpertDown) => "block_sparse_moe.output_linear.weight",
            (Container::Safetensors, Role::SharedGate | Role::SharedUp) => {
                return vec![TensorName::rows("shared_mlp.input_linear.weight", SHARED_GATE_UP)];
            }
            (Container::Safetensors, Role::Gate | Role::Up) => {
                return vec![TensorName::rows("shared_mlp.input_linear.weight", names::GATE_UP)];
            }
            (Container::Safetensors, Role::SharedDown | Role::Down) => "shared_mlp.output_linear.weight",
            (Container::Safetensors, _) => return ssm::tensor_names(container, role),
        };
        vec![name.into()]
    }
}

/// Returns each layer's key-value heads. `None` for a state space.
fn attends(hparams: &HParams<'_>, n_layers: usize) -> Result<Vec<Option<usize>>> {
    let counts = hparams.counts_by_layer(keys::N_KV_HEADS, n_layers, MAX_HEADS)?;
    let n_heads = hparams.count(keys::N_HEADS, MAX_HEADS)?;
    let counts = counts.unwrap_or_else(|| vec![n_heads; n_layers]);
    let Some(types) = hparams.layer_types(n_layers)? else {
        return match hparams.is_gguf() {
            true => Ok(counts.into_iter().map(|n| Some(n).filter(|n| *n > 0)).collect()),
            // As transformers' configuration: state spaces throughout.
            false => Ok(vec![None; n_layers]),
        };
    };
    let attends = |(kind, n): (&&str, usize)| match *kind {
        "mamba" | "linear_attention" => Ok(None),
        "attention" | "full_attention" => Ok(Some(n)),
        other => Err(hparams.unsupported(&format!("layers of the kind \"{other}\" (layer_types)"))),
    };
    let counts = types.iter().zip(counts).map(attends).collect::<Result<Vec<_>>>()?;
    hparams.note_counts(keys::N_KV_HEADS, &counts.iter().map(|n| n.unwrap_or(0)).collect::<Vec<_>>());
    Ok(counts)
}

fn rope(hparams: &HParams<'_>, head_dim: usize) -> Result<Rope> {
    let rotates = match hparams.is_gguf() {
        true => hparams.optional_flag(ROTATES)?.unwrap_or(true),
        false => match hparams.value("position_embedding_type").map(|kind| kind.as_str()) {
            Some(Some("rope")) => true,
            None | Some(Some("nope")) => false,
            Some(other) => {
                let other = other.unwrap_or("no name");
                return Err(hparams.unsupported(&format!("positions by \"{other}\" (position_embedding_type)")));
            }
        },
    };
    hparams.note(ROTATES, weights::write::OwnedValue::Bool(rotates));
    if rotates { Ok(Rope::Rotary(rope::rotary(hparams, head_dim)?)) } else { Ok(Rope::None) }
}

fn ffn(hparams: &HParams<'_>) -> Result<Ffn> {
    let activation = hparams.activation("hidden_act", Activation::Silu)?;
    let shared = hparams.optional_unbounded(SHARED_D_FF)?.filter(|n| *n > 0);
    if hparams.optional_unbounded(N_EXPERTS)?.unwrap_or(0) == 0 {
        let key = if shared.is_some() { SHARED_D_FF } else { keys::D_FF };
        let d_ff = hparams.count(key, MAX_WIDTH)?;
        hparams.note_count(keys::D_FF, d_ff);
        return Ok(Ffn::Gated(Dense { d_ff, activation, bias: false }));
    }
    let n_experts = hparams.count(N_EXPERTS, MAX_EXPERTS)?;
    let shared = match shared {
        Some(_) => {
            let d_ff = hparams.count(SHARED_D_FF, MAX_WIDTH)?;
            Some(SharedExpert { d_ff, weight: SharedWeight::One })
        }
        None => None,
    };
    Ok(Ffn::Experts(Experts {
        n_experts,
        n_used: hparams.count(keys::N_EXPERTS_USED, n_experts)?,
        d_ff: hparams.count(keys::D_FF, MAX_WIDTH)?,
        activation,
        // A softmax over the chosen logits is a softmax over all, divided by its sum over the chosen.
        renormalize: true,
        expert_scale: false,
        router_bias: false,
        bias: false,
        router_input: RouterInput::Normed,
        shared,
        router: Router::default(),
        form: ExpertForm::Gated,
    }))
}
