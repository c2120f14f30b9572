//! SmolLM3: llama with every fourth layer without positions, and sometimes a window in those.

use super::hparams::{HParams, HParamKey, MAX_LAYERS, MAX_POSITIONS};
use super::{Architecture, llama};
use crate::error::Result;
use crate::spec::{ModelSpec, Rope};
use serde_json::Value;

pub(super) struct SmolLm3;

/// By default, layers 3, 7, 11 … have no rotary embedding.
const NO_ROPE_INTERVAL: usize = 4;

impl Architecture for SmolLm3 {
    fn gguf_name(&self) -> &'static str {
        "smollm3"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["smollm3"]
    }

    fn is_trainable(&self) -> bool {
        true
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let mut spec = llama::spec(hparams, self.gguf_name(), true)?;
        let has_rope = has_rope(hparams, spec.layers.len())?;
        let window = window(hparams)?;
        for (index, layer) in spec.layers.iter_mut().enumerate() {
            let Some(attention) = layer.mixer.attention_mut() else { continue };
            if !has_rope[index] {
                attention.rope = Rope::None;
            }
            if slides(hparams, index, has_rope[index])? {
                attention.window = window;
            }
        }
        Ok(spec)
    }
}

/// Returns which layers rotate queries and keys. GGUF has no key for it.
fn has_rope(hparams: &HParams<'_>, n_layers: usize) -> Result<Vec<bool>> {
    let Some(config) = hparams.config() else {
        return Ok(by_interval(n_layers, NO_ROPE_INTERVAL));
    };
    let key = "no_rope_layers";
    match config.get(key) {
        None | Some(Value::Null) => {
            let interval =
                hparams.optional_count(HParamKey { gguf: "", hf: "no_rope_layer_interval" }, MAX_LAYERS)?;
            Ok(by_interval(n_layers, interval.unwrap_or(NO_ROPE_INTERVAL)))
        }
        Some(Value::Array(flags)) if flags.len() == n_layers => flags
            .iter()
            .map(|flag| match flag.as_u64() {
                Some(0) => Ok(false),
                Some(1) => Ok(true),
                _ => Err(hparams.wrong(key, format!("{flag} is neither 0 nor 1"))),
            })
            .collect(),
        Some(_) => Err(hparams.wrong(key, format!("it is not a list of {n_layers} flags"))),
    }
}

fn by_interval(n_layers: usize, interval: usize) -> Vec<bool> {
    (1..=n_layers).map(|n| n % interval != 0).collect()
}

fn window(hparams: &HParams<'_>) -> Result<Option<usize>> {
    if !hparams.flag("use_sliding_window", false)? {
        return Ok(None);
    }
    hparams.optional_count(HParamKey { gguf: "", hf: "sliding_window" }, MAX_POSITIONS)
}

/// Returns whether a layer has the window: by `layer_types`, else if it has no rotation.
fn slides(hparams: &HParams<'_>, layer: usize, has_rope: bool) -> Result<bool> {
    let types = hparams.config().and_then(|config| config.get("layer_types"));
    match types.and_then(Value::as_array) {
        None => Ok(!has_rope),
        Some(types) => match types.get(layer).and_then(Value::as_str) {
            Some("full_attention") => Ok(false),
            Some("sliding_attention") => Ok(true),
            other => Err(hparams.wrong("layer_types", format!("layer {layer} is {other:?}"))),
        },
    }
}
