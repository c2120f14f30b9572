//! Sequences and their memory: copy-on-write pages of keys and values, slots of recurrent states, rewind points.
//!
//! Pure bookkeeping: it numbers pages and slots; the executor owns their bytes. A page or slot belongs to every
//! sequence and rewind point that lists it. One with several holders is never written: it is copied first.

use std::collections::{BTreeMap, VecDeque};

use super::CHECKPOINT_CHUNK_TOKENS;
use super::evicted::EvictedHistory;
use super::pool::{PageTable, PoolUsage, SlotPool};
use super::requantize::Requantized;
use super::rewind_point::RewindPoint;
use super::sequence_id::SequenceId;
use super::size::Geometry;
use crate::TokenId;
use crate::error::{EngineError, Result};

mod kv_budget;
mod mark;
mod replay;
mod replica;
mod requantize;
mod rewind;

use mark::StateMark;
use replay::LostPositions;
pub use replay::{Replay, ReplayStep};
pub use requantize::PageRequantization;

/// Copies to make before the next write, each as (from, to).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CopyOnWrite {
    /// Page of the full-attention layers.
    pub page: Option<(u32, u32)>,
    /// Page of the sliding-window layers.
    pub window_page: Option<(u32, u32)>,
    /// Slot of recurrent states.
    pub state: Option<(u32, u32)>,
}

/// Pages and slots in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvUsage {
    /// Exact full-attention pages.
    pub n_pages: usize,
    /// Requantized full-attention pages.
    pub n_requantized_pages: usize,
    /// Pages of windowed layers.
    pub n_window_pages: usize,
    /// Slots of recurrent states.
    pub n_states: usize,
    /// Rewind points of all sequences.
    pub n_rewind_points: usize,
}

#[derive(Debug)]
struct Sequence {
    tokens: Vec<TokenId>,
    /// Replica of the model that holds its pages and slots.
    replica: usize,
    /// Pages of the full-attention layers.
    pages: PageTable,
    requantized: Requantized,
    /// Pages of the sliding-window layers.
    window: PageTable,
    /// First window page that is pinned, so that it is not released when the window passes it.
    pinned_from: Option<usize>,
    /// Slot of the recurrent state after the last token. `None` without tokens or without recurrent layers.
    state: Option<u32>,
    /// Ordered by position.
    rewind_points: Vec<RewindPoint>,
    mark: Option<StateMark>,
    /// Set when a device failed: the pages hold nothing until the sequence is replayed.
    lost: Option<LostPositions>,
}

/// All sequences of a model and the pools they share.
#[derive(Debug)]
pub struct KvCache {
    /// Histories of sequences that attention eviction has shortened.
    pub(crate) evicted: VecDeque<EvictedHistory>,
    geometry: Geometry,
    sequences: BTreeMap<SequenceId, Sequence>,
    next_id: u64,
    n_replicas: usize,
    /// Rewind points ever saved. Orders them by age.
    n_rewind_points_ever: u64,
    pages: SlotPool,
    window_pages: SlotPool,
    states: SlotPool,
}

impl KvCache {
    /// Creates an empty cache.
    pub fn new(geometry: Geometry) -> Self {
        Self {
            evicted: VecDeque::new(),
            geometry,
            sequences: BTreeMap::new(),
            next_id: 1,
            n_replicas: 1,
            n_rewind_points_ever: 0,
            pages: SlotPool::with_requantized(geometry.n_pages(), geometry.n_requantized_pages()),
            window_pages: SlotPool::new(geometry.n_window_pages()),
            states: SlotPool::new(geometry.n_states()),
        }
    }

    /// Frees every sequence. Ids are never reused.
    pub fn clear(&mut self) {
        *self = Self { next_id: self.next_id, n_replicas: self.n_replicas, ..Self::new(self.geometry) };
    }

    /// Returns the cache's limits.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Returns the maximum number of tokens per sequence.
    pub fn n_ctx(&self) -> usize {
        self.geometry.n_ctx
    }

    /// Returns whether another sequence can be created.
    pub fn has_free_sequence(&self) -> bool {
        self.sequences.len() < self.geometry.max_sequences
    }

