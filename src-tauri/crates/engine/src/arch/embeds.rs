//! Turns a model of any family into an embedding model: GGUF keys give the pooling and whether attention is causal.

use kernels::Mask;

use super::Family;
use super::hparams::{HParamKey, HParams, MAX_WIDTH};
use crate::error::Result;
use crate::spec::{EmbeddingHead, ModelSpec, Pooling, Role};

const POOLING: HParamKey = HParamKey { gguf: "pooling_type", hf: "" };
/// Pooling type of a head that ranks pairs of texts.
const RANK: u64 = 4;
const CAUSAL: &str = "attention.causal";

/// Reads a family's spec with its file's embedding keys.
///
/// Errors: `model.feature_unsupported`.
pub(super) fn complete(hparams: &HParams<'_>, family: Family) -> Result<ModelSpec> {
    let mut spec = family.spec(hparams)?;
    let before = family.embedding_prefixes();
    let rank = spec.embeds.as_ref().and_then(|embeds| embeds.rank);
    let pooled = |pooling| Some(EmbeddingHead { pooling, dense: Vec::new(), before, rank });
    spec.embeds = match (hparams.optional_unbounded(POOLING)?, spec.embeds) {
        (None, embeds) => embeds,
        (Some(0), None) => None,
        (Some(0), Some(_)) => return Err(hparams.unsupported("a vector for each token")),
        (Some(1), _) => pooled(Pooling::Mean),
        (Some(2), _) => pooled(Pooling::First),
        (Some(3), _) => pooled(Pooling::Last),
        (Some(RANK), embeds) if rank.is_some() => embeds,
        (Some(RANK), _) => {
            return Err(hparams.unsupported("a head that ranks pairs of texts without its pooler"));
        }
        (Some(n), _) => return Err(hparams.unsupported(&format!("pooling type {n}"))),
    };
    if hparams.optional_flag(CAUSAL)? == Some(false) {
        if spec.attentions_mut().any(|a| a.window.is_some() && a.mask == Mask::Causal) {
            return Err(hparams.unsupported("windows that look ahead"));
        }
        spec.attentions_mut().for_each(|attention| attention.mask = Mask::Bidirectional);
    }
    let is_bidirectional = spec.is_bidirectional();
    let Some(embeds) = &mut spec.embeds else {
        return match is_bidirectional {
            true => Err(hparams.unsupported("bidirectional attention")),
            false => Ok(spec),
        };
    };
    for role in [Role::Dense2, Role::Dense3] {
        match hparams.n_rows(role, None) {
            Some(n) => embeds.dense.push(hparams.bounded(&format!("rows of {role:?}"), n, MAX_WIDTH)?),
            None => break,
        }
    }
    // There are no logits: the table is only looked up.
    spec.tied_embeddings = false;
    Ok(spec)
}
