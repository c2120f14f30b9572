//! Replay after a device failure: sequences keep their tokens, but their pages hold nothing.
//!
//! Each lost sequence is recomputed before its next use, in token order, and requantized at the same positions as
//! before. Pages of full-attention layers stay shared. Windows and states become private, for which there is always
//! space.

use super::super::CHECKPOINT_CHUNK_TOKENS;
use super::super::requantize::{MIN_EXACT_TOKENS, Requantized};
use super::{CopyOnWrite, KvCache, PageRequantization, Sequence, SequenceId, kv_budget, unknown};
use crate::TokenId;
use crate::error::Result;

/// Positions that a lost sequence could return to.
#[derive(Debug, Clone, Default)]
pub(super) struct LostPositions {
    /// Positions of its rewind points, ordered.
    rewind_positions: Vec<usize>,
    mark: Option<usize>,
    /// Whether its window was pinned.
    is_pinned: bool,
}

/// A sequence that is being recomputed.
#[derive(Debug)]
pub struct Replay {
    /// All tokens of the sequence, in order.
    pub tokens: Vec<TokenId>,
    requantized: Requantized,
    lost: LostPositions,
}

/// Next step of a replay, and what to do before it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ReplayStep {
    /// Tokens to compute, from the sequence's current end.
    pub n: usize,
    /// Pages to requantize first.
    pub requantization: PageRequantization,
    /// Pages and slots to copy first.
    pub copies: CopyOnWrite,
}

impl LostPositions {
    /// Drops positions beyond `n`.
    pub(super) fn truncate(&mut self, n: usize) {
        self.rewind_positions.retain(|&position| position <= n);
        self.mark = self.mark.filter(|&position| position <= n);
    }

    pub(super) fn set_pinned(&mut self, is_pinned: bool) {
        self.is_pinned = is_pinned;
    }

    pub(super) fn set_mark(&mut self, mark: Option<usize>) {
        self.mark = mark;
    }

    /// Returns the positions that a fork inherits: marks are not shared.
    pub(super) fn for_fork(&self) -> Self {
        Self { mark: None, is_pinned: false, ..self.clone() }
    }
}

impl KvCache {
    /// Marks all pages and slots of a replica as lost. Sequences in `back_to` drop the tokens beyond the given
    /// position.
    pub fn mark_lost(&mut self, replica: usize, back_to: &[(SequenceId, usize)]) {
        let Self { sequences, geometry, pages, window_pages, states, .. } = self;
        for (id, sequence) in sequences.iter_mut().filter(|(_, sequence)| sequence.replica == replica) {
            let to = back_to.iter().find(|(other, _)| other == id).map(|(_, n)| *n);
            let n = to.unwrap_or(usize::MAX).min(sequence.tokens.len());
            let mut lost = sequence.lost.take().unwrap_or_default();
            lost.rewind_positions.extend(sequence.rewind_points.iter().map(|point| point.position));
            lost.mark = sequence.mark.map_or(lost.mark, |mark| Some(mark.position));
            lost.is_pinned |= sequence.pinned_from.take().is_some();
            lost.truncate(n);
            sequence.rewind_points.drain(..).for_each(|mut point| point.release(window_pages, states));
            sequence.mark.take().into_iter().for_each(|mark| states.release(mark.slot));
            sequence.state.take().into_iter().for_each(|slot| states.release(slot));
            sequence.window.clear(window_pages);
            sequence.tokens.truncate(n);
            sequence.requantized.truncate(n);
            match sequence.requantized.is_exact() {
                true => sequence.pages.truncate(geometry.pages_for(n), pages),
                // Allocated again as exact pages.
                false => sequence.pages.clear(pages),
            }
            sequence.lost = (n > 0).then_some(lost);
        }
    }

    /// Returns whether the sequence must be replayed before it is used.
    pub fn is_lost(&self, id: SequenceId) -> bool {
        self.sequences.get(&id).is_some_and(|sequence| sequence.lost.is_some())
    }

    /// Starts the replay of a sequence after the prefix that others have already recomputed. Returns `None` if it is
    /// not lost.
    pub fn begin_replay(&mut self, id: SequenceId) -> Result<Option<Replay>> {
        let n_available = self.n_available(self.get(id)?);
        let Self { sequences, pages, .. } = self;
        let sequence = sequences.get_mut(&id).ok_or_else(|| unknown(id))?;
        let Some(lost) = sequence.lost.take() else { return Ok(None) };
        let (tokens, requantized) = (sequence.tokens.clone(), std::mem::take(&mut sequence.requantized));
        sequence.tokens.truncate(n_available);
        if !requantized.is_exact() {
            sequence.pages.clear(pages);
        }
        Ok(Some(Replay { tokens, requantized, lost }))
    }

    /// Returns how many leading tokens have pages that an intact sequence shares. Full-attention layers only.
    fn n_available(&self, sequence: &Sequence) -> usize {
        if self.geometry.window.is_some() || self.geometry.recurrent || !sequence.requantized.is_exact() {
            return 0;
        }
        let is_there = |other: &&Sequence| other.lost.is_none() && other.replica == sequence.replica;
        let others = self.sequences.values().filter(is_there).filter(|other| other.requantized.is_exact());
        let n_same = |other: &Sequence| {
            let both = sequence.pages.table().iter().zip(other.pages.table());
            let n_pages = both.take_while(|(own, other)| own == other).count();
            let n = (n_pages * self.geometry.page_len).min(other.tokens.len()).min(sequence.tokens.len());
            n / self.geometry.page_len * self.geometry.page_len
        };
        others.map(n_same).max().unwrap_or(0)
    }

