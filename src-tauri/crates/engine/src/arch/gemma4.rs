//! Gemma 4: windowed and full layers with different heads and rotations, normed values, scaled layers.
//!
//! Dense, with experts beside the dense part, or with per-layer embeddings and shared keys and values (E2B, E4B).

use kernels::{Activation, RopeStyle};
use weights::Container;

use super::hparams::{
    HParams, HParamKey, MAX_EXPERTS, MAX_FACTOR, MAX_HEAD_DIM, MAX_HEADS, MAX_LAYERS, MAX_POSITIONS, MAX_WIDTH,
};
use super::tensor_names::TensorName;
use super::{Architecture, keys, llama, names, rope};
use crate::error::Result;
use crate::spec::{
    Attention, Dense, Embedding, ExpertForm, Experts, Ffn, KvSource, LayerSpec, Mixer, ModelSpec, Norm, NormPosition, PerLayerEmbedding,
    PerLayerInput, Role, Rope, Rotary, Router, RouterInput,
};

pub(super) struct Gemma4;

const FULL_HEAD_DIM: HParamKey = HParamKey { gguf: "attention.key_length", hf: "global_head_dim" };
const SLIDING_HEAD_DIM: HParamKey = HParamKey { gguf: "attention.key_length_swa", hf: "head_dim" };
const FULL_VALUE_DIM: HParamKey = HParamKey { gguf: "attention.value_length", hf: "" };
const SLIDING_VALUE_DIM: HParamKey = HParamKey { gguf: "attention.value_length_swa", hf: "" };
pub(super) const SLIDING_PATTERN: &str = "attention.sliding_window_pattern";
const FULL_N_KV_HEADS: HParamKey = HParamKey { gguf: "", hf: "num_global_key_value_heads" };
pub(super) const N_SHARED_KV: HParamKey = HParamKey { gguf: "attention.shared_kv_layers", hf: "num_kv_shared_layers" };
pub(super) const LAYER_INPUT_WIDTH: HParamKey =
    HParamKey { gguf: "embedding_length_per_layer_input", hf: "hidden_size_per_layer_input" };
pub(super) const OUTPUT_SOFTCAP: HParamKey = HParamKey { gguf: "final_logit_softcapping", hf: "final_logit_softcapping" };
const N_EXPERTS_USED: HParamKey = HParamKey { gguf: keys::N_EXPERTS_USED.gguf, hf: "top_k_experts" };
/// Interval of full-attention layers, where a config lists no types.
const FULL_INTERVAL: usize = 6;

impl Architecture for Gemma4 {
    fn gguf_name(&self) -> &'static str {
        "gemma4"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["gemma4_text", "gemma4", "gemma4_unified_text", "gemma4_unified"]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        spec(hparams, self.gguf_name(), KeyOwner::Model)
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        tensor_names(container, role)
    }
}

/// Whose keys and values the layers attend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyOwner {
    /// The model's.
    Model,
    /// Those of the model that an assistant drafts for.
    Target,
}

