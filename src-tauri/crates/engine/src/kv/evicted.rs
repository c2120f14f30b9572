//! Record of what a sequence was before attention eviction: the full token text it stands for.
//!
//! Lives beside the cache, so that a prompt that continues the full text finds the evicted sequence.

use crate::TokenId;

/// Token id that stands for evicted tokens. Above every vocabulary.
pub(crate) const EVICTED_TOKEN: TokenId = 1 << 31;

/// Text of one sequence before and after eviction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EvictedHistory {
    /// Tokens that the sequence has read.
    pub(crate) text: Vec<TokenId>,
    /// Tokens that it still holds, with `EVICTED_TOKEN`s in between.
    pub(crate) held: Vec<TokenId>,
}

impl EvictedHistory {
    /// Whether `prompt` begins with the full text and goes on after it.
    pub(crate) fn is_continued_by(&self, prompt: &[TokenId]) -> bool {
        prompt.len() > self.text.len() && prompt.starts_with(&self.text)
    }

    /// Returns `prompt` with the evicted form in place of the full text.
    pub(crate) fn apply(&self, prompt: &[TokenId]) -> Vec<TokenId> {
        self.held.iter().chain(&prompt[self.text.len()..]).copied().collect()
    }
}
