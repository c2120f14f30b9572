//! Mistral: llama with a window. Its GGUF files use llama's name and have no window.

use super::hparams::{HParams, MAX_POSITIONS};
use super::{Architecture, keys, llama};
use crate::error::Result;
use crate::spec::ModelSpec;

pub(super) struct Mistral;

impl Architecture for Mistral {
    fn gguf_name(&self) -> &'static str {
        "llama"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["mistral"]
    }

    fn is_trainable(&self) -> bool {
        true
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let mut spec = llama::spec(hparams, self.gguf_name(), false)?;
        let window = hparams.optional_count(keys::WINDOW, MAX_POSITIONS)?;
        spec.attentions_mut().for_each(|attention| attention.window = window);
        Ok(spec)
    }
}
