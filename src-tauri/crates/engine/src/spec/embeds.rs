//! Models that output text embeddings, or a score for a pair of texts.

use kernels::Mask;

use super::{ModelSpec, Role};

/// How a text becomes a vector: token states pass linear layers, are pooled, and normalized to length 1.
///
/// The layers are linear without bias, so they may come before or after a mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingHead {
    /// How token rows become one vector.
    pub pooling: Pooling,
    /// Output widths of those layers, in order.
    pub dense: Vec<usize>,
    /// Texts that go before an input.
    pub before: EmbeddingPrefixes,
    /// Scores a pair of texts instead.
    pub rank: Option<RankHead>,
}

/// Head of a cross-encoder: how well a passage answers a query, read off the first token.
///
/// score = out · tanh(dense · state + dense bias) + out bias
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankHead {
    /// The tokens around and between the two texts.
    pub pair: PairForm,
}

/// How two texts become one sequence of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairForm {
    /// `[CLS] query [SEP] passage [SEP]`; the passage has token type 1.
    OneSeparator,
    /// `<s> query </s></s> passage </s>`, all of token type 0.
    TwoSeparators,
}

/// Prefixes for retrieval that a family was trained with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EmbeddingPrefixes {
    /// Before a search query.
    pub question: &'static str,
    /// Before a passage that is searched.
    pub passage: &'static str,
}

impl EmbeddingHead {
    /// Iterates over the linear layers with their output widths.
    pub fn layers(&self) -> impl Iterator<Item = (Role, usize)> {
        [Role::Dense2, Role::Dense3].into_iter().zip(self.dense.iter().copied())
    }
}

/// How token states are pooled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// Mean over all tokens.
    Mean,
    /// Row of the first token.
    First,
    /// Row of the last token.
    Last,
}

impl ModelSpec {
    /// Returns the width of an output row: logits of the vocabulary, or an embedding.
    pub fn output_width(&self) -> usize {
        match &self.embeds {
            None => self.n_vocab,
            Some(EmbeddingHead { rank: Some(_), .. }) => 1,
            Some(embeds) => embeds.dense.last().copied().unwrap_or(self.d_model),
        }
    }

    /// Returns whether some token sees later ones. Such a text must be computed at once.
    pub fn is_bidirectional(&self) -> bool {
        let attentions = self.layers.iter().filter_map(|layer| layer.mixer.attention());
        attentions.into_iter().any(|attention| attention.mask == Mask::Bidirectional)
    }
}
