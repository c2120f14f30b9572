//! Texts as vectors, by models that are made for it.

use kernels::OutputSelection;

use super::{Chunk, Logits, LogitsSelection, Model};
use crate::TokenId;
use crate::error::{EngineError, Result};
use crate::spec::{EmbeddingPrefixes, Pooling};
use crate::tokenizer::Special;

impl Model {
    /// Whether its output is vectors of texts, not text.
    pub fn embeds(&self) -> bool {
        self.spec.embeds.is_some()
    }

    /// Error `model.embeds_only`: it has no logits.
    pub fn answers(&self) -> Result<()> {
        if !self.embeds() {
            return Ok(());
        }
        let message = format!(
            "this {} model makes vectors of texts, by which passages are found; it does not answer",
            self.spec.architecture
        );
        Err(EngineError::new(
            "model.embeds_only",
            message,
            "Choose it under \"Embedding model\" in the settings, and another model to chat with.",
        ))
    }

    /// Error `model.no_embeddings`: it has logits.
    pub fn check_embeds(&self) -> Result<()> {
        if self.embeds() { Ok(()) } else { Err(no_embeddings(self.spec.architecture)) }
    }

    /// What goes before questions and passages, where one is looked for among the others.
    pub fn embedding_prefixes(&self) -> EmbeddingPrefixes {
        self.spec.embeds.as_ref().map_or(EmbeddingPrefixes::default(), |embeds| embeds.before)
    }

    /// The ids that a text is embedded as: its own, and those that the file says go around it.
    pub fn embedding_tokens(&self, text: &str) -> Result<Vec<TokenId>> {
        let Some(tokenizer) = &self.tokenizer else {
            return Err(EngineError::new(
                "model.no_vocabulary",
                "the model's file carries no vocabulary",
                "Put its tokenizer.json beside it, or choose another file of the model.",
            ));
        };
        Ok(tokenizer.add_special(tokenizer.encode(text, Special::Plain)))
    }

    /// Where a text lies among others: a vector of length 1. (output_width)
    ///
    /// Errors: `model.no_embeddings`, `request.context_full`, `request.token_unknown`, `request.empty`, a failed kernel.
    pub fn embed(&mut self, tokens: &[TokenId]) -> Result<Vec<f32>> {
        let Some(pooling) = self.spec.embeds.as_ref().map(|embeds| embeds.pooling) else {
            return Err(no_embeddings(self.spec.architecture));
        };
        if tokens.is_empty() {
            let remedy = "Give it some words.";
            return Err(EngineError::new("request.empty", "an empty text has no vector", remedy));
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

/// One vector of length 1. Error `model.nan_logits`.
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
    // whatever it is divided by before, its length is 1 in the end
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
        format!("this {architecture} model answers; it makes no vectors of texts"),
        "Choose a model that is made for embeddings, such as Qwen3-Embedding or EmbeddingGemma.",
    )
}
