//! What turns a model of any family into one that embeds: a GGUF says how the states of a text's tokens are pooled, and
//! whether tokens see what comes after them.

use kernels::Mask;

use super::Family;
use super::hyper::{Hyper, Key, MAX_WIDTH};
use crate::error::Result;
use crate::spec::{Embeds, ModelSpec, Pooling, Role};

const POOLING: Key = Key { gguf: "pooling_type", hf: "" };
const CAUSAL: &str = "attention.causal";

/// The spec of a family with what its file says of vectors. Error `model.feature_unsupported`.
pub(super) fn complete(hyper: &Hyper<'_>, family: Family) -> Result<ModelSpec> {
    let mut spec = family.spec(hyper)?;
    let before = family.before_texts();
    let pooled = |pooling| Some(Embeds { pooling, dense: Vec::new(), before });
    spec.embeds = match (hyper.optional_unbounded(POOLING)?, spec.embeds) {
        (None, embeds) => embeds,
        (Some(0), None) => None,
        (Some(0), Some(_)) => return Err(hyper.unsupported("a vector for each token")),
        (Some(1), _) => pooled(Pooling::Mean),
        (Some(2), _) => pooled(Pooling::First),
        (Some(3), _) => pooled(Pooling::Last),
        (Some(4), _) => return Err(hyper.unsupported("a head that ranks pairs of texts")),
        (Some(n), _) => return Err(hyper.unsupported(&format!("a pooling that it numbers {n}"))),
    };
    if hyper.optional_flag(CAUSAL)? == Some(false) {
        if spec.attentions_mut().any(|a| a.window.is_some() && a.mask == Mask::Causal) {
            return Err(hyper.unsupported("windows that look ahead"));
        }
        spec.attentions_mut().for_each(|attention| attention.mask = Mask::Bidirectional);
    }
    let looks_ahead = spec.looks_ahead();
    let Some(embeds) = &mut spec.embeds else {
        return match looks_ahead {
            true => Err(hyper.unsupported("tokens that see what comes after them")),
            false => Ok(spec),
        };
    };
    for role in [Role::Dense2, Role::Dense3] {
        match hyper.n_rows(role) {
            Some(n) => embeds.dense.push(hyper.bounded(&format!("rows of {role:?}"), n, MAX_WIDTH)?),
            None => break,
        }
    }
    // there are no logits: the table is looked up and no more
    spec.tied_embeddings = false;
    Ok(spec)
}
