//! How many pages are left, and how many a sequence will want.

use super::{KvCache, SequenceId};
use crate::error::EngineError;

impl KvCache {
    /// Of the layers that keep everything.
    pub fn n_free_pages(&self) -> usize {
        self.pages.n_free()
    }

    /// Pages of those layers that the sequence would take for `n` more tokens.
    pub fn n_pages_to_grow(&self, id: SequenceId, n: usize) -> usize {
        let Ok(sequence) = self.get(id) else { return 0 };
        let n_held = sequence.tokens.len();
        let end = self.geometry.pages_for((n_held + n).min(self.geometry.n_ctx));
        sequence.pages.n_to_grow(n_held / self.geometry.page_len, end, &self.pages)
    }
}

pub(super) fn memory_full() -> EngineError {
    EngineError::new(
        "kv.memory_full",
        "the memory for contexts is full",
        "Wait for other answers to end, or give contexts more memory in the settings.",
    )
}
