//! OLMo 2 and 3: norms after each part instead of before, queries and keys normed as whole rows. OLMo 3 has windows,
//! and scales the rotation in full-attention layers only.

use super::hparams::{HParamKey, HParams, MAX_FACTOR};
use super::{Architecture, llama, rope};
use crate::error::Result;
use crate::spec::{ModelSpec, Norm, QkNormForm, Rope};

pub(super) struct Olmo2;
pub(super) struct Olmo3;

/// Layers with a window in a GGUF.
pub(super) const WINDOW_PATTERN: &str = "attention.sliding_window_pattern";
/// By default every fourth layer has full attention.
const FULL_INTERVAL: usize = 4;
/// Factor on the rotated values with YaRN.
const YARN_FACTOR: HParamKey = HParamKey { gguf: "rope.scaling.yarn_attn_factor", hf: "" };

impl Architecture for Olmo2 {
    fn gguf_name(&self) -> &'static str {
        "olmo2"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["olmo2"]
    }

    fn hf_defaults(&self) -> &'static [(&'static str, f64)] {
        &[("rms_norm_eps", 1e-5), ("max_position_embeddings", 2048.0)]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        spec(hparams, self.gguf_name())
    }
}

impl Architecture for Olmo3 {
    /// GGUFs of OLMo 3 have the older name.
    fn gguf_name(&self) -> &'static str {
        "olmo2"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["olmo3"]
    }

    fn hf_defaults(&self) -> &'static [(&'static str, f64)] {
        &[("rms_norm_eps", 1e-5), ("max_position_embeddings", 2048.0), ("sliding_window", 4096.0)]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        spec(hparams, self.gguf_name())
    }
}

fn spec(hparams: &HParams<'_>, architecture: &'static str) -> Result<ModelSpec> {
    let mut spec = llama::spec(hparams, architecture, false)?;
    let norm = spec.output_norm;
    move_norms_after(&mut spec);
    let window = hparams.window()?;
    let slides = match window {
        Some(_) => slides(hparams, spec.layers.len(), FULL_INTERVAL)?,
        None => vec![false; spec.layers.len()],
    };
    let yarn_factor = hparams.optional_real(YARN_FACTOR, 0.0, MAX_FACTOR)?;
    let windowed = rope::windowed_unscaled(hparams)?;
    for (attention, slides) in spec.attentions_mut().zip(slides) {
        attention.qk_norm = Some(norm);
        attention.qk_norm_form = QkNormForm::Projection;
        attention.window = window.filter(|_| slides);
        let kind = if slides { windowed } else { rope::FULL };
        let mut rotary = rope::of_kind(hparams, attention.head_dim, &kind)?;
        if let Some(factor) = yarn_factor.filter(|_| !slides) {
            rotary.mscale = factor as f32;
        }
        attention.rope = Rope::Rotary(rotary);
        attention.set_rope_half();
    }
    Ok(spec)
}

/// Replaces the norms before each part by norms after it.
pub(super) fn move_norms_after(spec: &mut ModelSpec) {
    for layer in &mut spec.layers {
        layer.mixer_post_norm = Some(layer.mixer_norm);
        layer.ffn_post_norm = Some(layer.ffn_norm);
        layer.mixer_norm = Norm::None;
        layer.ffn_norm = Norm::None;
    }
}

/// Returns which layers have a window: as the file lists them, else all but every `interval`-th.
pub(super) fn slides(hparams: &HParams<'_>, n_layers: usize, interval: usize) -> Result<Vec<bool>> {
    if let Some(flags) = hparams.flags_by_layer(WINDOW_PATTERN, n_layers)? {
        return Ok(flags);
    }
    let slides: Vec<bool> = match hparams.layer_types(n_layers)? {
        Some(types) => types.iter().map(|kind| *kind == "sliding_attention").collect(),
        None => (1..=n_layers).map(|n| n % interval != 0).collect(),
    };
    hparams.note_flags(WINDOW_PATTERN, &slides);
    Ok(slides)
}
