//! Gemma 1, 2 and 3 (text): norms around zero, embeddings scaled by √width, GELU. From Gemma 2 on windows,
//! post-norms, and soft caps or head norms.

use kernels::Activation;
use weights::Container;

use super::hparams::{HParams, HParamKey, MAX_FACTOR, MAX_LAYERS, MAX_POSITIONS};
use super::tensor_names::TensorName;
use super::{Architecture, keys, llama, names, rope};
use crate::error::Result;
use crate::spec::{Attention, Ffn, ModelSpec, Norm, Role, Rope};

pub(super) struct Gemma;
pub(super) struct Gemma2;
pub(super) struct Gemma3;

const ATTENTION_SOFTCAP: HParamKey = HParamKey { gguf: "attn_logit_softcapping", hf: "attn_logit_softcapping" };
const OUTPUT_SOFTCAP: HParamKey = HParamKey { gguf: "final_logit_softcapping", hf: "final_logit_softcapping" };
/// Head size that queries are scaled by. In the larger models it is not their own.
const QUERY_SCALAR: HParamKey = HParamKey { gguf: "", hf: "query_pre_attn_scalar" };

impl Architecture for Gemma {
    fn gguf_name(&self) -> &'static str {
        "gemma"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["gemma"]
    }

    fn is_trainable(&self) -> bool {
        true
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        plain(hparams, self.gguf_name())
    }
}

impl Architecture for Gemma2 {
    fn gguf_name(&self) -> &'static str {
        "gemma2"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["gemma2"]
    }

    fn is_trainable(&self) -> bool {
        true
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let mut spec = plain(hparams, self.gguf_name())?;
        post_norms(&mut spec);
        let cap = |key| hparams.optional_real(key, f64::MIN_POSITIVE, MAX_FACTOR).map(|x| x.map(|x| x as f32));
        spec.output_softcap = cap(OUTPUT_SOFTCAP)?;
        let softcap = cap(ATTENTION_SOFTCAP)?;
        let window = hparams.optional_count(keys::WINDOW, MAX_POSITIONS)?;
        let is_27b = spec.layers.len() == 46;
        let slides = slides(hparams, spec.layers.len(), 2)?;
        let d_model = spec.d_model;
        for (attention, slides) in spec.attentions_mut().zip(slides) {
            attention.softcap = softcap;
            attention.window = window.filter(|_| slides);
            attention.scale = scale(hparams, attention, is_27b.then_some(d_model))?;
        }
        Ok(spec)
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        tensor_names(container, role)
    }
}

impl Architecture for Gemma3 {
    fn gguf_name(&self) -> &'static str {
        "gemma3"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["gemma3_text", "gemma3"]
    }

    /// Configs of multimodal models give little more than the sizes that differ.
    fn hf_defaults(&self) -> &'static [(&'static str, f64)] {
        &[
            ("num_attention_heads", 8.0),
            ("num_key_value_heads", 4.0),
            ("head_dim", 256.0),
            ("query_pre_attn_scalar", 256.0),
            ("rms_norm_eps", 1e-6),
            ("max_position_embeddings", 131_072.0),
            ("rope_theta", 1e6),
            ("sliding_window", 4096.0),
        ]
    }

    fn is_trainable(&self) -> bool {
        true
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        gemma3(hparams, self.gguf_name())
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        tensor_names(container, role)
    }
}

/// Reads Gemma 3 and its relatives.
pub(super) fn gemma3(hparams: &HParams<'_>, architecture: &'static str) -> Result<ModelSpec> {
    let mut spec = plain(hparams, architecture)?;
    post_norms(&mut spec);
    let cap = |key| hparams.optional_real(key, f64::MIN_POSITIVE, MAX_FACTOR).map(|x| x.map(|x| x as f32));
    spec.output_softcap = cap(OUTPUT_SOFTCAP)?;
    let softcap = cap(ATTENTION_SOFTCAP)?;
    let window = hparams.optional_count(keys::WINDOW, MAX_POSITIONS)?;
    let slides = slides(hparams, spec.layers.len(), 6)?;
    let is_27b = spec.layers.len() == 62;
    let (d_model, norm) = (spec.d_model, spec.output_norm);
    for (attention, slides) in spec.attentions_mut().zip(slides) {
        let kind = if slides { rope::SLIDING } else { rope::RopeKind { default_base: 1e6, ..rope::FULL } };
        attention.rope = Rope::Rotary(rope::of_kind(hparams, attention.head_dim, &kind)?);
        attention.set_rope_half();
        attention.window = window.filter(|_| slides);
        attention.softcap = softcap;
        attention.qk_norm = Some(norm);
        attention.scale = scale(hparams, attention, is_27b.then_some(d_model))?;
    }
    Ok(spec)
}

