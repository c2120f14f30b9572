//! Gemma 4's assistant: a small model that drafts for a Gemma 4 from its embeddings, hidden states, keys and values.
//!
//! Its tensors and keys are those of llama.cpp's `gemma4-assistant`. Token clusters come from safetensors alone.

use weights::{Container, WeightFile};

use super::hparams::{HParamKey, HParams, MAX_WIDTH};
use super::tensor_names::TensorName;
use super::{Architecture, gemma4};
use crate::error::{DAMAGED, EngineError, Result};
use crate::spec::{Assistance, AssistantHead, ModelSpec, Role, TokenClusters};

pub(super) struct Gemma4Assistant;

const TARGET_WIDTH: HParamKey = HParamKey { gguf: "embedding_length_out", hf: "backbone_hidden_size" };
/// llama.cpp counts all layers as drafting ones.
const N_DRAFT_LAYERS: HParamKey = HParamKey { gguf: "nextn_predict_layers", hf: "" };
const N_CLUSTERS: HParamKey = HParamKey { gguf: "", hf: "num_centroids" };
const N_CLUSTERS_USED: HParamKey = HParamKey { gguf: "", hf: "centroid_intermediate_top_k" };
/// What transformers assumes.
const DEFAULT_CLUSTERS: (usize, usize) = (2048, 32);
const TOKEN_ORDER: &str = "masked_embedding.token_ordering";

impl Architecture for Gemma4Assistant {
    fn gguf_name(&self) -> &'static str {
        "gemma4-assistant"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["gemma4_assistant", "gemma4_unified_assistant"]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let mut spec = gemma4::spec(hparams, self.gguf_name(), gemma4::KeyOwner::Target)?;
        if spec.embedding.per_layer.is_some() {
            return Err(hparams.unsupported("per-layer embeddings"));
        }
        let head = AssistantHead {
            target_width: hparams.count(TARGET_WIDTH, MAX_WIDTH)?,
            clusters: clusters(hparams, spec.n_vocab)?,
        };
        hparams.note_count(N_DRAFT_LAYERS, spec.layers.len());
        // Drafts are compared with each other alone.
        spec.output_softcap = None;
        spec.assistance = Some(Assistance::Drafts(head));
        Ok(spec)
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        match (container, role) {
            (Container::Gguf { .. }, Role::DraftProjection) => vec!["nextn.pre_projection.weight".into()],
            (Container::Safetensors, Role::DraftProjection) => vec!["pre_projection.weight".into()],
            _ => gemma4::tensor_names(container, role),
        }
    }

    fn drafts_for(&self) -> Option<&'static str> {
        Some("gemma4")
    }
}

fn clusters(hparams: &HParams<'_>, n_vocab: usize) -> Result<Option<TokenClusters>> {
    if !hparams.flag("use_ordered_embeddings", false)? {
        return Ok(None);
    }
    let n_clusters = hparams.optional_count(N_CLUSTERS, n_vocab)?.unwrap_or(DEFAULT_CLUSTERS.0);
    let n_used = hparams.optional_count(N_CLUSTERS_USED, n_vocab)?.unwrap_or(DEFAULT_CLUSTERS.1);
    if !n_vocab.is_multiple_of(n_clusters) || n_used > n_clusters {
        let message = format!("{n_used} of {n_clusters} clusters of {n_vocab} tokens");
        return Err(hparams.wrong(&hparams.name(N_CLUSTERS), message));
    }
    Ok(Some(TokenClusters { n_clusters, n_used }))
}

/// Reads the tokens of all clusters, one cluster after the other. (n_vocab)
///
/// Errors: `model.tensor_missing`, `model.tensor_shape`, `model.tensor_values`.
pub(super) fn token_order(file: &WeightFile, n_vocab: usize) -> Result<Vec<u32>> {
    let view = file.tensor(TOKEN_ORDER).ok_or_else(|| super::tensor_missing(TOKEN_ORDER))?;
    super::check_shape(&view, &[n_vocab])?;
    let wrong = || {
        let message = format!("{TOKEN_ORDER} does not list tokens below {n_vocab}");
        EngineError::new("model.tensor_values", message, DAMAGED)
    };
    let (numbers, _) = view.data.as_chunks::<8>();
    let token = |bytes: &[u8; 8]| {
        let id = u32::try_from(i64::from_le_bytes(*bytes)).ok();
        id.filter(|id| (*id as usize) < n_vocab).ok_or_else(wrong)
    };
    match view.dtype.name() == "I64" && numbers.len() == n_vocab {
        true => numbers.iter().map(token).collect(),
        false => Err(wrong()),
    }
}
