//! Token by token to text: never half a character, never U+FFFD for one that completes later.

use super::TokenId;

/// Decodes one reply; owns what it needs, so that it can outlive any borrow of the tokenizer.
#[derive(Debug, Clone)]
pub struct DetokenizeStream {}

impl DetokenizeStream {
    /// The text that `id` completes; often one piece, sometimes nothing yet. Valid until the next call.
    pub fn push(&mut self, id: TokenId) -> &str {
        unimplemented!()
    }

    /// What is left at the end: an incomplete character shows as U+FFFD.
    pub fn finish(&mut self) -> &str {
        unimplemented!()
    }
}
