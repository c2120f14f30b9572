//! Ministral 3: llama with YaRN without magnitude scaling, and queries that grow with their position.

use super::hparams::{HParams, HParamKey, MAX_FACTOR, MAX_POSITIONS, JsonNumbers};
use super::{Architecture, llama};
use crate::error::Result;
use crate::spec::{ModelSpec, PositionScale};

pub(super) struct Ministral3;

const BETA: HParamKey = HParamKey { gguf: "attention.temperature_scale", hf: "llama_4_scaling_beta" };
const ORIGINAL_CONTEXT: HParamKey =
    HParamKey { gguf: "rope.scaling.original_context_length", hf: "original_max_position_embeddings" };

impl Architecture for Ministral3 {
    fn gguf_name(&self) -> &'static str {
        "mistral3"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["ministral3"]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let mut spec = llama::spec(hparams, self.gguf_name(), false)?;
        let window = hparams.window()?;
        let position_scale = position_scale(hparams)?;
        for attention in spec.attentions_mut() {
            attention.window = window;
            attention.position_scale = position_scale;
        }
        Ok(spec)
    }
}

fn position_scale(hparams: &HParams<'_>) -> Result<Option<PositionScale>> {
    let (beta, original) = match hparams.value("rope_parameters") {
        Some(parameters) => {
            let numbers = JsonNumbers::new(parameters, "rope_parameters.");
            let beta = numbers.optional_real(BETA.hf, 0.0, MAX_FACTOR)?;
            beta.into_iter().for_each(|beta| hparams.note_real(BETA, beta));
            (beta, numbers.optional_real(ORIGINAL_CONTEXT.hf, 1.0, MAX_POSITIONS as f64)?)
        }
        None => (
            hparams.optional_real(BETA, 0.0, MAX_FACTOR)?,
            hparams.optional_count(ORIGINAL_CONTEXT, MAX_POSITIONS)?.map(|n| n as f64),
        ),
    };
    let scale = beta.zip(original).filter(|(beta, _)| *beta != 0.0);
    Ok(scale.map(|(beta, original)| PositionScale { beta: beta as f32, original_context: original as u32 }))
}
