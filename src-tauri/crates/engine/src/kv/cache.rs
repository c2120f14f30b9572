//! Sequences and what they hold: pages of keys and values, shared between forks and copied on write; for layers with
//! a window only the pages it reaches; for recurrent layers a slot with their state; and what of these was kept at
//! earlier positions, to go back to.
//!
//! Pure bookkeeping: it names pages and slots, the executor owns their bytes. Each belongs to every sequence and
//! every kept position that lists it; one that more than one holds is never written, but copied first.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::aging::Aged;
use super::kept::Kept;
use super::pool::{Pages, Pool, PoolUse};
use super::size::Geometry;
use super::snapshot::STRETCH;
use crate::TokenId;
use crate::error::{EngineError, Result};
use crate::model::forget::Forgotten;

mod age;
mod home;
mod lost;
mod mark;
mod room;

pub use age::Turning;
use lost::Lost;
pub use lost::{Again, Next};
use mark::Mark;

/// Names a live sequence of one model. Never reused while the model is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SequenceId(pub u64);

/// What must be copied before the next write, each as (from, to).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Copies {
    /// page of the layers that keep everything
    pub page: Option<(u32, u32)>,
    /// page of the layers with a window
    pub window_page: Option<(u32, u32)>,
    /// slot of recurrent states
    pub state: Option<(u32, u32)>,
}

/// Pages and slots in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    pub n_pages: usize,
    pub n_aged_pages: usize,
    pub n_window_pages: usize,
    pub n_states: usize,
    /// positions kept to go back to, of all sequences
    pub n_kept: usize,
}

#[derive(Debug)]
struct Sequence {
    tokens: Vec<TokenId>,
    /// the replica of the model that has its pages and slots
    home: usize,
    /// of the layers that keep everything
    pages: Pages,
    aged: Aged,
    /// of the layers with a window
    window: Pages,
    /// pages of the window that it doesn't let go of yet: from this one on
    held_from: Option<usize>,
    /// slot of the recurrent state after the last token; None: no tokens, or no such layers
    state: Option<u32>,
    /// in order of position
    kept: Vec<Kept>,
    mark: Option<Mark>,
    /// nothing stands in its pages
    lost: Option<Lost>,
}

/// Where a sequence goes back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum From {
    /// a position of itself
    Live,
    /// one that was kept, by its index
    Kept(usize),
    Mark,
}

/// All sequences of a model over its pools.
#[derive(Debug)]
pub struct KvCache {
    /// What sequences that have forgotten stand for.
    pub(crate) past: VecDeque<Forgotten>,
    geometry: Geometry,
    sequences: BTreeMap<SequenceId, Sequence>,
    next_id: u64,
    n_homes: usize,
    /// Counts what is kept, so that the oldest can be told.
    n_ever_kept: u64,
    pages: Pool,
    window_pages: Pool,
    states: Pool,
}

impl KvCache {
    pub fn new(geometry: Geometry) -> Self {
        Self {
            past: VecDeque::new(),
            geometry,
            sequences: BTreeMap::new(),
            next_id: 1,
            n_homes: 1,
            n_ever_kept: 0,
            pages: Pool::with_aged(geometry.n_pages(), geometry.n_aged_pages()),
            window_pages: Pool::new(geometry.n_window_pages()),
            states: Pool::new(geometry.n_states()),
        }
    }

    /// Forgets every sequence. No id is given twice.
    pub fn clear(&mut self) {
        *self = Self { next_id: self.next_id, n_homes: self.n_homes, ..Self::new(self.geometry) };
    }

    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Tokens a sequence may hold.
    pub fn n_ctx(&self) -> usize {
        self.geometry.n_ctx
    }

    pub fn has_free_sequence(&self) -> bool {
        self.sequences.len() < self.geometry.max_sequences
    }

