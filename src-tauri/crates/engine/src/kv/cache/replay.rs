//! What a device took with it when it failed: sequences know their tokens still, but nothing stands in their pages. Each
//! is read again before it is needed next, in the order of its tokens: through its windows, from the first state on, and
//! with what had aged ageing where it did. What layers that keep everything share stays shared; of windows and states
//! each sequence has its own afterwards, for which there is always room.

use super::super::CHECKPOINT_CHUNK_TOKENS;
use super::super::requantize::{MIN_EXACT_TOKENS, Requantized};
use super::{CopyOnWrite, KvCache, PageRequantization, Sequence, SequenceId, kv_budget, unknown};
use crate::TokenId;
use crate::error::Result;

/// Positions that a sequence could go back to.
#[derive(Debug, Clone, Default)]
pub(super) struct LostPositions {
    /// in order
    kept: Vec<usize>,
    mark: Option<usize>,
    /// its windows let go of nothing
    is_pinned: bool,
}

/// A sequence that is being read again.
#[derive(Debug)]
pub struct Replay {
    pub tokens: Vec<TokenId>,
    aged: Requantized,
    lost: LostPositions,
}

/// What of a sequence is to be read next, and what is to be done before.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ReplayStep {
    /// tokens from where the sequence is
    pub n: usize,
    pub turning: PageRequantization,
    pub copies: CopyOnWrite,
}

impl LostPositions {
    /// Goes back to `n`.
    pub(super) fn truncate(&mut self, n: usize) {
        self.kept.retain(|&position| position <= n);
        self.mark = self.mark.filter(|&position| position <= n);
    }

    pub(super) fn set_pinned(&mut self, is_pinned: bool) {
        self.is_pinned = is_pinned;
    }

    pub(super) fn set_mark(&mut self, mark: Option<usize>) {
        self.mark = mark;
    }

    /// Of a fork: marks are not shared.
    pub(super) fn for_fork(&self) -> Self {
        Self { mark: None, is_pinned: false, ..self.clone() }
    }
}

impl KvCache {
    /// Nothing stands any more in any page or slot of the replica `replica`. The sequences of `back_to` drop tokens beyond
    /// so many.
    pub fn mark_lost(&mut self, replica: usize, back_to: &[(SequenceId, usize)]) {
        let Self { sequences, geometry, pages, window_pages, states, .. } = self;
        for (id, sequence) in sequences.iter_mut().filter(|(_, sequence)| sequence.replica == replica) {
            let to = back_to.iter().find(|(other, _)| other == id).map(|(_, n)| *n);
            let n = to.unwrap_or(usize::MAX).min(sequence.tokens.len());
            let mut lost = sequence.lost.take().unwrap_or_default();
            lost.kept.extend(sequence.rewind_points.iter().map(|kept| kept.position));
            lost.mark = sequence.mark.map_or(lost.mark, |mark| Some(mark.position));
            lost.is_pinned |= sequence.pinned_from.take().is_some();
            lost.truncate(n);
            sequence.rewind_points.drain(..).for_each(|mut kept| kept.release(window_pages, states));
            sequence.mark.take().into_iter().for_each(|mark| states.release(mark.slot));
            sequence.state.take().into_iter().for_each(|slot| states.release(slot));
            sequence.window.clear(window_pages);
            sequence.tokens.truncate(n);
            sequence.aged.truncate(n);
            match sequence.aged.is_exact() {
                true => sequence.pages.truncate(geometry.pages_for(n), pages),
                // made anew of exact ones
                false => sequence.pages.clear(pages),
            }
            sequence.lost = (n > 0).then_some(lost);
        }
    }

    /// It has to be read again before anything of it is used.
    pub fn is_lost(&self, id: SequenceId) -> bool {
        self.sequences.get(&id).is_some_and(|sequence| sequence.lost.is_some())
    }

    /// The sequence begins anew, at what of it others have read already. None: it isn't lost.
    pub fn begin_replay(&mut self, id: SequenceId) -> Result<Option<Replay>> {
        let n_there = self.n_there(self.get(id)?);
        let Self { sequences, pages, .. } = self;
        let sequence = sequences.get_mut(&id).ok_or_else(|| unknown(id))?;
        let Some(lost) = sequence.lost.take() else { return Ok(None) };
        let (tokens, aged) = (sequence.tokens.clone(), std::mem::take(&mut sequence.aged));
        sequence.tokens.truncate(n_there);
        if !aged.is_exact() {
            sequence.pages.clear(pages);
        }
        Ok(Some(Replay { tokens, aged, lost }))
    }

    /// Tokens at the beginning whose pages another sequence holds that is there: only of layers that keep everything.
    fn n_there(&self, sequence: &Sequence) -> usize {
        if self.geometry.window.is_some() || self.geometry.recurrent || !sequence.aged.is_exact() {
            return 0;
        }
        let is_there = |other: &&Sequence| other.lost.is_none() && other.replica == sequence.replica;
        let others = self.sequences.values().filter(is_there).filter(|other| other.aged.is_exact());
        let n_same = |other: &Sequence| {
            let both = sequence.pages.table().iter().zip(other.pages.table());
            let n_pages = both.take_while(|(own, other)| own == other).count();
            let n = (n_pages * self.geometry.page_len).min(other.tokens.len()).min(sequence.tokens.len());
            n / self.geometry.page_len * self.geometry.page_len
        };
        others.map(n_same).max().unwrap_or(0)
    }