/// Reads the structure of a model or of an assistant's layers.
pub(super) fn spec(hparams: &HParams<'_>, architecture: &'static str, key_owner: KeyOwner) -> Result<ModelSpec> {
    let n_layers = hparams.count(keys::N_LAYERS, MAX_LAYERS)?;
    let d_model = hparams.count(keys::D_MODEL, MAX_WIDTH)?;
    let eps = hparams.real(keys::RMS_EPS, 0.0, 1.0)? as f32;
    let norm = Norm::rms(eps);
    let per_layer = per_layer_embedding(hparams, d_model, norm)?;
    let per_layer_input = per_layer.as_ref().map(|embedding| PerLayerInput {
        width: embedding.width,
        activation: Activation::GeluTanh,
        norm,
    });
    let mixers = attentions(hparams, n_layers, eps, key_owner)?;
    let widths = widths(hparams, n_layers)?;
    let experts = experts(hparams, d_model, eps)?;
    let activation = hparams.activation("hidden_activation", Activation::GeluTanh)?;
    let layer = |(attention, d_ff): (Attention, usize)| {
        let dense = Dense { d_ff, activation, bias: false };
        LayerSpec {
            norms: NormPosition::Before,
            mixer_norm: norm,
            mixer: Mixer::Attention(attention),
            mixer_post_norm: Some(norm),
            ffn_norm: norm,
            ffn: match experts.clone() {
                None => Ffn::Gated(dense),
                Some(experts) => Ffn::GatedAndExperts { dense, experts, norm },
            },
            ffn_post_norm: Some(norm),
            per_layer_input,
            output_scale: true,
            residual_scale: None,
            laurel: None,
        }
    };
    let softcap = hparams.optional_real(OUTPUT_SOFTCAP, f64::MIN_POSITIVE, MAX_FACTOR)?;
    Ok(ModelSpec {
        architecture,
        n_vocab: hparams.n_vocab()?,
        d_model,
        context_length: hparams.count(keys::CONTEXT, MAX_POSITIONS)?,
        embedding: Embedding { scale: (d_model as f32).sqrt(), per_layer, ..Embedding::PLAIN },
        layers: mixers.into_iter().zip(widths).map(layer).collect(),
        output_norm: norm,
        tied_embeddings: hparams.tied_embeddings(true)?,
        output_softcap: softcap.map(|cap| cap as f32),
        embeds: None,
        output_scale: None,
        output_bias: false,
        draft: None,
        assistance: None,
        streams: None,
    })
}

pub(super) fn tensor_names(container: Container, role: Role) -> Vec<TensorName> {
    match (container, role) {
        (Container::Gguf { .. }, _) => names::plain(container, role),
        (Container::Safetensors, Role::FfnNorm) => vec!["pre_feedforward_layernorm.weight".into()],
        (Container::Safetensors, Role::Router) => vec!["router.proj.weight".into()],
        (Container::Safetensors, Role::ExpertGate | Role::ExpertUp) => {
            vec![TensorName::rows("experts.gate_up_proj", &[Role::ExpertGate, Role::ExpertUp])]
        }
        (Container::Safetensors, Role::ExpertDown) => vec!["experts.down_proj".into()],
        (Container::Safetensors, _) => names::plain(container, role),
    }
}

fn per_layer_embedding(hparams: &HParams<'_>, d_model: usize, norm: Norm) -> Result<Option<PerLayerEmbedding>> {
    // 0 means none.
    let Some(_) = hparams.optional_unbounded(LAYER_INPUT_WIDTH)?.filter(|n| *n != 0) else { return Ok(None) };
    let width = hparams.count(LAYER_INPUT_WIDTH, MAX_WIDTH / MAX_LAYERS)?;
    Ok(Some(layer_inputs(width, d_model, norm)))
}

/// Per-layer inputs of this width.
pub(super) fn layer_inputs(width: usize, d_model: usize, norm: Norm) -> PerLayerEmbedding {
    PerLayerEmbedding {
        width,
        table_scale: (width as f32).sqrt(),
        projection_scale: (d_model as f32).sqrt().recip(),
        norm,
        input_scale: std::f32::consts::FRAC_1_SQRT_2,
        n_rows: None,
    }
}