    pub fn usage(&self) -> Usage {
        Usage {
            n_pages: self.pages.n_held(),
            n_aged_pages: self.pages.n_aged_held(),
            n_window_pages: self.window_pages.n_held(),
            n_states: self.states.n_held(),
            n_kept: self.n_kept(),
        }
    }

    /// Of pages, of pages of windows, of states, of aged pages.
    pub fn pools(&self) -> [PoolUse; 4] {
        let Self { pages, window_pages, states, .. } = self;
        [pages.usage(), window_pages.usage(), states.usage(), pages.aged_usage()]
    }

    /// An empty sequence. Error: as many sequences live as the cache was made for.
    pub fn create(&mut self) -> Result<SequenceId> {
        if !self.has_free_sequence() {
            return Err(EngineError::new(
                "kv.too_many_sequences",
                format!("all {} sequences of this model are in use", self.geometry.max_sequences),
                "Wait for a running answer to end, or close a conversation.",
            ));
        }
        let id = SequenceId(self.next_id);
        self.next_id += 1;
        // Room for the whole context, so that no append allocates.
        let n_pages = self.geometry.pages_for(self.geometry.n_ctx);
        let n_window_pages = self.geometry.window.map_or(0, |_| n_pages);
        let sequence = Sequence {
            tokens: Vec::with_capacity(self.geometry.n_ctx),
            home: self.next_home(),
            pages: Pages::with_capacity(n_pages),
            aged: Aged::default(),
            window: Pages::with_capacity(n_window_pages),
            held_from: None,
            state: None,
            kept: Vec::new(),
            mark: None,
            lost: None,
        };
        self.sequences.insert(id, sequence);
        Ok(id)
    }

    /// A sequence with the same tokens, that can go back to the same positions; everything is shared until one side
    /// writes.
    pub fn fork(&mut self, id: SequenceId) -> Result<SequenceId> {
        self.get(id)?;
        let copy = self.create()?;
        let Some(mut twin) = self.sequences.remove(&copy) else { return Err(unknown(copy)) };
        let Self { sequences, pages, window_pages, states, .. } = self;
        if let Some(sequence) = sequences.get(&id) {
            twin.tokens.extend_from_slice(&sequence.tokens);
            twin.home = sequence.home;
            twin.aged.clone_from(&sequence.aged);
            twin.pages.share_from(&sequence.pages, 0, sequence.pages.end(), pages);
            let window = &sequence.window;
            twin.window.share_from(window, window.first(), window.end(), window_pages);
            twin.state = sequence.state.inspect(|&slot| states.share(slot));
            twin.kept = sequence.kept.iter().map(|kept| kept.share(window_pages, states)).collect();
            twin.lost = sequence.lost.as_ref().map(Lost::of_twin);
        }
        sequences.insert(copy, twin);
        Ok(copy)
    }

    /// Forgets a sequence. One that doesn't live is ignored.
    pub fn free(&mut self, id: SequenceId) {
        if let Some(mut sequence) = self.sequences.remove(&id) {
            self.let_go(&mut sequence);
        }
    }

    /// Tokens whose keys and values the sequence holds.
    pub fn tokens(&self, id: SequenceId) -> Result<&[TokenId]> {
        Ok(&self.get(id)?.tokens)
    }

    /// The pages of layers that keep everything: that of position p is `pages[p / page_len]`.
    pub fn pages(&self, id: SequenceId) -> Result<&[u32]> {
        Ok(self.get(id)?.pages.table())
    }

    /// The pages of layers with a window; `kernels::NO_PAGE` where it has passed.
    pub fn window_pages(&self, id: SequenceId) -> Result<&Pages> {
        Ok(&self.get(id)?.window)
    }

    /// The slot of the recurrent state; None: no tokens, or the model has no such layers.
    pub fn state(&self, id: SequenceId) -> Result<Option<u32>> {
        Ok(self.get(id)?.state)
    }

