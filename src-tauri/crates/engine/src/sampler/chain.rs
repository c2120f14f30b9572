//! The stages in their order, and the draw at the end.

use super::Sampling;
use crate::tokenizer::TokenId;

/// The sampler of one reply. Allocates when made, never per token.
#[derive(Debug)]
pub struct Chain {}

impl Chain {
    pub fn new(sampling: &Sampling, n_vocab: usize) -> Self {
        unimplemented!()
    }

    /// The next token after `history` (oldest first). NaN is never drawn; None if no logit is a number.
    pub fn sample(&mut self, logits: &[f32], history: &[TokenId]) -> Option<TokenId> {
        unimplemented!()
    }
}