/// Reads what all of them share.
fn plain(hparams: &HParams<'_>, architecture: &'static str) -> Result<ModelSpec> {
    let mut spec = llama::spec(hparams, architecture, true)?;
    let is_centred = !hparams.is_gguf(); // a GGUF stores weight + 1
    spec.embedding.scale = (spec.d_model as f32).sqrt();
    let centred = |norm: Norm| if is_centred { norm.centred() } else { norm };
    spec.output_norm = centred(spec.output_norm);
    // Older configs name an exact GELU that the models were not trained with.
    let activation = match hparams.value("hidden_activation") {
        Some(_) => hparams.activation("hidden_activation", Activation::GeluTanh)?,
        None => Activation::GeluTanh,
    };
    for layer in &mut spec.layers {
        layer.mixer_norm = centred(layer.mixer_norm);
        layer.ffn_norm = centred(layer.ffn_norm);
        if let Ffn::Gated(dense) = &mut layer.ffn {
            dense.activation = activation;
        }
    }
    spec.attentions_mut().for_each(Attention::set_rope_half);
    Ok(spec)
}

/// Adds norms after each part, like those before.
fn post_norms(spec: &mut ModelSpec) {
    for layer in &mut spec.layers {
        layer.mixer_post_norm = Some(layer.mixer_norm);
        layer.ffn_post_norm = Some(layer.ffn_norm);
    }
}

const WINDOW_PATTERN: &str = "attention.sliding_window_pattern";
const WINDOW_INTERVAL: HParamKey = HParamKey { gguf: WINDOW_PATTERN, hf: "sliding_window_pattern" };

/// Returns which layers have a window: as the file lists them, else all but every `interval`-th. Files without a
/// pattern have the interval of the published models, in llama.cpp and transformers as here.
fn slides(hparams: &HParams<'_>, n_layers: usize, interval: usize) -> Result<Vec<bool>> {
    if let Some(flags) = hparams.flags_by_layer(WINDOW_PATTERN, n_layers)? {
        return Ok(flags);
    }
    let every = |interval: usize| (1..=n_layers).map(|n| n % interval != 0).collect::<Vec<_>>();
    if let Some(types) = hparams.layer_types(n_layers)? {
        let slides: Vec<bool> = types.iter().map(|kind| *kind == "sliding_attention").collect();
        if slides != every(interval) {
            hparams.note_flags(WINDOW_PATTERN, &slides);
        }
        return Ok(slides);
    }
    Ok(every(hparams.optional_count(WINDOW_INTERVAL, MAX_LAYERS)?.unwrap_or(interval)))
}

/// Returns the factor on q·k. The two largest models scale queries by width over heads, which GGUF does not say;
/// `by_width` is that width.
fn scale(hparams: &HParams<'_>, attention: &Attention, by_width: Option<usize>) -> Result<f32> {
    let scalar = match hparams.optional_real(QUERY_SCALAR, f64::MIN_POSITIVE, MAX_FACTOR)? {
        Some(scalar) => scalar,
        None => match by_width.filter(|_| hparams.is_gguf()) {
            Some(width) => width as f64 / attention.n_heads as f64,
            None => attention.head_dim as f64,
        },
    };
    Ok(scalar.sqrt().recip() as f32)
}

/// Llama's name for the pre-FFN norm means the post-attention norm here.
pub(super) fn tensor_names(container: Container, role: Role) -> Vec<TensorName> {
    match (container, role) {
        (Container::Safetensors, Role::FfnNorm) => vec!["pre_feedforward_layernorm.weight".into()],
        _ => names::plain(container, role),
    }
}