    /// What is kept of a sequence, in order of position.
    pub fn kept(&self, id: SequenceId) -> Result<&[Kept]> {
        Ok(&self.get(id)?.kept)
    }

    /// Goes back to the greatest position ≤ `n` that the sequence holds, and returns it: `n` itself where nothing
    /// but full attention is at work; else a kept one, or 0. What has aged stays as it is, in whole stretches.
    pub fn truncate(&mut self, id: SequenceId, n: usize) -> Result<usize> {
        self.go_back(id, n, true)
    }

    /// Where `truncate` would go back to for `n`.
    pub fn reach(&self, id: SequenceId, n: usize) -> Result<usize> {
        Ok(self.nearest(self.get(id)?, n, true).0)
    }

    /// After a run that failed: drops what was reserved, and goes back to `n` or before. The recurrent state may have
    /// been overwritten.
    pub fn revert(&mut self, id: SequenceId, n: usize) -> Result<usize> {
        self.go_back(id, n, false)
    }

    fn go_back(&mut self, id: SequenceId, n: usize, state_is_sound: bool) -> Result<usize> {
        let sequence = self.get(id)?;
        let (to, from) = self.nearest(sequence, n, state_is_sound);
        let n_pages = self.geometry.pages_for(to);
        let Self { sequences, geometry, pages, window_pages, states, .. } = self;
        let sequence = sequences.get_mut(&id).ok_or_else(|| unknown(id))?;
        sequence.tokens.truncate(to);
        sequence.held_from = None;
        sequence.pages.truncate(n_pages, pages);
        sequence.aged.truncate(to);
        sequence.window.truncate(n_pages, window_pages);
        let state = match from {
            From::Live => sequence.state,
            From::Mark => sequence.mark.map(|mark| mark.slot),
            From::Kept(at) => {
                let kept = &sequence.kept[at];
                if geometry.window.is_some() {
                    sequence.window.share_from(&kept.window, kept.window.first(), n_pages, window_pages);
                }
                kept.state
            }
        };
        state.into_iter().for_each(|slot| states.share(slot));
        let before = std::mem::replace(&mut sequence.state, state);
        before.into_iter().for_each(|slot| states.release(slot));
        if to == 0 {
            sequence.window.clear(window_pages);
            sequence.state.take().into_iter().for_each(|slot| states.release(slot));
        }
        let n_left = sequence.kept.partition_point(|kept| kept.position <= to);
        sequence.kept.drain(n_left..).for_each(|mut kept| kept.let_go(window_pages, states));
        let mark = sequence.mark.take_if(|mark| mark.position > to);
        mark.into_iter().for_each(|mark| states.release(mark.slot));
        sequence.lost = sequence.lost.take().filter(|_| to > 0);
        sequence.lost.iter_mut().for_each(|lost| lost.truncate(to));
        Ok(to)
    }

    /// The greatest position ≤ `n` that the sequence can go on from, and what leads there.
    fn nearest(&self, sequence: &Sequence, n: usize, state_is_sound: bool) -> (usize, From) {
        let (n_held, g) = (sequence.tokens.len(), &self.geometry);
        let live = match g.recurrent {
            true => (state_is_sound && n >= n_held).then_some(n_held),
            false => Some(n.min(n_held)),
        };
        // of stretches that have aged nothing is held in part
        let whole = |to: usize| sequence.aged.reach(to);
        if sequence.lost.is_some() {
            // it is read again from the beginning, to wherever
            return (whole(n.min(n_held)), From::Live);
        }
        let of_itself = |to: &usize| g.is_covered(sequence.window.first(), *to);
        let live = live.map(whole).filter(of_itself).unwrap_or(0);
        let mark = sequence.mark.map(|mark| mark.position).filter(|&to| to <= n).filter(of_itself);
        let kept = sequence.kept.iter().enumerate().filter_map(|(at, kept)| {
            let to = if g.recurrent { kept.position } else { whole(kept.position.min(n)) };
            (to <= n && whole(to) == to && g.is_covered(kept.window.first(), to))
                .then_some((to, From::Kept(at)))
        });
        match kept.chain(mark.map(|to| (to, From::Mark))).max() {
            Some((to, from)) if to > live => (to, from),
            Some(_) | None => (live, From::Live),
        }
    }

