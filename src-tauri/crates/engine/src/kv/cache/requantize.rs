//! Which stretches of a sequence are held in fewer bits, and the pages that this takes and gives back. The bytes of both
//! kinds of pages together are bounded, so that what ages makes room at once.

use std::ops::Range;

use super::super::CHECKPOINT_CHUNK_TOKENS;
use super::super::requantize::{MIN_EXACT_TOKENS, Requantized};
use super::super::size::{Geometry, RequantizePolicy};
use super::{KvCache, SequenceId, kv_budget, unknown};
use crate::error::Result;

/// What is to be done with pages before anyone takes or writes one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageRequantization {
    /// What the first holds goes to the second, an aged one.
    pub to_requantize: Vec<(u32, u32)>,
    /// Nobody holds these any more.
    pub given_up: Vec<u32>,
}

impl KvCache {
    /// How far a sequence has aged, and what its tokens saw of that.
    pub fn aged(&self, id: SequenceId) -> Result<&Requantized> {
        Ok(&self.get(id)?.aged)
    }

    /// The token that will be at `position` sees more that has aged than the one before it, so that they can't go
    /// together.
    pub fn requantizes_at(&self, position: usize) -> bool {
        self.geometry.requantize.when.is_due_at(position)
    }

    /// Before further tokens: what they have to see aged is so from here on. Error `kv.memory_full`: others hold it
    /// too, and there is no room for both; nothing has changed.
    pub fn requantize_due(&mut self, id: SequenceId) -> Result<PageRequantization> {
        let sequence = self.get(id)?;
        let due = self.geometry.requantize.when.due(sequence.tokens.len());
        if due <= sequence.aged.n_chunks {
            return Ok(PageRequantization::default());
        }
        let pages = pages_of(&self.geometry, sequence.aged.n_chunks..due);
        let (n_new, n_given_up) = self.turns(id, pages)?;
        let RequantizePolicy { page_bytes, requantized_page_bytes, .. } = self.geometry.requantize;
        let more = (n_new as u64 * requantized_page_bytes).saturating_sub(n_given_up as u64 * page_bytes);
        if more > self.free_bytes() || n_new > self.pages.n_requantized_free() {
            return Err(kv_budget::memory_full());
        }
        self.requantize_to(id, due)
    }

    /// The next stretch of whichever sequence has most that could age, and of all that share it. None: none saves
    /// anything.
    pub fn requantize_one(&mut self) -> Option<PageRequantization> {
        let left = |id: SequenceId| -> Option<(usize, SequenceId)> {
            let sequence = self.sequences.get(&id).filter(|sequence| sequence.lost.is_none())?;
            let n_may = sequence.tokens.len().saturating_sub(MIN_EXACT_TOKENS) / CHECKPOINT_CHUNK_TOKENS;
            (n_may > sequence.aged.n_chunks).then(|| (n_may - sequence.aged.n_chunks, id))
        };
        let mut all: Vec<(usize, SequenceId)> = self.ids().into_iter().filter_map(left).collect();
        // of equals the one that has lived longest
        all.sort_by(|(n, id), (m, other)| m.cmp(n).then(id.cmp(other)));
        let ids: Vec<SequenceId> = all.into_iter().map(|(_, id)| id).collect();
        let holders = ids.iter().find_map(|&id| self.holders_that_save(id, &ids))?;
        let mut all = PageRequantization::default();
        for id in holders {
            let n = self.sequences.get(&id).map_or(0, |sequence| sequence.aged.n_chunks + 1);
            let Ok(PageRequantization { to_requantize, given_up }) = self.requantize_to(id, n) else {
                continue;
            };
            all.to_requantize.extend(to_requantize);
            all.given_up.extend(given_up);
        }
        Some(all)
    }