    /// Reserves the next step of a replay, at most `max_tokens` tokens. Returns `None` when everything is present.
    ///
    /// Errors: `kv.memory_full` if requantized pages were shared and their exact form does not fit.
    pub fn next_replay_step(
        &mut self,
        id: SequenceId,
        replay: &Replay,
        max_rows: usize,
    ) -> Result<Option<ReplayStep>> {
        let n_held = self.get(id)?.tokens.len();
        let views = replay.requantized.views.iter();
        let n_requantized =
            views.clone().rfind(|view| view.from as usize <= n_held).map_or(0, |view| view.n_requantized);
        let requantizes_at = views.map(|view| view.from as usize);
        let stops =
            replay.lost.rewind_positions.iter().copied().chain(replay.lost.mark).chain(requantizes_at);
        let stop = stops.filter(|&stop| stop > n_held).min().unwrap_or(usize::MAX);
        let n = replay.tokens.len().min(stop).min(n_held + max_rows) - n_held;
        if n == 0 {
            let requantization = self.requantize_replay(id, replay.requantized.n_chunks)?;
            return Ok((requantization != PageRequantization::default())
                .then(|| ReplayStep { requantization, ..ReplayStep::default() }));
        }
        let mut requantization = self.requantize_replay(id, n_requantized as usize)?;
        // Under pressure, chunks were requantized later than the tokens after them were computed. Where both do not
        // fit, they are requantized now.
        while self.geometry.pages_for(n_held + n).saturating_sub(self.get(id)?.pages.end())
            > self.n_free_pages()
        {
            let n_requantized = self.get(id)?.requantized.n_chunks + 1;
            if n_requantized > replay.requantized.n_chunks
                || n_requantized * CHECKPOINT_CHUNK_TOKENS + MIN_EXACT_TOKENS > n_held
            {
                return Err(kv_budget::memory_full());
            }
            let more = self.requantize_replay(id, n_requantized)?;
            requantization.to_requantize.extend(more.to_requantize);
        }
        let copies = self.reserve_replay(id, n)?;
        Ok(Some(ReplayStep { n, requantization, copies }))
    }

    /// Requantizes the first `n` chunks.
    fn requantize_replay(&mut self, id: SequenceId, n: usize) -> Result<PageRequantization> {
        let n_before = self.get(id)?.requantized.n_chunks;
        if n <= n_before {
            return Ok(PageRequantization::default());
        }
        if self.geometry.pages_for((n - n_before) * CHECKPOINT_CHUNK_TOKENS) > self.pages.n_requantized_free()
        {
            return Err(kv_budget::memory_full());
        }
        self.requantize_to(id, n)
    }

    /// Reserves as `reserve` does, but writes full-attention pages in place.
    fn reserve_replay(&mut self, id: SequenceId, n: usize) -> Result<CopyOnWrite> {
        let Self { sequences, geometry, pages, .. } = self;
        let sequence = sequences.get_mut(&id).ok_or_else(|| unknown(id))?;
        let (n_held, n_pages) = (sequence.tokens.len(), sequence.pages.end());
        sequence.pages.grow(n_pages, geometry.pages_for(n_held + n), pages);
        self.reserve_forgetful(id, n)
    }

    /// Records the tokens of a step, and restores the rewind point or mark at its end.
    pub fn commit_replay(&mut self, id: SequenceId, replay: &Replay, n: usize) -> Result<()> {
        let n_held = self.get(id)?.tokens.len();
        self.commit(id, &replay.tokens[n_held..n_held + n])?;
        if replay.lost.rewind_positions.contains(&(n_held + n)) {
            self.save_rewind_point(id)?;
        }
        if replay.lost.mark == Some(n_held + n) {
            // Without a mark only more is recomputed.
            self.set_mark(id);
        }
        Ok(())
    }

    /// Finishes a replay.
    pub fn finish_replay(&mut self, id: SequenceId, replay: &Replay) -> Result<()> {
        if replay.lost.is_pinned {
            self.pin_window(id)?;
        }
        Ok(())
    }

    /// Aborts a replay: the sequence is lost as before.
    pub fn abort_replay(&mut self, id: SequenceId, replay: Replay) {
        let Some(sequence) = self.sequences.get_mut(&id) else { return };
        let n = replay.tokens.len();
        (sequence.tokens, sequence.requantized, sequence.lost) =
            (replay.tokens, replay.requantized, Some(replay.lost));
        let exact = if sequence.requantized.is_exact() { self.geometry.pages_for(n) } else { 0 };
        sequence.pages.truncate(exact, &mut self.pages);
        sequence.window.clear(&mut self.window_pages);
        sequence.state.take().into_iter().for_each(|slot| self.states.release(slot));
        sequence.mark.take().into_iter().for_each(|mark| self.states.release(mark.slot));
        sequence
            .rewind_points
            .drain(..)
            .for_each(|mut point| point.release(&mut self.window_pages, &mut self.states));
    }
}