    /// Remembers the current position, so that `truncate` can return to it. Costs nothing until the sequence goes on.
    pub fn keep(&mut self, id: SequenceId) -> Result<()> {
        let sequence = self.get(id)?;
        let position = sequence.tokens.len();
        let known = sequence.kept.last().is_some_and(|kept| kept.position == position);
        let is_there = position > 0 && sequence.lost.is_none();
        if !is_there || known || !self.geometry.can_lose() || self.geometry.max_kept == 0 {
            return Ok(());
        }
        while self.n_kept() >= self.geometry.max_kept {
            assert!(self.thin(), "what is counted can be dropped");
        }
        self.n_ever_kept += 1;
        let stamp = self.n_ever_kept;
        let Self { sequences, window_pages, states, .. } = self;
        let sequence = sequences.get_mut(&id).ok_or_else(|| unknown(id))?;
        let window = sequence.window.share(sequence.window.first(), sequence.window.end(), window_pages);
        let state = sequence.state.inspect(|&slot| states.share(slot));
        sequence.kept.push(Kept { position, window, state, stamp });
        if sequence.held_from.is_some() {
            self.hold(id)?;
        }
        Ok(())
    }

    /// From here on windows let go of nothing, so that the next position that is kept leads back to any since here;
    /// then from there on. Given up where the pages are needed.
    pub fn hold(&mut self, id: SequenceId) -> Result<()> {
        self.let_pass(id)?;
        let sequence = self.sequences.get_mut(&id).ok_or_else(|| unknown(id))?;
        match &mut sequence.lost {
            Some(lost) => lost.set_held(true),
            None => sequence.held_from = self.geometry.window.map(|_| sequence.window.first()),
        }
        Ok(())
    }

    /// Windows let go again of what they have passed.
    pub fn let_pass(&mut self, id: SequenceId) -> Result<()> {
        let Self { sequences, geometry, window_pages, .. } = self;
        let sequence = sequences.get_mut(&id).ok_or_else(|| unknown(id))?;
        sequence.held_from = None;
        sequence.lost.iter_mut().for_each(|lost| lost.set_held(false));
        sequence.window.forget_before(geometry.first_window_page(sequence.tokens.len()), window_pages);
        Ok(())
    }

    /// Error `request.context_full`: the sequence can't take `n` more tokens.
    pub fn check_room(&self, id: SequenceId, n: usize) -> Result<()> {
        let n_held = self.get(id)?.tokens.len();
        match n <= self.geometry.n_ctx - n_held {
            true => Ok(()),
            false => Err(context_full(n_held, n, self.geometry.n_ctx)),
        }
    }

    /// Makes room for `n` more tokens, at most the rows of one run. Where the first of them would be written into
    /// something that others hold too, that is replaced and the copy to make returned. On error nothing has changed.
    pub fn reserve(&mut self, id: SequenceId, n: usize) -> Result<Copies> {
        self.check_room(id, n)?;
        assert!(n <= self.geometry.max_rows, "a run has at most {} rows", self.geometry.max_rows);
        if n == 0 {
            return Ok(Copies::default());
        }
        if self.n_pages_to_grow(id, n) > self.n_free_pages() {
            return Err(room::memory_full());
        }
        let Self { sequences, geometry, pages, .. } = self;
        let sequence = sequences.get_mut(&id).ok_or_else(|| unknown(id))?;
        let n_held = sequence.tokens.len();
        let (write_from, end) = (n_held / geometry.page_len, geometry.pages_for(n_held + n));
        let page = sequence.pages.grow(write_from, end, pages);
        Ok(Copies { page, ..self.reserve_forgetful(id, n)? })
    }