/// Reads every layer's attention. Windowed and full ones differ in heads and rotation. The last layers may share keys
/// and values with an earlier layer of their kind.
fn attentions(
    hparams: &HParams<'_>,
    n_layers: usize,
    eps: f32,
    key_owner: KeyOwner,
) -> Result<Vec<Attention>> {
    let n_heads = hparams.count(keys::N_HEADS, MAX_HEADS)?;
    let slides = slides(hparams, n_layers)?;
    let window = hparams.optional_count(keys::WINDOW, MAX_POSITIONS)?;
    let sources = match key_owner {
        KeyOwner::Model => {
            let n_shared = hparams.optional_unbounded(N_SHARED_KV)?.unwrap_or(0);
            key_sources(hparams, &slides, n_shared)?
        }
        KeyOwner::Target => slides.iter().map(|&slides| KvSource::OfTarget { slides }).collect(),
    };
    let heads = heads(hparams, n_layers, n_heads, &slides)?;
    let mut all = Vec::with_capacity(n_layers);
    for ((&slides_here, heads), keys) in slides.iter().zip(heads).zip(sources) {
        let kind = if slides_here { rope::SLIDING } else { rope::RopeKind { default_base: 1e6, ..rope::FULL } };
        let rotary = rope::of_kind(hparams, heads.head_dim, &kind)?;
        all.push(Attention {
            scale: 1.0,
            window: window.filter(|_| slides_here),
            qk_norm: Some(Norm::rms(eps)),
            value_norm: Some(Norm::PlainRms { eps }),
            keys,
            ..llama::plain_attention(heads, Rope::Rotary(Rotary { style: RopeStyle::Half, ..rotary }))
        });
    }
    Ok(all)
}

/// Returns where each layer gets its keys and values: the last `n_shared` from an earlier layer of their kind.
pub(super) fn key_sources(hparams: &HParams<'_>, slides: &[bool], n_shared: u64) -> Result<Vec<KvSource>> {
    let n_layers = slides.len();
    if n_shared >= n_layers as u64 {
        return Err(hparams.wrong(&hparams.name(N_SHARED_KV), format!("{n_shared} of {n_layers} layers")));
    }
    let first_shared = n_layers - n_shared as usize;
    let source = |(index, slides_here): (usize, &bool)| {
        let own = slides[..first_shared].iter().rposition(|other| other == slides_here);
        match own {
            Some(layer) if index >= first_shared => Ok(KvSource::OfLayer(layer)),
            None if index >= first_shared => {
                let message = format!("layer {index} has no earlier layer of its kind to share keys and values with");
                Err(hparams.wrong(&hparams.name(N_SHARED_KV), message))
            }
            _ if !hparams.has_tensor(Role::Value, Some(index)) => Ok(KvSource::SharedByValues),
            _ => Ok(KvSource::Projected),
        }
    };
    slides.iter().enumerate().map(source).collect()
}

fn slides(hparams: &HParams<'_>, n_layers: usize) -> Result<Vec<bool>> {
    if let Some(flags) = hparams.flags_by_layer(SLIDING_PATTERN, n_layers)? {
        return Ok(flags);
    }
    let mut slides: Vec<bool> = match hparams.layer_types(n_layers)? {
        Some(types) => types.iter().map(|kind| *kind == "sliding_attention").collect(),
        None => (1..=n_layers).map(|n| n % FULL_INTERVAL != 0).collect(),
    };
    if let Some(last) = slides.last_mut() {
        *last = false;
    }
    hparams.note_flags(SLIDING_PATTERN, &slides);
    Ok(slides)
}

