//! Requantization of old chunks: which chunks are held in fewer bits, and the pages this takes and frees.
//!
//! Exact and requantized pages share one byte budget, so requantizing frees memory at once.

use std::ops::Range;

use super::super::CHECKPOINT_CHUNK_TOKENS;
use super::super::requantize::{MIN_EXACT_TOKENS, Requantized};
use super::super::size::{Geometry, RequantizePolicy};
use super::{KvCache, SequenceId, kv_budget, unknown};
use crate::error::Result;

/// Page work to do before the next allocation or write.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageRequantization {
    /// Pages to requantize, as (exact, requantized).
    pub to_requantize: Vec<(u32, u32)>,
    /// Pages without a holder now.
    pub released: Vec<u32>,
}

impl KvCache {
    /// Returns how far a sequence is requantized, and what its tokens saw of it.
    pub fn requantized(&self, id: SequenceId) -> Result<&Requantized> {
        Ok(&self.get(id)?.requantized)
    }

    /// Returns whether the token at `position` sees more requantized chunks than the one before, so that both cannot
    /// share a run.
    pub fn requantizes_at(&self, position: usize) -> bool {
        self.geometry.requantize.when.is_due_at(position)
    }

    /// Requantizes what is due before further tokens.
    ///
    /// Errors: `kv.memory_full` if the pages are shared and both forms do not fit; nothing has changed then.
    pub fn requantize_due(&mut self, id: SequenceId) -> Result<PageRequantization> {
        let sequence = self.get(id)?;
        let due = self.geometry.requantize.when.due(sequence.tokens.len());
        if due <= sequence.requantized.n_chunks {
            return Ok(PageRequantization::default());
        }
        let pages = pages_of(&self.geometry, sequence.requantized.n_chunks..due);
        let (n_new, n_released) = self.count_page_changes(id, pages)?;
        let RequantizePolicy { page_bytes, requantized_page_bytes, .. } = self.geometry.requantize;
        let more = (n_new as u64 * requantized_page_bytes).saturating_sub(n_released as u64 * page_bytes);
        if more > self.free_bytes() || n_new > self.pages.n_requantized_free() {
            return Err(kv_budget::memory_full());
        }
        self.requantize_to(id, due)
    }

    /// Requantizes the next chunk of the sequence with the most exact chunks, together with all sequences that share
    /// it. Returns `None` if nothing would be saved.
    pub fn requantize_one(&mut self) -> Option<PageRequantization> {
        let left = |id: SequenceId| -> Option<(usize, SequenceId)> {
            let sequence = self.sequences.get(&id).filter(|sequence| sequence.lost.is_none())?;
            let n_may = sequence.tokens.len().saturating_sub(MIN_EXACT_TOKENS) / CHECKPOINT_CHUNK_TOKENS;
            (n_may > sequence.requantized.n_chunks).then(|| (n_may - sequence.requantized.n_chunks, id))
        };
        let mut all: Vec<(usize, SequenceId)> = self.ids().into_iter().filter_map(left).collect();
        // Ties go to the oldest sequence.
        all.sort_by(|(n, id), (m, other)| m.cmp(n).then(id.cmp(other)));
        let ids: Vec<SequenceId> = all.into_iter().map(|(_, id)| id).collect();
        let holders = ids.iter().find_map(|&id| self.holders_that_save(id, &ids))?;
        let mut all = PageRequantization::default();
        for id in holders {
            let n = self.sequences.get(&id).map_or(0, |sequence| sequence.requantized.n_chunks + 1);
            let Ok(PageRequantization { to_requantize, released }) = self.requantize_to(id, n) else {
                continue;
            };
            all.to_requantize.extend(to_requantize);
            all.released.extend(released);
        }
        Some(all)
    }

    /// Records that the sequence's tokens were computed with `n_requantized` requantized chunks, however it got them.
    pub fn set_requantized_view(&mut self, id: SequenceId, n_requantized: usize) -> Result<()> {
        let sequence = self.sequences.get_mut(&id).ok_or_else(|| unknown(id))?;
        sequence.requantized = Requantized { n_chunks: n_requantized, views: Vec::new() };
        sequence.requantized.record_view(0);
        sequence.requantized.n_chunks = 0;
        Ok(())
    }