    /// Its tokens come from ones that saw `n_requantized` stretches aged, however it got them.
    pub fn set_requantized_view(&mut self, id: SequenceId, n_requantized: usize) -> Result<()> {
        let sequence = self.sequences.get_mut(&id).ok_or_else(|| unknown(id))?;
        sequence.aged = Requantized { n_chunks: n_requantized, views: Vec::new() };
        sequence.aged.record_view(0);
        sequence.aged.n_chunks = 0;
        Ok(())
    }

    /// Those of `ids` that share the next stretch of `id`, if less is held when all of them age it.
    fn holders_that_save(&self, id: SequenceId, ids: &[SequenceId]) -> Option<Vec<SequenceId>> {
        let sequence = self.sequences.get(&id)?;
        let n = sequence.aged.n_chunks;
        let pages = pages_of(&self.geometry, n..n + 1);
        let last = sequence.pages.get(pages.end - 1)?;
        let shares = |other: &&SequenceId| {
            let other = self.sequences.get(other);
            other
                .is_some_and(|other| other.aged.n_chunks == n && other.pages.get(pages.end - 1) == Some(last))
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

    /// Requantized pages that are to be made of those pages, and pages that nobody holds then.
    fn turns(&self, id: SequenceId, pages: Range<usize>) -> Result<(usize, usize)> {
        let held = &self.get(id)?.pages.table()[pages];
        let n_new = held.iter().filter(|&&page| self.pages.requantized_as(page).is_none()).count();
        let n_given_up = held.iter().filter(|&&page| !self.pages.is_shared(page)).count();
        Ok((n_new, n_given_up))
    }

    /// The sequence's first `n` stretches are aged from here on.
    pub(super) fn requantize_to(&mut self, id: SequenceId, n: usize) -> Result<PageRequantization> {
        let Self { sequences, geometry, pages, .. } = self;
        let sequence = sequences.get_mut(&id).ok_or_else(|| unknown(id))?;
        let indices = pages_of(geometry, sequence.aged.n_chunks..n);
        let before = sequence.pages.table()[indices.clone()].to_vec();
        let to_requantize = sequence.pages.age(indices, pages);
        sequence.aged.n_chunks = n;
        let given_up = before.into_iter().filter(|&page| pages.n_holders(page) == 0).collect();
        Ok(PageRequantization { to_requantize, given_up })
    }

    /// PageTable worth of bytes that aging takes before a sequence has `n` tokens: of what others hold too.
    pub(super) fn n_pages_to_requantize(&self, id: SequenceId, n: usize) -> usize {
        let RequantizePolicy { when, page_bytes, requantized_page_bytes } = self.geometry.requantize;
        let Ok(sequence) = self.get(id) else { return 0 };
        let n_whole = sequence.tokens.len() / CHECKPOINT_CHUNK_TOKENS;
        let due = when.due(n.saturating_sub(1)).min(n_whole);
        if due <= sequence.aged.n_chunks {
            return 0;
        }
        let Ok((n_new, n_given_up)) = self.turns(id, pages_of(&self.geometry, sequence.aged.n_chunks..due))
        else {
            return 0;
        };
        let more = (n_new as u64 * requantized_page_bytes).saturating_sub(n_given_up as u64 * page_bytes);
        more.div_ceil(page_bytes.max(1)) as usize
    }

    /// Bytes that pages of layers that keep everything may still take, where they age.
    pub(super) fn free_bytes(&self) -> u64 {
        let RequantizePolicy { page_bytes, requantized_page_bytes, .. } = self.geometry.requantize;
        let held = self.pages.n_held() as u64 * page_bytes
            + self.pages.n_requantized_held() as u64 * requantized_page_bytes;
        (self.pages.n_places() as u64 * page_bytes).saturating_sub(held)
    }
}

/// The pages of those stretches, in order of position.
fn pages_of(geometry: &Geometry, stretches: Range<usize>) -> Range<usize> {
    geometry.pages_for(stretches.start * CHECKPOINT_CHUNK_TOKENS)
        ..geometry.pages_for(stretches.end * CHECKPOINT_CHUNK_TOKENS)
}

#[cfg(test)]
mod tests;