/// Reads the heads of every layer: newer configs list exceptions by layer; older ones and GGUF have keys for full
/// layers.
fn heads(hparams: &HParams<'_>, n_layers: usize, n_heads: usize, slides: &[bool]) -> Result<Vec<llama::AttentionHeads>> {
    let counts = hparams.counts_by_layer(keys::N_KV_HEADS, n_layers, MAX_HEADS)?;
    let counts = counts.unwrap_or_else(|| vec![n_heads; n_layers]);
    let sliding_dim = hparams.optional_count(SLIDING_HEAD_DIM, MAX_HEAD_DIM)?;
    let full_dim = hparams.optional_count(FULL_HEAD_DIM, MAX_HEAD_DIM)?.or(sliding_dim);
    let Some(full_dim) = full_dim else { return Err(hparams.missing(&hparams.name(FULL_HEAD_DIM))) };
    let sliding_dim = sliding_dim.unwrap_or(full_dim);
    let values_are_keys = hparams.flag("attention_k_eq_v", false)?;
    let full_kv = hparams.optional_count(FULL_N_KV_HEADS, MAX_HEADS)?.filter(|_| values_are_keys);
    let mut all = Vec::with_capacity(n_layers);
    for (index, (&slides, n_kv_heads)) in slides.iter().zip(counts).enumerate() {
        let mut heads = llama::AttentionHeads {
            n_heads,
            n_kv_heads: if slides { n_kv_heads } else { full_kv.unwrap_or(n_kv_heads) },
            head_dim: if slides { sliding_dim } else { full_dim },
        };
        if let Some(own) = hparams.value("per_layer_config").and_then(|layers| layers.get(index.to_string())) {
            let count =
                |key, max| super::hparams::JsonNumbers::new(own, "per_layer_config.").optional_count(key, max);
            heads.head_dim = count("head_dim", MAX_HEAD_DIM)?.unwrap_or(heads.head_dim);
            heads.n_kv_heads = count("num_key_value_heads", MAX_HEADS)?.unwrap_or(heads.n_kv_heads);
        }
        all.push(heads.checked(hparams)?);
    }
    note_heads(hparams, slides, &all);
    Ok(all)
}

/// Notes them as a GGUF does: head sizes by kind, key-value heads by layer.
fn note_heads(hparams: &HParams<'_>, slides: &[bool], heads: &[llama::AttentionHeads]) {
    for (&slides, heads) in slides.iter().zip(heads) {
        let keys =
            if slides { [SLIDING_HEAD_DIM, SLIDING_VALUE_DIM] } else { [FULL_HEAD_DIM, FULL_VALUE_DIM] };
        keys.into_iter().for_each(|key| hparams.note_count(key, heads.head_dim));
    }
    let counts: Vec<usize> = heads.iter().map(|heads| heads.n_kv_heads).collect();
    hparams.note_counts(keys::N_KV_HEADS, &counts);
}

/// Reads the widths of the dense parts. Layers that share keys may be twice as wide.
fn widths(hparams: &HParams<'_>, n_layers: usize) -> Result<Vec<usize>> {
    let widths = hparams.counts_by_layer(keys::D_FF, n_layers, MAX_WIDTH)?;
    let Some(mut widths) = widths else { return Err(hparams.missing(&hparams.name(keys::D_FF))) };
    if hparams.flag("use_double_wide_mlp", false)? {
        let n_shared = hparams.optional_unbounded(N_SHARED_KV)?.unwrap_or(0) as usize;
        let first_shared = n_layers.saturating_sub(n_shared);
        widths[first_shared..].iter_mut().for_each(|width| *width *= 2);
    }
    hparams.note_counts(keys::D_FF, &widths);
    for &width in &widths {
        hparams.bounded(&hparams.name(keys::D_FF), width, MAX_WIDTH)?;
    }
    Ok(widths)
}

fn experts(hparams: &HParams<'_>, d_model: usize, eps: f32) -> Result<Option<Experts>> {
    let n_experts = hparams.optional_unbounded(keys::N_EXPERTS)?.filter(|n| *n != 0);
    let is_mixture = hparams.is_gguf() || hparams.flag("enable_moe_block", false)?;
    if n_experts.is_none() || !is_mixture {
        return Ok(None);
    }
    let n_experts = hparams.count(keys::N_EXPERTS, MAX_EXPERTS)?;
    Ok(Some(Experts {
        n_experts,
        n_used: hparams.count(N_EXPERTS_USED, n_experts)?,
        d_ff: hparams.count(keys::EXPERT_D_FF, MAX_WIDTH)?,
        activation: Activation::GeluTanh,
        renormalize: true,
        expert_scale: true,
        router_bias: false,
        bias: false,
        router_input: RouterInput::Residual { eps, scale: (d_model as f32).sqrt().recip() },
        shared: None,
        router: Router::default(),
        form: ExpertForm::Gated,
    }))
}
