//! Positions that a sequence can go back to although its windows have passed them, or its recurrent layers gone on:
//! the window's pages and the state as they were there.

use super::pool::{PageTable, SlotPool};
use super::sequence_id::SequenceId;

/// One such position.
#[derive(Debug)]
pub struct RewindPoint {
    pub position: usize,
    /// pages that the windows reach from there
    pub window: PageTable,
    /// slot of the recurrent state there
    pub state: Option<u32>,
    /// rises with time
    pub(super) stamp: u64,
}

impl RewindPoint {
    /// Another holder of the same.
    pub(super) fn share(&self, window_pages: &mut SlotPool, states: &mut SlotPool) -> Self {
        Self {
            position: self.position,
            window: self.window.share(self.window.first(), self.window.end(), window_pages),
            state: self.state.inspect(|&slot| states.share(slot)),
            stamp: self.stamp,
        }
    }

    pub(super) fn release(&mut self, window_pages: &mut SlotPool, states: &mut SlotPool) {
        self.window.clear(window_pages);
        self.state.take().into_iter().for_each(|slot| states.release(slot));
    }
}

/// Positions of a sequence that are not thinned out while others are there: before and after the last reply.
const N_NEWEST: usize = 2;

/// The kept position that is missed least: of the older ones that with the shortest way from the one before it, the
/// longest kept of equals; where every sequence has only its newest, the longest kept of all.
pub(super) fn least_useful<'a>(
    all: impl Iterator<Item = (SequenceId, &'a [RewindPoint])> + Clone,
) -> Option<(SequenceId, usize)> {
    let older = all.clone().flat_map(|(id, kept)| {
        let n_older = kept.len().saturating_sub(N_NEWEST);
        let before = std::iter::once(0).chain(kept.iter().map(|kept| kept.position));
        let ways = kept.iter().zip(before).map(|(kept, before)| kept.position - before);
        ways.zip(kept).enumerate().take(n_older).map(move |(at, (way, kept))| ((way, kept.stamp), (id, at)))
    });
    if let Some((_, found)) = older.min() {
        return Some(found);
    }
    let newest =
        all.flat_map(|(id, kept)| kept.iter().enumerate().map(move |(at, kept)| (kept.stamp, (id, at))));
    newest.min().map(|(_, found)| found)
}
