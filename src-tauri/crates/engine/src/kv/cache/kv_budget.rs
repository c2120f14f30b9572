//! Memory budget of the cache: free pages, pages a sequence will need, and what is dropped to free some.

use super::super::requantize::KvRequantize;
use super::super::rewind_point;
use super::super::size::RequantizePolicy;
use super::{KvCache, SequenceId};
use crate::error::{EngineError, Result};

impl KvCache {
    /// Returns the ids of all live sequences.
    pub fn ids(&self) -> Vec<SequenceId> {
        self.sequences.keys().copied().collect()
    }

    /// Returns the free pages of the full-attention layers. Requantized pages count by their bytes.
    pub fn n_free_pages(&self) -> usize {
        let RequantizePolicy { when, page_bytes, .. } = self.geometry.requantize;
        match when {
            KvRequantize::Off => self.pages.n_free(),
            KvRequantize::Pressure | KvRequantize::After(_) => {
                let within = self.free_bytes() / page_bytes.max(1);
                self.pages.n_free().min(usize::try_from(within).unwrap_or(usize::MAX))
            }
        }
    }

    /// Returns how many full-attention pages the sequence would take for `n` more tokens.
    pub fn n_pages_to_grow(&self, id: SequenceId, n: usize) -> usize {
        let Ok(sequence) = self.get(id) else { return 0 };
        let n_held = sequence.tokens.len();
        let n_then = (n_held + n).min(self.geometry.n_ctx);
        let end = self.geometry.pages_for(n_then);
        let n_grown = sequence.pages.n_to_grow(n_held / self.geometry.page_len, end, &self.pages);
        n_grown + self.n_pages_to_requantize(id, n_then)
    }

    /// Drops pins and rewind points until `reserve` can succeed. Live sequences alone always fit.
    pub(super) fn free_for(&mut self, id: SequenceId, n: usize) -> Result<()> {
        loop {
            let sequence = self.get(id)?;
            let n_held = sequence.tokens.len();
            let (write_from, end) = (n_held / self.geometry.page_len, self.geometry.pages_for(n_held + n));
            let n_pages = match self.geometry.window {
                Some(_) => sequence.window.n_to_grow(write_from, end, &self.window_pages),
                None => 0,
            };
            let n_states = match sequence.state {
                Some(slot) => usize::from(self.states.is_shared(slot)),
                None => usize::from(self.geometry.recurrent),
            };
            if n_pages <= self.window_pages.n_free() && n_states <= self.states.n_free() {
                return Ok(());
            }
            assert!(self.release_spare(), "the pools hold every live sequence");
        }
    }

    /// Drops pins and rewind points until that many pages and states are free. Returns false if they cannot be freed.
    pub(super) fn free_up(&mut self, n_window_pages: usize, n_states: usize) -> bool {
        loop {
            if n_window_pages <= self.window_pages.n_free() && n_states <= self.states.n_free() {
                return true;
            }
            if !self.release_spare() {
                return false;
            }
        }
    }

    /// Drops something that only saves time: a pinned window first, then a rewind point. Returns false if there is
    /// nothing to drop.
    fn release_spare(&mut self) -> bool {
        let mut held = self.sequences.iter().filter(|(_, sequence)| sequence.pinned_from.is_some());
        match held.next().map(|(&id, _)| id) {
            Some(id) => self.unpin_window(id).is_ok(),
            None => self.drop_rewind_point(),
        }
    }

    pub(super) fn n_rewind_points(&self) -> usize {
        self.sequences.values().map(|sequence| sequence.rewind_points.len()).sum()
    }

    /// Drops the least useful rewind point. Returns false if there is none.
    pub(super) fn drop_rewind_point(&mut self) -> bool {
        let all = self.sequences.iter().map(|(&id, sequence)| (id, sequence.rewind_points.as_slice()));
        let Some((id, at)) = rewind_point::least_useful(all) else { return false };
        let Self { sequences, window_pages, states, .. } = self;
        if let Some(sequence) = sequences.get_mut(&id) {
            sequence.rewind_points.remove(at).release(window_pages, states);
        }
        true
    }
}

pub(super) fn memory_full() -> EngineError {
    EngineError::new(
        "kv.memory_full",
        "the memory for contexts is full",
        "Wait for other answers to finish, or give contexts more memory in the settings.",
    )
}
