//! Rewinding: sequences return to an earlier position, directly, from a rewind point or from a mark.

use super::{KvCache, Sequence, unknown};
use crate::error::Result;
use crate::kv::rewind_point::RewindPoint;
use crate::kv::sequence_id::SequenceId;

/// What a sequence returns to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RewindSource {
    /// A position of the live sequence.
    Live,
    /// A rewind point, by index.
    RewindPoint(usize),
    StateMark,
}

impl KvCache {
    /// Rewinds to the greatest position ≤ `n` that the sequence can continue from, and returns it.
    ///
    /// That is `n` itself where only full attention is at work, else a rewind point or 0. Requantized chunks stay
    /// requantized and are kept whole or dropped.
    pub fn truncate(&mut self, id: SequenceId, n: usize) -> Result<usize> {
        self.go_back(id, n, true)
    }

    /// Returns the position that `truncate` would rewind to.
    pub fn reach(&self, id: SequenceId, n: usize) -> Result<usize> {
        Ok(self.nearest(self.get(id)?, n, true).0)
    }

    /// Rewinds to `n` or before after a failed run, and drops reserved pages. The recurrent state counts as
    /// overwritten.
    pub fn revert(&mut self, id: SequenceId, n: usize) -> Result<usize> {
        self.go_back(id, n, false)
    }

    fn go_back(&mut self, id: SequenceId, n: usize, state_is_sound: bool) -> Result<usize> {
        let (to, from) = self.nearest(self.get(id)?, n, state_is_sound);
        self.return_to(id, to, from)
    }

    /// Returns to `n` tokens, of which the last ones came after the mark at position `start`, with the mark's state: the
    /// caller replays it from there. Returns false where nothing changed and `truncate` has to do.
    pub fn return_to_replay(&mut self, id: SequenceId, start: usize, n: usize) -> Result<bool> {
        let sequence = self.get(id)?;
        let is_within = start < n && n < sequence.tokens.len() && sequence.lost.is_none();
        let mark = sequence.mark.filter(|mark| mark.position == start && !self.states.is_shared(mark.slot));
        let is_held =
            sequence.requantized.reach(n) == n && self.geometry.is_covered(sequence.window.first(), n);
        if !is_within || !is_held || mark.is_none() {
            return Ok(false);
        }
        self.return_to(id, n, RewindSource::StateMark)?;
        self.clear_mark(id);
        Ok(true)
    }

    fn return_to(&mut self, id: SequenceId, to: usize, from: RewindSource) -> Result<usize> {
        let n_pages = self.geometry.pages_for(to);
        let Self { sequences, geometry, pages, window_pages, states, .. } = self;
        let sequence = sequences.get_mut(&id).ok_or_else(|| unknown(id))?;
        sequence.tokens.truncate(to);
        sequence.pinned_from = None;
        sequence.pages.truncate(n_pages, pages);
        sequence.requantized.truncate(to);
        sequence.window.truncate(n_pages, window_pages);
        let state = match from {
            RewindSource::Live => sequence.state,
            RewindSource::StateMark => sequence.mark.map(|mark| mark.slot),
            RewindSource::RewindPoint(at) => {
                let point = &sequence.rewind_points[at];
                if geometry.window.is_some() {
                    sequence.window.share_from(&point.window, point.window.first(), n_pages, window_pages);
                }
                point.state
            }
        };
        state.into_iter().for_each(|slot| states.share(slot));
        let before = std::mem::replace(&mut sequence.state, state);
        before.into_iter().for_each(|slot| states.release(slot));
        if to == 0 {
            sequence.window.clear(window_pages);
            sequence.state.take().into_iter().for_each(|slot| states.release(slot));
        }
        let n_left = sequence.rewind_points.partition_point(|point| point.position <= to);
        sequence.rewind_points.drain(n_left..).for_each(|mut point| point.release(window_pages, states));
        let mark = sequence.mark.take_if(|mark| mark.position > to);
        mark.into_iter().for_each(|mark| states.release(mark.slot));
        sequence.lost = sequence.lost.take().filter(|_| to > 0);
        sequence.lost.iter_mut().for_each(|lost| lost.truncate(to));
        Ok(to)
    }

    /// Returns the greatest position ≤ `n` that the sequence can continue from, and what holds it.
    fn nearest(&self, sequence: &Sequence, n: usize, state_is_sound: bool) -> (usize, RewindSource) {
        let (n_held, g) = (sequence.tokens.len(), &self.geometry);
        let live = match g.recurrent {
            true => (state_is_sound && n >= n_held).then_some(n_held),
            false => Some(n.min(n_held)),
        };
        // Requantized chunks are held whole or not at all.
        let to_whole_chunks = |to: usize| sequence.requantized.reach(to);
        if sequence.lost.is_some() {
            // A lost sequence is replayed from its beginning, so any position will do.
            return (to_whole_chunks(n.min(n_held)), RewindSource::Live);
        }
        let of_itself = |to: &usize| g.is_covered(sequence.window.first(), *to);
        let live = live.map(to_whole_chunks).filter(of_itself).unwrap_or(0);
        let mark = sequence.mark.map(|mark| mark.position).filter(|&to| to <= n).filter(of_itself);
        let points = sequence.rewind_points.iter().enumerate().filter_map(|(at, point)| {
            let to = if g.recurrent { point.position } else { to_whole_chunks(point.position.min(n)) };
            (to <= n && to_whole_chunks(to) == to && g.is_covered(point.window.first(), to))
                .then_some((to, RewindSource::RewindPoint(at)))
        });
        match points.chain(mark.map(|to| (to, RewindSource::StateMark))).max() {
            Some((to, from)) if to > live => (to, from),
            Some(_) | None => (live, RewindSource::Live),
        }
    }

    /// Saves the current position as a rewind point for `truncate`. Costs nothing until the sequence continues.
    pub fn save_rewind_point(&mut self, id: SequenceId) -> Result<()> {
        let sequence = self.get(id)?;
        let position = sequence.tokens.len();
        let known = sequence.rewind_points.last().is_some_and(|point| point.position == position);
        let is_there = position > 0 && sequence.lost.is_none();
        if !is_there || known || !self.geometry.can_lose_positions() || self.geometry.max_rewind_points == 0 {
            return Ok(());
        }
        while self.n_rewind_points() >= self.geometry.max_rewind_points {
            assert!(self.drop_rewind_point(), "counted rewind points exist");
        }
        self.n_rewind_points_ever += 1;
        let stamp = self.n_rewind_points_ever;
        let Self { sequences, window_pages, states, .. } = self;
        let sequence = sequences.get_mut(&id).ok_or_else(|| unknown(id))?;
        let window = sequence.window.share(sequence.window.first(), sequence.window.end(), window_pages);
        let state = sequence.state.inspect(|&slot| states.share(slot));
        sequence.rewind_points.push(RewindPoint { position, window, state, stamp });
        if sequence.pinned_from.is_some() {
            self.pin_window(id)?;
        }
        Ok(())
    }
}
