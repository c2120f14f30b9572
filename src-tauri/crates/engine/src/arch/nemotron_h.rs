//! Nemotron-H: layers of one part each, a state space, attention without rotation, a plain feed-forward part, or
//! experts.

use serde_json::Value;

use kernels::{Activation, ExpertScoring};
use weights::Container;
use weights::write::OwnedValue;

use super::hparams::{HParamKey, HParams, MAX_HEADS, MAX_LAYERS, MAX_POSITIONS, MAX_WIDTH};
use super::ssm::{self, SsmKeys};
use super::tensor_names::TensorName;
use super::{Architecture, biased_router, keys, llama, mamba2};
use crate::error::Result;
use crate::spec::{
    Attention, Dense, Embedding, ExpertForm, Experts, Ffn, Mixer, ModelSpec, Norm, Role, Rope, SharedExpert,
};

pub(super) struct NemotronH;
pub(super) struct NemotronHMoe;

const EPS: HParamKey = HParamKey { gguf: keys::RMS_EPS.gguf, hf: "layer_norm_epsilon" };
const PATTERN: &str = "hybrid_override_pattern";
const BLOCK_TYPES: &str = "layers_block_type";
const SHARED_D_FF: HParamKey =
    HParamKey { gguf: keys::SHARED_D_FF.gguf, hf: "moe_shared_expert_intermediate_size" };
/// Older name of the size of a head.
const OLD_HEAD_DIM: HParamKey = HParamKey { gguf: "", hf: "attention_head_dim" };
const LATENT: HParamKey = HParamKey { gguf: "moe_latent_size", hf: "moe_latent_size" };

const KEYS: SsmKeys = SsmKeys {
    n_heads: "mamba_num_heads",
    head_dim: "mamba_head_dim",
    n_groups: "n_groups",
    d_state: "ssm_state_size",
    kernel: "conv_kernel",
    inner: "",
    // The width is that of the heads, whatever `expand` says.
    expand: "",
    conv_bias: "use_conv_bias",
    in_bias: "mamba_proj_bias",
    out_bias: "mamba_proj_bias",
    activation: "mamba_hidden_act",
};

/// What a layer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Ssm,
    Attention,
    Dense,
    Experts,
}

impl Architecture for NemotronH {
    fn gguf_name(&self) -> &'static str {
        "nemotron_h"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["nemotron_h"]
    }

    fn matches_hf_config(&self, config: &Value) -> bool {
        !has_experts(config)
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        spec(hparams, self.gguf_name(), BlockKind::Dense)
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        tensor_names(container, role)
    }
}

impl Architecture for NemotronHMoe {
    fn gguf_name(&self) -> &'static str {
        "nemotron_h_moe"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["nemotron_h"]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        spec(hparams, self.gguf_name(), BlockKind::Experts)
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        tensor_names(container, role)
    }
}

fn has_experts(config: &Value) -> bool {
    let pattern = config.get(PATTERN).and_then(Value::as_str).is_some_and(|text| text.contains('E'));
    let types = config.get(BLOCK_TYPES).and_then(Value::as_array);
    pattern || types.is_some_and(|types| types.iter().any(|kind| kind.as_str() == Some("moe")))
}