    /// The same of layers that forget: windows and states.
    fn reserve_forgetful(&mut self, id: SequenceId, n: usize) -> Result<Copies> {
        self.make_room(id, n)?;
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
        Ok(Copies { page: None, window_page, state })
    }

    /// Records tokens whose keys and values now stand in the reserved pages, and lets go of what their windows have
    /// passed.
    pub fn commit(&mut self, id: SequenceId, tokens: &[TokenId]) -> Result<()> {
        let Self { sequences, geometry, window_pages, .. } = self;
        let sequence = sequences.get_mut(&id).ok_or_else(|| unknown(id))?;
        let room = sequence.pages.end() * geometry.page_len;
        assert!(
            sequence.tokens.len() + tokens.len() <= room,
            "tokens are reserved before they are committed"
        );
        sequence.aged.saw(sequence.tokens.len());
        sequence.tokens.extend_from_slice(tokens);
        let passed = geometry.first_window_page(sequence.tokens.len());
        sequence
            .window
            .forget_before(sequence.held_from.map_or(passed, |held| held.min(passed)), window_pages);
        Ok(())
    }

    /// A sequence that holds `tokens`, as far aged as that, and window pages from `first` on, at most as many as a live
    /// one may. The caller fills pages and slots. Errors: `kv.too_many_sequences`, `kv.memory_full`.
    pub fn create_held(&mut self, tokens: &[TokenId], first: usize, aged: Aged) -> Result<SequenceId> {
        let (n, n_aged) = (self.geometry.pages_for(tokens.len()), self.geometry.pages_for(aged.n * STRETCH));
        let aged_bytes = n_aged as u64 * self.geometry.ages.aged_page_bytes;
        let is_within = n_aged == 0
            || (n - n_aged) as u64 * self.geometry.ages.page_bytes + aged_bytes <= self.free_bytes();
        if n - n_aged > self.n_free_pages() || n_aged > self.pages.n_aged_free() || !is_within {
            return Err(room::memory_full());
        }
        let id = self.create()?;
        let (end, n_states) = (self.geometry.pages_for(tokens.len()), usize::from(self.geometry.recurrent));
        let n_live_pages = if self.geometry.window.is_some() { end - first } else { 0 };
        assert!(self.free_up(n_live_pages, n_states), "the pools hold every live sequence");
        let Self { sequences, pages, window_pages, states, .. } = &mut *self;
        let sequence = sequences.get_mut(&id).ok_or_else(|| unknown(id))?;
        sequence.tokens.extend_from_slice(tokens);
        sequence.pages.take_mixed(n_aged, end, pages);
        sequence.aged = aged;
        sequence.window = Pages::take(first, first + n_live_pages, window_pages);
        sequence.state = (n_states > 0 && !tokens.is_empty()).then(|| states.take());
        Ok(id)
    }

    fn let_go(&mut self, sequence: &mut Sequence) {
        sequence.pages.clear(&mut self.pages);
        sequence.window.clear(&mut self.window_pages);
        sequence.state.take().into_iter().for_each(|slot| self.states.release(slot));
        sequence.mark.take().into_iter().for_each(|mark| self.states.release(mark.slot));
        sequence.kept.drain(..).for_each(|mut kept| kept.let_go(&mut self.window_pages, &mut self.states));
    }

    fn get(&self, id: SequenceId) -> Result<&Sequence> {
        self.sequences.get(&id).ok_or_else(|| unknown(id))
    }
}

/// The error for more tokens than a sequence may hold, with the numbers.
pub(crate) fn context_full(n_held: usize, n_more: usize, n_ctx: usize) -> EngineError {
    EngineError::new(
        "request.context_full",
        format!("{n_held} tokens held and {n_more} more exceed the context of {n_ctx} tokens"),
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