    /// Returns the pages and slots in use.
    pub fn usage(&self) -> KvUsage {
        KvUsage {
            n_pages: self.pages.n_held(),
            n_requantized_pages: self.pages.n_requantized_held(),
            n_window_pages: self.window_pages.n_held(),
            n_states: self.states.n_held(),
            n_rewind_points: self.n_rewind_points(),
        }
    }

    /// Returns the usage of pages, window pages, states and requantized pages, in that order.
    pub fn pools(&self) -> [PoolUsage; 4] {
        let Self { pages, window_pages, states, .. } = self;
        [pages.usage(), window_pages.usage(), states.usage(), pages.requantized_usage()]
    }

    /// Creates an empty sequence.
    ///
    /// Errors: `kv.too_many_sequences`.
    pub fn create(&mut self) -> Result<SequenceId> {
        if !self.has_free_sequence() {
            return Err(EngineError::new(
                "kv.too_many_sequences",
                format!("all {} contexts of this model are in use", self.geometry.max_sequences),
                "Wait for a running answer to finish, or close a conversation.",
            ));
        }
        let id = SequenceId(self.next_id);
        self.next_id += 1;
        // Capacity for the whole context, so that appending never allocates.
        let n_pages = self.geometry.pages_for(self.geometry.n_ctx);
        let n_window_pages = self.geometry.window.map_or(0, |_| n_pages);
        let sequence = Sequence {
            tokens: Vec::with_capacity(self.geometry.n_ctx),
            replica: self.next_replica(),
            pages: PageTable::with_capacity(n_pages),
            requantized: Requantized::default(),
            window: PageTable::with_capacity(n_window_pages),
            pinned_from: None,
            state: None,
            rewind_points: Vec::new(),
            mark: None,
            lost: None,
        };
        self.sequences.insert(id, sequence);
        Ok(id)
    }

    /// Creates a sequence with the same tokens and rewind points. Pages are shared until one side writes.
    ///
    /// Errors: `kv.too_many_sequences`, `kv.unknown_sequence`.
    pub fn fork(&mut self, id: SequenceId) -> Result<SequenceId> {
        self.get(id)?;
        let copy = self.create()?;
        let Some(mut fork) = self.sequences.remove(&copy) else { return Err(unknown(copy)) };
        let Self { sequences, pages, window_pages, states, .. } = self;
        if let Some(sequence) = sequences.get(&id) {
            fork.tokens.extend_from_slice(&sequence.tokens);
            fork.replica = sequence.replica;
            fork.requantized.clone_from(&sequence.requantized);
            fork.pages.share_from(&sequence.pages, 0, sequence.pages.end(), pages);
            let window = &sequence.window;
            fork.window.share_from(window, window.first(), window.end(), window_pages);
            fork.state = sequence.state.inspect(|&slot| states.share(slot));
            fork.rewind_points =
                sequence.rewind_points.iter().map(|point| point.share(window_pages, states)).collect();
            fork.lost = sequence.lost.as_ref().map(LostPositions::for_fork);
        }
        sequences.insert(copy, fork);
        Ok(copy)
    }

    /// Frees a sequence. Unknown ids are ignored.
    pub fn free(&mut self, id: SequenceId) {
        if let Some(mut sequence) = self.sequences.remove(&id) {
            self.release(&mut sequence);
        }
    }

    /// Returns the tokens whose keys and values the sequence holds.
    pub fn tokens(&self, id: SequenceId) -> Result<&[TokenId]> {
        Ok(&self.get(id)?.tokens)
    }

    /// Returns whether any sequence holds a token.
    pub fn holds(&self, token: TokenId) -> bool {
        self.sequences.values().any(|sequence| sequence.tokens.contains(&token))
    }

    /// Returns the pages of the full-attention layers: position p lies in `pages[p / page_len]`.
    pub fn pages(&self, id: SequenceId) -> Result<&[u32]> {
        Ok(self.get(id)?.pages.table())
    }

    /// Returns the pages of the sliding-window layers, `kernels::NO_PAGE` where the window has passed.
    pub fn window_pages(&self, id: SequenceId) -> Result<&PageTable> {
        Ok(&self.get(id)?.window)
    }

    /// Returns the slot of the recurrent state. `None` without tokens or without recurrent layers.
    pub fn state(&self, id: SequenceId) -> Result<Option<u32>> {
        Ok(self.get(id)?.state)
    }

