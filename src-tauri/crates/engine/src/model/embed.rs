//! Text embeddings, by models made for them.

use kernels::OutputSelection;

use super::{Chunk, Logits, LogitsSelection, Model};
use crate::TokenId;
use crate::error::{EngineError, Result};
use crate::spec::{EmbeddingPrefixes, Pooling};
use crate::tokenizer::Special;

impl Model {
    /// Returns whether the model outputs text embeddings instead of logits.
    pub fn embeds(&self) -> bool {
        self.spec.embeds.is_some()
    }

    /// Checks that the model can generate text.
    ///
    /// Errors: `model.embeds_only`.
    pub fn check_generates(&self) -> Result<()> {
        if !self.embeds() {
            return Ok(());
        }
        let message =
            format!("this {} model computes embeddings for search; it cannot answer", self.spec.architecture);
        Err(EngineError::new(
            "model.embeds_only",
            message,
            "Choose it under \"Embedding model\" in the settings, and another model to chat with.",
        ))
    }

    /// Checks that the model outputs embeddings.
    ///
    /// Errors: `model.no_embeddings`.
    pub fn check_embeds(&self) -> Result<()> {
        match &self.spec.embeds {
            Some(embeds) if embeds.rank.is_none() => Ok(()),
            Some(_) | None => Err(no_embeddings(self.spec.architecture)),
        }
    }

    /// Returns the prefixes that the model expects before questions and passages in retrieval.
    pub fn embedding_prefixes(&self) -> EmbeddingPrefixes {
        self.spec.embeds.as_ref().map_or(EmbeddingPrefixes::default(), |embeds| embeds.before)
    }

    /// Encodes a text for embedding, with the special tokens that the file puts around it.
    ///
    /// Errors: `model.no_vocabulary`.
    pub fn embedding_tokens(&self, text: &str) -> Result<Vec<TokenId>> {
        let Some(tokenizer) = &self.tokenizer else {
            return Err(EngineError::new(
                "model.no_vocabulary",
                "the model's file contains no vocabulary",
                "Put its tokenizer.json beside it, or choose another file of the model.",
            ));
        };
        Ok(tokenizer.add_special(tokenizer.encode(text, Special::Plain)))
    }

    /// Returns the embedding of a text, a vector of length 1. (output_width)
    ///
    /// Errors: `model.no_embeddings`, `request.context_full`, `request.token_unknown`, `request.empty`, a failed
    /// kernel.
    pub fn embed(&mut self, tokens: &[TokenId]) -> Result<Vec<f32>> {
        let embeds = self.spec.embeds.as_ref().filter(|embeds| embeds.rank.is_none());
        let Some(pooling) = embeds.map(|embeds| embeds.pooling) else {
            return Err(no_embeddings(self.spec.architecture));
        };
        if tokens.is_empty() {
            let remedy = "Enter some text.";
            return Err(EngineError::new("request.empty", "an empty text has no embedding", remedy));
        }
        let logits = match pooling {
            Pooling::Mean | Pooling::First => LogitsSelection::All,
            Pooling::Last => LogitsSelection::Last,
        };
        let seq = self.new_sequence()?;
        let vector = match self.forward_all(&[Chunk { seq, tokens, logits }], OutputSelection::Rows, None) {
            Ok((states, _)) => pool(&states, pooling),
            Err(error) => Err(error),
        };
        self.free(seq);
        vector
    }
}

/// Pools token states into one vector of length 1.
///
/// Errors: `model.nan_logits`.
fn pool(states: &Logits<'_>, pooling: Pooling) -> Result<Vec<f32>> {
    let mut vector = states.row(0)?.to_vec();
    match pooling {
        Pooling::First | Pooling::Last => {}
        Pooling::Mean => {
            for row in 1..states.n_rows() {
                vector.iter_mut().zip(states.row(row)?).for_each(|(sum, x)| *sum += x);
            }
        }
    }
    // The mean needs no division: the vector is normalized to length 1 below.
    let length = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt();
    if !length.is_finite() || length == 0.0 {
        return Err(super::nan_logits());
    }
    vector.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
    Ok(vector)
}

fn no_embeddings(architecture: &str) -> EngineError {
    EngineError::new(
        "model.no_embeddings",
        format!("this {architecture} model does not compute embeddings"),
        "Choose an embedding model, such as Qwen3-Embedding or EmbeddingGemma.",
    )
}