    /// Returns those of `ids` that share the next chunk of `id`, if requantizing it for all of them saves memory.
    fn holders_that_save(&self, id: SequenceId, ids: &[SequenceId]) -> Option<Vec<SequenceId>> {
        let sequence = self.sequences.get(&id)?;
        let n = sequence.requantized.n_chunks;
        let pages = pages_of(&self.geometry, n..n + 1);
        let last = sequence.pages.get(pages.end - 1)?;
        let shares = |other: &&SequenceId| {
            let other = self.sequences.get(other);
            other.is_some_and(|other| {
                other.requantized.n_chunks == n && other.pages.get(pages.end - 1) == Some(last)
            })
        };
        let holders: Vec<SequenceId> = ids.iter().filter(shares).copied().collect();
        let RequantizePolicy { page_bytes, requantized_page_bytes, .. } = self.geometry.requantize;
        let (mut saved, mut n_new) = (0, 0);
        for &page in &sequence.pages.table()[pages] {
            let is_theirs = self.pages.n_holders(page) as usize == holders.len();
            saved += if is_theirs { page_bytes } else { 0 };
            n_new += usize::from(self.pages.requantized_as(page).is_none());
        }
        let saves = saved > n_new as u64 * requantized_page_bytes && n_new <= self.pages.n_requantized_free();
        saves.then_some(holders)
    }

    /// Returns how many requantized pages these pages need, and how many exact pages that frees.
    fn count_page_changes(&self, id: SequenceId, pages: Range<usize>) -> Result<(usize, usize)> {
        let held = &self.get(id)?.pages.table()[pages];
        let n_new = held.iter().filter(|&&page| self.pages.requantized_as(page).is_none()).count();
        let n_released = held.iter().filter(|&&page| !self.pages.is_shared(page)).count();
        Ok((n_new, n_released))
    }

    /// Requantizes the sequence's first `n` chunks.
    pub(super) fn requantize_to(&mut self, id: SequenceId, n: usize) -> Result<PageRequantization> {
        let Self { sequences, geometry, pages, .. } = self;
        let sequence = sequences.get_mut(&id).ok_or_else(|| unknown(id))?;
        let indices = pages_of(geometry, sequence.requantized.n_chunks..n);
        let before = sequence.pages.table()[indices.clone()].to_vec();
        let to_requantize = sequence.pages.requantize(indices, pages);
        sequence.requantized.n_chunks = n;
        let released = before.into_iter().filter(|&page| pages.n_holders(page) == 0).collect();
        Ok(PageRequantization { to_requantize, released })
    }

    /// Returns the bytes that requantizing takes before a sequence has `n` tokens, in pages. Not zero only where
    /// pages are shared.
    pub(super) fn n_pages_to_requantize(&self, id: SequenceId, n: usize) -> usize {
        let RequantizePolicy { when, page_bytes, requantized_page_bytes } = self.geometry.requantize;
        let Ok(sequence) = self.get(id) else { return 0 };
        let n_whole = sequence.tokens.len() / CHECKPOINT_CHUNK_TOKENS;
        let due = when.due(n.saturating_sub(1)).min(n_whole);
        if due <= sequence.requantized.n_chunks {
            return 0;
        }
        let Ok((n_new, n_released)) =
            self.count_page_changes(id, pages_of(&self.geometry, sequence.requantized.n_chunks..due))
        else {
            return 0;
        };
        let more = (n_new as u64 * requantized_page_bytes).saturating_sub(n_released as u64 * page_bytes);
        more.div_ceil(page_bytes.max(1)) as usize
    }

    /// Returns the bytes that full-attention pages may still take.
    pub(super) fn free_bytes(&self) -> u64 {
        let RequantizePolicy { page_bytes, requantized_page_bytes, .. } = self.geometry.requantize;
        let held = self.pages.n_held() as u64 * page_bytes
            + self.pages.n_requantized_held() as u64 * requantized_page_bytes;
        (self.pages.n_slots() as u64 * page_bytes).saturating_sub(held)
    }
}

/// Returns the pages of these chunks, ordered by position.
fn pages_of(geometry: &Geometry, chunks: Range<usize>) -> Range<usize> {
    geometry.pages_for(chunks.start * CHECKPOINT_CHUNK_TOKENS)
        ..geometry.pages_for(chunks.end * CHECKPOINT_CHUNK_TOKENS)
}

#[cfg(test)]
mod tests;
