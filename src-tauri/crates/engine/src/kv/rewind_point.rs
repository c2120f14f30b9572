//! Rewind points: saved positions that a sequence can return to after its windows have passed them or its recurrent
//! state has moved on.

use super::pool::{PageTable, SlotPool};
use super::sequence_id::SequenceId;

/// Window pages and recurrent state of a saved position.
#[derive(Debug)]
pub struct RewindPoint {
    /// Number of tokens before it.
    pub position: usize,
    /// Pages that the windows reach from this position.
    pub window: PageTable,
    /// Slot of the recurrent state.
    pub state: Option<u32>,
    /// Increases with each rewind point saved.
    pub(super) stamp: u64,
}

impl RewindPoint {
    /// Creates another holder of the same pages and state.
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

/// Rewind points per sequence that are dropped last: before and after the newest reply.
const N_NEWEST: usize = 2;

/// Returns the least useful rewind point: among older ones the closest to its predecessor, the earliest saved of
/// equals. If every sequence has only its newest, the earliest saved of all.
pub(super) fn least_useful<'a>(
    all: impl Iterator<Item = (SequenceId, &'a [RewindPoint])> + Clone,
) -> Option<(SequenceId, usize)> {
    let older = all.clone().flat_map(|(id, points)| {
        let n_older = points.len().saturating_sub(N_NEWEST);
        let before = std::iter::once(0).chain(points.iter().map(|point| point.position));
        let gaps = points.iter().zip(before).map(|(point, before)| point.position - before);
        gaps.zip(points)
            .enumerate()
            .take(n_older)
            .map(move |(at, (gap, point))| ((gap, point.stamp), (id, at)))
    });
    if let Some((_, found)) = older.min() {
        return Some(found);
    }
    let newest = all
        .flat_map(|(id, points)| points.iter().enumerate().map(move |(at, point)| (point.stamp, (id, at))));
    newest.min().map(|(_, found)| found)
}
