//! dots.llm1: normed heads, and experts as in DeepSeek V3.

use weights::Container;

use super::hparams::HParams;
use super::tensor_names::TensorName;
use super::{Architecture, biased_router, llama};
use crate::error::Result;
use crate::spec::{ModelSpec, Role};

pub(super) struct Dots1;

/// Layers below this index have full attention where there is a window.
const MAX_WINDOW_LAYERS: &str = "max_window_layers";
const DEFAULT_MAX_WINDOW_LAYERS: u64 = 62;

impl Architecture for Dots1 {
    fn gguf_name(&self) -> &'static str {
        "dots1"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["dots1"]
    }

    fn hf_defaults(&self) -> &'static [(&'static str, f64)] {
        &[("rms_norm_eps", 1e-6), ("max_position_embeddings", 2048.0)]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let scoring = hparams.value("scoring_func").and_then(|name| name.as_str());
        if let Some(scoring) = scoring.filter(|name| !["noaux_tc", "sigmoid"].contains(name)) {
            return Err(hparams.unsupported(&format!("the score \"{scoring}\" of experts")));
        }
        let mut spec = llama::spec(hparams, self.gguf_name(), false)?;
        let norm = spec.output_norm;
        let window = hparams.window()?;
        let slides = slides(hparams, spec.layers.len())?;
        for (attention, slides) in spec.attentions_mut().zip(slides) {
            attention.qk_norm = Some(norm);
            attention.window = window.filter(|_| slides);
            attention.set_rope_half();
        }
        biased_router::add_experts(hparams, &mut spec, false)?;
        Ok(spec)
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        biased_router::tensor_names(container, role)
    }
}

fn slides(hparams: &HParams<'_>, n_layers: usize) -> Result<Vec<bool>> {
    if let Some(types) = hparams.layer_types(n_layers)? {
        return Ok(types.iter().map(|kind| *kind == "sliding_attention").collect());
    }
    let key = super::hparams::HParamKey { gguf: "", hf: MAX_WINDOW_LAYERS };
    let first = hparams.optional_unbounded(key)?.unwrap_or(DEFAULT_MAX_WINDOW_LAYERS);
    Ok((0..n_layers as u64).map(|layer| layer >= first).collect())
}
