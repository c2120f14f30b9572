//! EmbeddingGemma: Gemma 3 whose tokens see what comes after them, with windows to either side; states are averaged.

use kernels::Mask;
use serde_json::Value;
use weights::Container;

use super::hyper::Hyper;
use super::place::Place;
use super::{Architecture, gemma};
use crate::error::Result;
use crate::spec::{Before, Embeds, ModelSpec, Pooling, Role};

pub(super) struct GemmaEmbedding;

impl Architecture for GemmaEmbedding {
    fn gguf_name(&self) -> &'static str {
        "gemma-embedding"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["gemma3_text"]
    }

    fn hf_fits(&self, config: &Value) -> bool {
        config.get("use_bidirectional_attention") == Some(&Value::Bool(true))
    }

    /// As its card says for search.
    fn before_texts(&self) -> Before {
        Before { question: "task: search result | query: ", passage: "title: none | text: " }
    }

    fn spec(&self, hyper: &Hyper<'_>) -> Result<ModelSpec> {
        if !hyper.is_gguf() {
            // without them its vectors would be others than those it was trained for
            return Err(hyper.unsupported("dense layers in folders beside it, which its GGUF files have in them,"));
        }
        let mut spec = gemma::gemma3(hyper, self.gguf_name())?;
        for attention in spec.attentions_mut() {
            attention.mask = Mask::Bidirectional;
            // files give the width of both sides together
            attention.window = attention.window.map(|window| window / 2 + 1);
        }
        spec.embeds = Some(Embeds { pooling: Pooling::Mean, dense: Vec::new(), before: self.before_texts() });
        Ok(spec)
    }

    fn places(&self, container: Container, role: Role) -> Vec<Place> {
        gemma::places(container, role)
    }
}
