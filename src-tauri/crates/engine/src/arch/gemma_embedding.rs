//! EmbeddingGemma: Gemma 3 with bidirectional attention and two-sided windows; states are averaged.

use kernels::Mask;
use serde_json::Value;
use weights::Container;

use super::hparams::HParams;
use super::tensor_names::TensorName;
use super::{Architecture, gemma};
use crate::error::Result;
use crate::spec::{EmbeddingPrefixes, EmbeddingHead, ModelSpec, Pooling, Role};

pub(super) struct GemmaEmbedding;

impl Architecture for GemmaEmbedding {
    fn gguf_name(&self) -> &'static str {
        "gemma-embedding"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["gemma3_text"]
    }

    fn matches_hf_config(&self, config: &Value) -> bool {
        config.get("use_bidirectional_attention") == Some(&Value::Bool(true))
    }

    /// As its model card says for retrieval.
    fn embedding_prefixes(&self) -> EmbeddingPrefixes {
        EmbeddingPrefixes { question: "task: search result | query: ", passage: "title: none | text: " }
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        if !hparams.is_gguf() {
            // Without them the vectors would differ from the trained ones.
            return Err(hparams.unsupported("dense layers in separate folders (GGUF files include them)"));
        }
        let mut spec = gemma::gemma3(hparams, self.gguf_name())?;
        for attention in spec.attentions_mut() {
            attention.mask = Mask::Bidirectional;
            // Files give the width of both sides together.
            attention.window = attention.window.map(|window| window / 2 + 1);
        }
        spec.embeds = Some(EmbeddingHead { pooling: Pooling::Mean, dense: Vec::new(), before: self.embedding_prefixes(), rank: None });
        Ok(spec)
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        gemma::tensor_names(container, role)
    }
}
