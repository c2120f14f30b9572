//! EXAONE 4: norms after each part instead of before, and normed heads. In models with windows the full-attention
//! layers do not rotate.

use serde_json::Value;

use super::hparams::HParams;
use super::{Architecture, llama, olmo};
use crate::error::Result;
use crate::spec::{ModelSpec, Rope};

pub(super) struct Exaone4;

/// By default every fourth layer has full attention.
const FULL_INTERVAL: usize = 4;
const PATTERN: &str = "sliding_window_pattern";

impl Architecture for Exaone4 {
    fn gguf_name(&self) -> &'static str {
        "exaone4"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["exaone4"]
    }

    fn hf_defaults(&self) -> &'static [(&'static str, f64)] {
        &[("rms_norm_eps", 1e-5), ("max_position_embeddings", 2048.0)]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let mut spec = llama::spec(hparams, self.gguf_name(), false)?;
        let norm = spec.output_norm;
        olmo::move_norms_after(&mut spec);
        let window = hparams.window()?;
        let n_layers = spec.layers.len();
        let slides = match window {
            Some(_) => slides(hparams, n_layers)?,
            None => vec![false; n_layers],
        };
        for (attention, slides) in spec.attentions_mut().zip(slides) {
            attention.qk_norm = Some(norm);
            attention.window = window.filter(|_| slides);
            attention.set_rope_half();
            if window.is_some() && !slides {
                attention.rope = Rope::None;
            }
        }
        Ok(spec)
    }
}

/// Returns which layers have a window. A config may give a number, or letters that repeat: L for a window, G for full
/// attention, which the last layer then always has.
fn slides(hparams: &HParams<'_>, n_layers: usize) -> Result<Vec<bool>> {
    let letters = match hparams.value(PATTERN) {
        _ if hparams.value("layer_types").is_some() => None,
        Some(Value::String(letters)) => Some(letters),
        Some(Value::Number(n)) => {
            let interval = n.as_u64().and_then(|n| usize::try_from(n).ok());
            return match interval.map(|n| hparams.bounded(PATTERN, n, super::hparams::MAX_LAYERS)).transpose()? {
                Some(interval) => olmo::slides(hparams, n_layers, interval),
                None => Err(hparams.wrong(PATTERN, format!("{n} is not a count"))),
            };
        }
        _ => None,
    };
    let Some(letters) = letters else { return olmo::slides(hparams, n_layers, FULL_INTERVAL) };
    let letters: Vec<char> = letters.chars().collect();
    if letters.is_empty() || letters.iter().any(|letter| !matches!(letter, 'L' | 'G')) {
        return Err(hparams.wrong(PATTERN, "it is not made of the letters L and G".into()));
    }
    let slides: Vec<bool> =
        (0..n_layers).map(|i| letters[i % letters.len()] == 'L' && i + 1 < n_layers).collect();
    hparams.note_flags(olmo::WINDOW_PATTERN, &slides);
    Ok(slides)
}
