//! Bamba: state spaces, and attention that rotates half of each head in a few layers.

use serde_json::Value;

use kernels::{Activation, RopeStyle};
use weights::Container;

use super::hparams::{HParamKey, HParams, MAX_HEADS, MAX_LAYERS, MAX_POSITIONS, MAX_WIDTH};
use super::ssm::{self, PREFIXED};
use super::tensor_names::TensorName;
use super::{Architecture, keys, llama, rope};
use crate::error::Result;
use crate::spec::{
    Attention, Dense, Embedding, Ffn, Mixer, ModelSpec, Norm, Role, Rope, Rotary,
};

pub(super) struct Bamba;

/// Rotated elements of a head: always half of them.
const N_ROT: HParamKey = HParamKey { gguf: "", hf: "attn_rotary_emb" };
const ATTENTION_LAYERS: &str = "attn_layer_indices";

impl Architecture for Bamba {
    fn gguf_name(&self) -> &'static str {
        "bamba"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["bamba"]
    }

    fn hf_defaults(&self) -> &'static [(&'static str, f64)] {
        &[("partial_rotary_factor", 0.5), ("max_position_embeddings", 262_144.0), ("rms_norm_eps", 1e-5)]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let n_layers = hparams.count(keys::N_LAYERS, MAX_LAYERS)?;
        let d_model = hparams.count(keys::D_MODEL, MAX_WIDTH)?;
        let norm = Norm::rms(hparams.real(keys::RMS_EPS, 0.0, 1.0)? as f32);
        let attends = attends(hparams, n_layers)?;
        let ssm = match attends.iter().position(|attends| !attends) {
            Some(layer) => Some(ssm::read(hparams, &PREFIXED, d_model, (Some(norm), layer))?),
            None => None,
        };
        let attention = attention(hparams, d_model)?;
        let dense = Dense {
            d_ff: hparams.count(keys::D_FF, MAX_WIDTH)?,
            activation: hparams.activation("hidden_act", Activation::Silu)?,
            bias: hparams.has_bias("mlp_bias", Role::GateBias)?,
        };
        let layer = |attends: bool| {
            let mixer = match &ssm {
                Some(ssm) if !attends => Mixer::Ssm(ssm.clone()),
                _ => Mixer::Attention(attention.clone()),
            };
            ssm::layer(norm, mixer, Ffn::Gated(dense))
        };
        Ok(ModelSpec {
            architecture: self.gguf_name(),
            n_vocab: hparams.n_vocab()?,
            d_model,
            context_length: hparams.count(keys::CONTEXT, MAX_POSITIONS)?,
            embedding: Embedding::PLAIN,
            layers: attends.into_iter().map(layer).collect(),
            output_norm: norm,
            tied_embeddings: hparams.tied_embeddings(false)?,
            output_softcap: None,
            embeds: None,
            output_scale: None,
            output_bias: false,
            draft: None,
            assistance: None,
            streams: None,
        })
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        tensor_names(container, role)
    }
}

/// Names of Bamba and Falcon H1.
pub(super) fn tensor_names(container: Container, role: Role) -> Vec<TensorName> {
    let name = match (container, role) {
        (Container::Gguf { .. }, _) => return ssm::tensor_names(container, role),
        (Container::Safetensors, Role::OutputNorm) => "final_layernorm.weight",
        (Container::Safetensors, Role::FfnNorm) => "pre_ff_layernorm.weight",
        (Container::Safetensors, Role::Gate) => "feed_forward.gate_proj.weight",
        (Container::Safetensors, Role::GateBias) => "feed_forward.gate_proj.bias",
        (Container::Safetensors, Role::Up) => "feed_forward.up_proj.weight",
        (Container::Safetensors, Role::UpBias) => "feed_forward.up_proj.bias",
        (Container::Safetensors, Role::Down) => "feed_forward.down_proj.weight",
        (Container::Safetensors, Role::DownBias) => "feed_forward.down_proj.bias",
        (Container::Safetensors, _) => return ssm::tensor_names(container, role),
    };
    vec![name.into()]
}

/// Returns which layers have attention.
fn attends(hparams: &HParams<'_>, n_layers: usize) -> Result<Vec<bool>> {
    if let Some(types) = hparams.layer_types(n_layers)? {
        let attends = |kind: &&str| match *kind {
            "mamba" | "linear_attention" => Ok(false),
            "attention" | "full_attention" => Ok(true),
            other => Err(hparams.unsupported(&format!("layers of the kind \"{other}\" (layer_types)"))),
        };
        return types.iter().map(attends).collect();
    }
    if hparams.is_gguf() {
        let counts = hparams.counts_by_layer(keys::N_KV_HEADS, n_layers, MAX_HEADS)?;
        return Ok(counts.unwrap_or_default().into_iter().map(|n| n > 0).collect());
    }
    let mut attends = vec![false; n_layers];
    let listed = match hparams.value(ATTENTION_LAYERS) {
        None => return Ok(attends),
        Some(Value::Array(listed)) => listed,
        Some(other) => return Err(hparams.wrong(ATTENTION_LAYERS, format!("{other} is not a list"))),
    };
    for value in listed {
        match value.as_u64().and_then(|layer| attends.get_mut(usize::try_from(layer).ok()?)) {
            Some(attends) => *attends = true,
            None => {
                return Err(hparams.wrong(ATTENTION_LAYERS, format!("{value} is not one of {n_layers} layers")));
            }
        }
    }
    Ok(attends)
}

fn attention(hparams: &HParams<'_>, d_model: usize) -> Result<Attention> {
    let n_heads = hparams.count(keys::N_HEADS, MAX_HEADS)?;
    let n_kv_heads = hparams.optional_count(keys::N_KV_HEADS, MAX_HEADS)?.unwrap_or(n_heads);
    let head_dim = llama::head_dim(hparams, d_model, n_heads)?;
    let heads = llama::AttentionHeads { n_heads, n_kv_heads, head_dim }.checked(hparams)?;
    let rotary = rope::rotary(hparams, head_dim)?;
    if hparams.optional_count(N_ROT, head_dim)?.is_some_and(|n| n != rotary.n_rot) {
        let message = format!("it is not the {} elements that are rotated", rotary.n_rot);
        return Err(hparams.wrong(N_ROT.hf, message));
    }
    let bias = hparams.flag("attention_bias", false)?;
    let rope = Rope::Rotary(Rotary { style: RopeStyle::Half, ..rotary });
    Ok(Attention { qkv_bias: bias, out_bias: bias, ..llama::plain_attention(heads, rope) })
}