    /// Room for what is read next of it, at most `most` tokens. None: all of it is there. Error `kv.memory_full`: what
    /// had aged was shared, and there is no room for it exactly.
    pub fn next_replay_step(
        &mut self,
        id: SequenceId,
        again: &Replay,
        most: usize,
    ) -> Result<Option<ReplayStep>> {
        let n_held = self.get(id)?.tokens.len();
        let seen = again.aged.views.iter();
        let n_requantized =
            seen.clone().rfind(|seen| seen.from as usize <= n_held).map_or(0, |seen| seen.n_requantized);
        let requantizes_at = seen.map(|seen| seen.from as usize);
        let stops = again.lost.kept.iter().copied().chain(again.lost.mark).chain(requantizes_at);
        let stop = stops.filter(|&stop| stop > n_held).min().unwrap_or(usize::MAX);
        let n = again.tokens.len().min(stop).min(n_held + most) - n_held;
        if n == 0 {
            let turning = self.requantize_replay(id, again.aged.n_chunks)?;
            return Ok((turning != PageRequantization::default())
                .then(|| ReplayStep { turning, ..ReplayStep::default() }));
        }
        let mut turning = self.requantize_replay(id, n_requantized as usize)?;
        // what aged under pressure aged later than tokens saw it: where both don't fit, it does so now
        while self.geometry.pages_for(n_held + n).saturating_sub(self.get(id)?.pages.end())
            > self.n_free_pages()
        {
            let n_requantized = self.get(id)?.aged.n_chunks + 1;
            if n_requantized > again.aged.n_chunks
                || n_requantized * CHECKPOINT_CHUNK_TOKENS + MIN_EXACT_TOKENS > n_held
            {
                return Err(kv_budget::memory_full());
            }
            let more = self.requantize_replay(id, n_requantized)?;
            turning.to_requantize.extend(more.to_requantize);
        }
        let copies = self.reserve_replay(id, n)?;
        Ok(Some(ReplayStep { n, turning, copies }))
    }

    /// The first `n` stretches are aged from here on.
    fn requantize_replay(&mut self, id: SequenceId, n: usize) -> Result<PageRequantization> {
        let n_before = self.get(id)?.aged.n_chunks;
        if n <= n_before {
            return Ok(PageRequantization::default());
        }
        if self.geometry.pages_for((n - n_before) * CHECKPOINT_CHUNK_TOKENS) > self.pages.n_requantized_free()
        {
            return Err(kv_budget::memory_full());
        }
        self.requantize_to(id, n)
    }

    /// As `reserve`, where pages of layers that keep everything are written where they are.
    fn reserve_replay(&mut self, id: SequenceId, n: usize) -> Result<CopyOnWrite> {
        let Self { sequences, geometry, pages, .. } = self;
        let sequence = sequences.get_mut(&id).ok_or_else(|| unknown(id))?;
        let (n_held, n_pages) = (sequence.tokens.len(), sequence.pages.end());
        sequence.pages.grow(n_pages, geometry.pages_for(n_held + n), pages);
        self.reserve_forgetful(id, n)
    }

    /// What was read is there; where the sequence could go back to, it can again.
    pub fn commit_replay(&mut self, id: SequenceId, again: &Replay, n: usize) -> Result<()> {
        let n_held = self.get(id)?.tokens.len();
        self.commit(id, &again.tokens[n_held..n_held + n])?;
        if again.lost.kept.contains(&(n_held + n)) {
            self.save_rewind_point(id)?;
        }
        if again.lost.mark == Some(n_held + n) {
            // without a mark more is computed, no more
            self.mark(id);
        }
        Ok(())
    }

    /// All of it is there.
    pub fn finish_replay(&mut self, id: SequenceId, again: &Replay) -> Result<()> {
        if again.lost.is_pinned {
            self.pin_window(id)?;
        }
        Ok(())
    }

    /// It was read in part only: it is lost as before.
    pub fn abort_replay(&mut self, id: SequenceId, again: Replay) {
        let Some(sequence) = self.sequences.get_mut(&id) else { return };
        let n = again.tokens.len();
        (sequence.tokens, sequence.aged, sequence.lost) = (again.tokens, again.aged, Some(again.lost));
        let exact = if sequence.aged.is_exact() { self.geometry.pages_for(n) } else { 0 };
        sequence.pages.truncate(exact, &mut self.pages);
        sequence.window.clear(&mut self.window_pages);
        sequence.state.take().into_iter().for_each(|slot| self.states.release(slot));
        sequence.mark.take().into_iter().for_each(|mark| self.states.release(mark.slot));
        sequence
            .rewind_points
            .drain(..)
            .for_each(|mut kept| kept.release(&mut self.window_pages, &mut self.states));
    }
}
