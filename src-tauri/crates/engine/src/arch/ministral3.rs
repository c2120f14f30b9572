//! Ministral 3: llama with YaRN whose values keep their size, and queries that grow with their position.

use super::hyper::{Hyper, Key, MAX_FACTOR, MAX_POSITIONS, Numbers};
use super::{Architecture, llama};
use crate::error::Result;
use crate::spec::{ModelSpec, PositionScale};

pub(super) struct Ministral3;

const BETA: Key = Key { gguf: "attention.temperature_scale", hf: "llama_4_scaling_beta" };
const ORIGINAL_CONTEXT: Key =
    Key { gguf: "rope.scaling.original_context_length", hf: "original_max_position_embeddings" };

impl Architecture for Ministral3 {
    fn gguf_name(&self) -> &'static str {
        "mistral3"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["ministral3"]
    }

    fn spec(&self, hyper: &Hyper<'_>) -> Result<ModelSpec> {
        let mut spec = llama::spec(hyper, self.gguf_name(), false)?;
        let window = hyper.window()?;
        let position_scale = position_scale(hyper)?;
        for attention in spec.attentions_mut() {
            attention.window = window;
            attention.position_scale = position_scale;
        }
        Ok(spec)
    }
}

fn position_scale(hyper: &Hyper<'_>) -> Result<Option<PositionScale>> {
    let (beta, original) = match hyper.value("rope_parameters") {
        Some(parameters) => {
            let numbers = Numbers::new(parameters, "rope_parameters.");
            let beta = numbers.optional_real(BETA.hf, 0.0, MAX_FACTOR)?;
            beta.into_iter().for_each(|beta| hyper.note_real(BETA, beta));
            (beta, numbers.optional_real(ORIGINAL_CONTEXT.hf, 1.0, MAX_POSITIONS as f64)?)
        }
        None => (
            hyper.optional_real(BETA, 0.0, MAX_FACTOR)?,
            hyper.optional_count(ORIGINAL_CONTEXT, MAX_POSITIONS)?.map(|n| n as f64),
        ),
    };
    let scale = beta.zip(original).filter(|(beta, _)| *beta != 0.0);
    Ok(scale.map(|(beta, original)| PositionScale { beta: beta as f32, original_context: original as u32 }))
}