/// `fed` is what layers of a GGUF with a feed-forward width are.
fn spec(hparams: &HParams<'_>, architecture: &'static str, fed: BlockKind) -> Result<ModelSpec> {
    let kinds = kinds(hparams, fed)?;
    let d_model = hparams.count(keys::D_MODEL, MAX_WIDTH)?;
    let norm = Norm::rms(hparams.optional_real(EPS, 0.0, 1.0)?.unwrap_or(1e-5) as f32);
    if hparams.value("sliding_window").is_some() {
        return Err(hparams.unsupported("a sliding window (sliding_window)"));
    }
    let position = |kind| kinds.iter().position(|other| *other == kind);
    let ssm = position(BlockKind::Ssm).map(|layer| ssm::read(hparams, &KEYS, d_model, (Some(norm), layer)));
    let ssm = ssm.transpose()?;
    let attention = position(BlockKind::Attention).map(|layer| attention(hparams, d_model, layer)).transpose()?;
    let dense = position(BlockKind::Dense).map(|layer| dense(hparams, layer)).transpose()?;
    let experts = position(BlockKind::Experts).map(|layer| experts(hparams, layer)).transpose()?;
    note_kinds(hparams, &kinds, attention.as_ref(), dense.map(|dense| dense.d_ff), experts.as_ref());
    let layer = |kind: &BlockKind| {
        // Each kind in use was read above.
        let (mixer, ffn) = match kind {
            BlockKind::Ssm => (ssm.clone().map(Mixer::Ssm), None),
            BlockKind::Attention => (attention.clone().map(Mixer::Attention), None),
            BlockKind::Dense => (None, dense.map(Ffn::Plain)),
            BlockKind::Experts => (None, experts.clone().map(Ffn::Experts)),
        };
        ssm::layer(norm, mixer.unwrap_or(Mixer::None), ffn.unwrap_or(Ffn::None))
    };
    Ok(ModelSpec {
        architecture,
        n_vocab: hparams.n_vocab()?,
        d_model,
        context_length: hparams.count(keys::CONTEXT, MAX_POSITIONS)?,
        embedding: Embedding::PLAIN,
        layers: kinds.iter().map(layer).collect(),
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

/// Notes the counts per layer by which a GGUF says what each layer is.
fn note_kinds(
    hparams: &HParams<'_>,
    kinds: &[BlockKind],
    attention: Option<&Attention>,
    d_ff: Option<usize>,
    experts: Option<&Experts>,
) {
    let n_kv_heads = |kind: &BlockKind| match kind {
        BlockKind::Attention => attention.map_or(0, |attention| attention.n_kv_heads),
        BlockKind::Ssm | BlockKind::Dense | BlockKind::Experts => 0,
    };
    let width = |kind: &BlockKind| match kind {
        BlockKind::Dense => d_ff.unwrap_or(0),
        BlockKind::Experts => experts.map_or(0, |experts| experts.d_ff),
        BlockKind::Ssm | BlockKind::Attention => 0,
    };
    hparams.note_count(keys::N_LAYERS, kinds.len());
    hparams.note_counts(keys::N_KV_HEADS, &kinds.iter().map(n_kv_heads).collect::<Vec<_>>());
    hparams.note_counts(keys::D_FF, &kinds.iter().map(width).collect::<Vec<_>>());
    hparams.note("rope.scaling.finetuned", OwnedValue::Bool(false));
}

/// Reads what each layer is: from a pattern of letters or a list of names, in a GGUF from the counts per layer.
fn kinds(hparams: &HParams<'_>, fed: BlockKind) -> Result<Vec<BlockKind>> {
    let n_layers = hparams.optional_count(keys::N_LAYERS, MAX_LAYERS)?;
    if hparams.is_gguf() {
        let n_layers = n_layers.ok_or_else(|| hparams.missing(&hparams.name(keys::N_LAYERS)))?;
        let none = || vec![0; n_layers];
        let n_kv_heads = hparams.counts_by_layer(keys::N_KV_HEADS, n_layers, MAX_HEADS)?.unwrap_or_else(none);
        let widths = hparams.counts_by_layer(keys::D_FF, n_layers, MAX_WIDTH)?.unwrap_or_else(none);
        let kind = |(n_kv_heads, width): (usize, usize)| match (n_kv_heads, width) {
            (0, 0) => BlockKind::Ssm,
            (0, _) => fed,
            _ => BlockKind::Attention,
        };
        return Ok(n_kv_heads.into_iter().zip(widths).map(kind).collect());
    }
    let unknown = |key: &str, name: &str| hparams.unsupported(&format!("layers of the kind \"{name}\" ({key})"));
    let kinds: Vec<BlockKind> = match (hparams.value(PATTERN), hparams.value(BLOCK_TYPES)) {
        (Some(Value::String(pattern)), _) => {
            let kind = |letter: char| match letter {
                'M' => Ok(BlockKind::Ssm),
                '*' => Ok(BlockKind::Attention),
                '-' => Ok(BlockKind::Dense),
                'E' => Ok(BlockKind::Experts),
                other => Err(unknown(PATTERN, &other.to_string())),
            };
            pattern.chars().map(kind).collect::<Result<_>>()?
        }
        (None, Some(Value::Array(types))) => {
            let kind = |value: &Value| match value.as_str() {
                Some("mamba" | "linear_attention") => Ok(BlockKind::Ssm),
                Some("attention" | "full_attention") => Ok(BlockKind::Attention),
                Some("mlp") => Ok(BlockKind::Dense),
                Some("moe") => Ok(BlockKind::Experts),
                _ => Err(unknown(BLOCK_TYPES, &value.to_string())),
            };
            types.iter().map(kind).collect::<Result<_>>()?
        }
        (None, None) => return Err(hparams.missing(PATTERN)),
        (Some(other), _) | (None, Some(other)) => {
            return Err(hparams.wrong(PATTERN, format!("{other} does not name the layers")));
        }
    };
    if kinds.is_empty() || kinds.len() > MAX_LAYERS || n_layers.is_some_and(|n| n != kinds.len()) {
        let message = format!("{} layers are named, the model has {}", kinds.len(), n_layers.unwrap_or(0));
        return Err(hparams.wrong(PATTERN, message));
    }
    Ok(kinds)
}

/// Reads attention without rotation. `layer` is the first that has one.
fn attention(hparams: &HParams<'_>, d_model: usize, layer: usize) -> Result<Attention> {
    let n_heads = hparams.count(keys::N_HEADS, MAX_HEADS)?;
    let n_kv_heads = match hparams.is_gguf() {
        true => {
            let n_layers = hparams.count(keys::N_LAYERS, MAX_LAYERS)?;
            let counts = hparams.counts_by_layer(keys::N_KV_HEADS, n_layers, MAX_HEADS)?.unwrap_or_default();
            if counts.iter().any(|n| *n != 0 && *n != counts[layer]) {
                return Err(hparams.unsupported("layers with different numbers of key-value heads"));
            }
            counts[layer]
        }
        false => hparams.optional_count(keys::N_KV_HEADS, MAX_HEADS)?.unwrap_or(n_heads),
    };
    let head_dim = match hparams.optional_count(OLD_HEAD_DIM, super::hparams::MAX_HEAD_DIM)? {
        Some(head_dim) if hparams.value(keys::HEAD_DIM.hf).is_none() => head_dim,
        _ => llama::head_dim(hparams, d_model, n_heads)?,
    };
    let heads = llama::AttentionHeads { n_heads, n_kv_heads, head_dim }.checked(hparams)?;
    let has = |role| match hparams.is_gguf() {
        true => Ok(hparams.has_tensor(role, Some(layer))),
        false => hparams.flag("attention_bias", false),
    };
    let (qkv_bias, out_bias) = (has(Role::QueryBias)?, has(Role::AttentionOutBias)?);
    Ok(Attention { qkv_bias, out_bias, ..llama::plain_attention(heads, Rope::None) })
}

fn activation(hparams: &HParams<'_>) -> Result<Activation> {
    hparams.activation("mlp_hidden_act", Activation::ReluSquared)
}

/// Reads the plain feed-forward part. `layer` is the first that has one.
fn dense(hparams: &HParams<'_>, layer: usize) -> Result<Dense> {
    let d_ff = match hparams.is_gguf() {
        true => {
            let n_layers = hparams.count(keys::N_LAYERS, MAX_LAYERS)?;
            let widths = hparams.counts_by_layer(keys::D_FF, n_layers, MAX_WIDTH)?.unwrap_or_default();
            if widths.iter().any(|n| *n != 0 && *n != widths[layer]) {
                return Err(hparams.unsupported("layers of different feed-forward widths"));
            }
            widths[layer]
        }
        false => hparams.count(keys::D_FF, MAX_WIDTH)?,
    };
    let bias = match hparams.is_gguf() {
        true => hparams.has_tensor(Role::UpBias, Some(layer)),
        false => hparams.flag("mlp_bias", false)?,
    };
    Ok(Dense { d_ff, activation: activation(hparams)?, bias })
}

/// Reads the experts. `layer` is the first that has some.
fn experts(hparams: &HParams<'_>, layer: usize) -> Result<Experts> {
    if hparams.optional_unbounded(LATENT)?.is_some_and(|n| n != 0) {
        return Err(hparams.unsupported("experts on a narrower latent (moe_latent_size)"));
    }
    if hparams.flag("mlp_bias", false)? {
        return Err(hparams.unsupported("biases of experts (mlp_bias)"));
    }
    let experts = biased_router::experts(hparams, layer, true, ExpertScoring::Sigmoid)?;
    let shared = match (experts.shared, hparams.optional_count(SHARED_D_FF, MAX_WIDTH)?) {
        (Some(shared), Some(d_ff)) => Some(SharedExpert { d_ff, ..shared }),
        (shared, _) => shared,
    };
    Ok(Experts { shared, activation: activation(hparams)?, form: ExpertForm::Plain, ..experts })
}

fn tensor_names(container: Container, role: Role) -> Vec<TensorName> {
    if let Some(name) = mamba2::mixer_names(container, role) {
        return vec![name];
    }
    let name = match (container, role) {
        // Every layer has one norm.
        (Container::Gguf { .. }, Role::FfnNorm) => "attn_norm.weight",
        (Container::Gguf { .. }, _) => return ssm::tensor_names(container, role),
        (Container::Safetensors, Role::Query) => "mixer.q_proj.weight",
        (Container::Safetensors, Role::QueryBias) => "mixer.q_proj.bias",
        (Container::Safetensors, Role::Key) => "mixer.k_proj.weight",
        (Container::Safetensors, Role::KeyBias) => "mixer.k_proj.bias",
        (Container::Safetensors, Role::Value) => "mixer.v_proj.weight",
        (Container::Safetensors, Role::ValueBias) => "mixer.v_proj.bias",
        (Container::Safetensors, Role::AttentionOut) => "mixer.o_proj.weight",
        (Container::Safetensors, Role::AttentionOutBias) => "mixer.o_proj.bias",
        (Container::Safetensors, Role::Up) => "mixer.up_proj.weight",
        (Container::Safetensors, Role::UpBias) => "mixer.up_proj.bias",
        (Container::Safetensors, Role::Down) => "mixer.down_proj.weight",
        (Container::Safetensors, Role::DownBias) => "mixer.down_proj.bias",
        (Container::Safetensors, Role::Router) => "mixer.gate.weight",
        (Container::Safetensors, Role::RouterSelectionBias) => "mixer.gate.e_score_correction_bias",
        (Container::Safetensors, Role::ExpertUp) => "mixer.experts.#.up_proj.weight",
        (Container::Safetensors, Role::ExpertDown) => "mixer.experts.#.down_proj.weight",
        (Container::Safetensors, Role::SharedUp) => "mixer.shared_experts.up_proj.weight",
        (Container::Safetensors, Role::SharedDown) => "mixer.shared_experts.down_proj.weight",
        (Container::Safetensors, _) => return ssm::tensor_names(container, role),
    };
    vec![name.into()]
}