    /// Returns the rewind points of a sequence, ordered by position.
    pub fn rewind_points(&self, id: SequenceId) -> Result<&[RewindPoint]> {
        Ok(&self.get(id)?.rewind_points)
    }

    /// Pins the window: until the next rewind point no page is released, so that any position in between can be
    /// returned to. The pin is dropped when its pages are needed.
    pub fn pin_window(&mut self, id: SequenceId) -> Result<()> {
        self.unpin_window(id)?;
        let sequence = self.sequences.get_mut(&id).ok_or_else(|| unknown(id))?;
        match &mut sequence.lost {
            Some(lost) => lost.set_pinned(true),
            None => sequence.pinned_from = self.geometry.window.map(|_| sequence.window.first()),
        }
        Ok(())
    }

    /// Unpins the window and releases the pages that it has passed.
    pub fn unpin_window(&mut self, id: SequenceId) -> Result<()> {
        let Self { sequences, geometry, window_pages, .. } = self;
        let sequence = sequences.get_mut(&id).ok_or_else(|| unknown(id))?;
        sequence.pinned_from = None;
        sequence.lost.iter_mut().for_each(|lost| lost.set_pinned(false));
        sequence.window.release_before(geometry.first_window_page(sequence.tokens.len()), window_pages);
        Ok(())
    }

    /// Checks that the sequence has space for `n` more tokens.
    ///
    /// Errors: `request.context_full`.
    pub fn check_fits(&self, id: SequenceId, n: usize) -> Result<()> {
        let n_held = self.get(id)?.tokens.len();
        match n <= self.geometry.n_ctx - n_held {
            true => Ok(()),
            false => Err(context_full(n_held, n, self.geometry.n_ctx)),
        }
    }

    /// Reserves pages for `n` more tokens, at most the rows of one run. Returns the copies to make where the first of
    /// them falls into a shared page or slot.
    ///
    /// Errors: `request.context_full`, `kv.memory_full`; nothing has changed then.
    pub fn reserve(&mut self, id: SequenceId, n: usize) -> Result<CopyOnWrite> {
        self.check_fits(id, n)?;
        assert!(n <= self.geometry.max_rows, "a run has at most {} rows", self.geometry.max_rows);
        if n == 0 {
            return Ok(CopyOnWrite::default());
        }
        if self.n_pages_to_grow(id, n) > self.n_free_pages() {
            return Err(kv_budget::memory_full());
        }
        let Self { sequences, geometry, pages, .. } = self;
        let sequence = sequences.get_mut(&id).ok_or_else(|| unknown(id))?;
        let n_held = sequence.tokens.len();
        let (write_from, end) = (n_held / geometry.page_len, geometry.pages_for(n_held + n));
        let page = sequence.pages.grow(write_from, end, pages);
        Ok(CopyOnWrite { page, ..self.reserve_forgetful(id, n)? })
    }

    /// Reserves window pages and the recurrent state for `n` more tokens.
    fn reserve_forgetful(&mut self, id: SequenceId, n: usize) -> Result<CopyOnWrite> {
        self.free_for(id, n)?;
        let Self { sequences, geometry, window_pages, states, .. } = self;
        let sequence = sequences.get_mut(&id).ok_or_else(|| unknown(id))?;
        let n_held = sequence.tokens.len();
        let (write_from, end) = (n_held / geometry.page_len, geometry.pages_for(n_held + n));
        let window_page = match geometry.window {
            Some(_) => sequence.window.grow(write_from, end, window_pages),
            None => None,
        };
        let state = match sequence.state {
            None if geometry.recurrent => {
                sequence.state = Some(states.take());
                None
            }
            Some(from) if states.is_shared(from) => {
                let to = states.take();
                states.release(from);
                sequence.state = Some(to);
                Some((from, to))
            }
            None | Some(_) => None,
        };
        Ok(CopyOnWrite { page: None, window_page, state })
    }

    /// Drops the pages that were reserved beyond the last token.
    pub fn drop_reserved(&mut self, id: SequenceId) -> Result<()> {
        let Self { sequences, geometry, pages, window_pages, .. } = self;
        let sequence = sequences.get_mut(&id).ok_or_else(|| unknown(id))?;
        let n_pages = geometry.pages_for(sequence.tokens.len());
        sequence.pages.truncate(n_pages, pages);
        sequence.window.truncate(n_pages, window_pages);
        Ok(())
    }

