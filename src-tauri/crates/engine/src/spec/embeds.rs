//! Models whose answer is a vector: where the meaning of a text lies among that of others.

use kernels::Mask;

use super::{ModelSpec, Role};

/// How a text becomes a vector: the normed states of its tokens go through linear layers, are pooled, and scaled to
/// length 1. The layers have no bias and nothing between them, so that it is the same whether they come before a mean or
/// after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingHead {
    pub pooling: Pooling,
    /// Widths that those layers make, in order.
    pub dense: Vec<usize>,
    pub before: EmbeddingPrefixes,
}

/// What a family was trained to have before texts, where one is looked for among others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EmbeddingPrefixes {
    pub question: &'static str,
    pub passage: &'static str,
}

impl EmbeddingHead {
    /// The linear layers with the widths that they make.
    pub fn layers(&self) -> impl Iterator<Item = (Role, usize)> {
        [Role::Dense2, Role::Dense3].into_iter().zip(self.dense.iter().copied())
    }
}

/// What of a text's tokens counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// All of them alike.
    Mean,
    First,
    Last,
}

impl ModelSpec {
    /// Numbers in a row of its output: logits of a vocabulary, or a vector.
    pub fn output_width(&self) -> usize {
        match &self.embeds {
            None => self.n_vocab,
            Some(embeds) => embeds.dense.last().copied().unwrap_or(self.d_model),
        }
    }

    /// Some token sees what comes after it: a text has to be computed as a whole.
    pub fn is_bidirectional(&self) -> bool {
        let attentions = self.layers.iter().filter_map(|layer| layer.mixer.attention());
        attentions.into_iter().any(|attention| attention.mask == Mask::Bidirectional)
    }
}