    /// Records tokens whose keys and values now stand in the reserved pages, and releases the window pages that were
    /// passed.
    pub fn commit(&mut self, id: SequenceId, tokens: &[TokenId]) -> Result<()> {
        let Self { sequences, geometry, window_pages, .. } = self;
        let sequence = sequences.get_mut(&id).ok_or_else(|| unknown(id))?;
        let end = sequence.pages.end() * geometry.page_len;
        assert!(sequence.tokens.len() + tokens.len() <= end, "committed tokens were reserved");
        sequence.requantized.record_view(sequence.tokens.len());
        sequence.tokens.extend_from_slice(tokens);
        let passed = geometry.first_window_page(sequence.tokens.len());
        sequence
            .window
            .release_before(sequence.pinned_from.map_or(passed, |held| held.min(passed)), window_pages);
        Ok(())
    }

    /// Creates a sequence that holds `tokens`, requantized as given, with window pages from `first` on. The caller
    /// fills pages and slots.
    ///
    /// Errors: `kv.too_many_sequences`, `kv.memory_full`.
    pub fn create_held(
        &mut self,
        tokens: &[TokenId],
        first: usize,
        requantized: Requantized,
    ) -> Result<SequenceId> {
        let (n, n_requantized) = (
            self.geometry.pages_for(tokens.len()),
            self.geometry.pages_for(requantized.n_chunks * CHECKPOINT_CHUNK_TOKENS),
        );
        let requantized_bytes = n_requantized as u64 * self.geometry.requantize.requantized_page_bytes;
        let is_within = n_requantized == 0
            || (n - n_requantized) as u64 * self.geometry.requantize.page_bytes + requantized_bytes
                <= self.free_bytes();
        if n - n_requantized > self.n_free_pages()
            || n_requantized > self.pages.n_requantized_free()
            || !is_within
        {
            return Err(kv_budget::memory_full());
        }
        let id = self.create()?;
        let (end, n_states) = (self.geometry.pages_for(tokens.len()), usize::from(self.geometry.recurrent));
        let n_live_pages = if self.geometry.window.is_some() { end - first } else { 0 };
        assert!(self.free_up(n_live_pages, n_states), "the pools hold every live sequence");
        let Self { sequences, pages, window_pages, states, .. } = &mut *self;
        let sequence = sequences.get_mut(&id).ok_or_else(|| unknown(id))?;
        sequence.tokens.extend_from_slice(tokens);
        sequence.pages.take_mixed(n_requantized, end, pages);
        sequence.requantized = requantized;
        sequence.window = PageTable::take(first, first + n_live_pages, window_pages);
        sequence.state = (n_states > 0 && !tokens.is_empty()).then(|| states.take());
        Ok(id)
    }

    fn release(&mut self, sequence: &mut Sequence) {
        sequence.pages.clear(&mut self.pages);
        sequence.window.clear(&mut self.window_pages);
        sequence.state.take().into_iter().for_each(|slot| self.states.release(slot));
        sequence.mark.take().into_iter().for_each(|mark| self.states.release(mark.slot));
        sequence
            .rewind_points
            .drain(..)
            .for_each(|mut point| point.release(&mut self.window_pages, &mut self.states));
    }

    fn get(&self, id: SequenceId) -> Result<&Sequence> {
        self.sequences.get(&id).ok_or_else(|| unknown(id))
    }
}

/// Error for more tokens than a sequence may hold, with the numbers.
pub(crate) fn context_full(n_held: usize, n_more: usize, n_ctx: usize) -> EngineError {
    EngineError::new(
        "request.context_full",
        format!("{n_held} tokens in the context and {n_more} more exceed its {n_ctx} tokens"),
        "Start a new conversation, shorten the text, or load the model with a larger context.",
    )
}

fn unknown(id: SequenceId) -> EngineError {
    EngineError::new(
        "kv.unknown_sequence",
        format!("sequence {} does not exist", id.0),
        "Start the conversation again.",
    )
}

#[cfg(test)]
mod tests;
