//! Advances recurrent states again, by fewer rows of the last run: what remains of a draft of which the rest was rejected.
//!
//! A state can't be rewound, but what advanced it is still there. Replaying the recurrent nodes alone takes a small part of
//! a run, which would read all weights.

use super::{Executor, MAX_REPLAY_ROWS};
use crate::batch::Batch;
use crate::error::KernelError;
use crate::plan::segments::Segment;

impl Executor {
    /// Whether `replay_states` may follow a run of `n_rows` rows.
    pub fn can_replay_states(&self, n_rows: usize) -> bool {
        (2..=MAX_REPLAY_ROWS).contains(&n_rows) && self.devices.iter().all(|device| device.replays_states())
    }

    /// Advances the recurrent states of `batch` by its rows, which are the first ones of the last run, and has nothing else
    /// to do with them. The states are those of before that run, in any slot. Outputs of the run are lost.
    ///
    /// Errors: a slot that does not exist; a panic. The states are undefined then.
    pub fn replay_states(&mut self, batch: &Batch) -> Result<(), KernelError> {
        self.n_outputs = 0;
        self.n_draft_outputs = 0;
        self.top_k.clear();
        batch.states.iter().try_for_each(|slot| self.check_slot(*slot))?;
        for segment in &self.segments {
            if let Segment::Run { device, nodes } = segment {
                self.devices[device.0].replay_states(nodes.clone(), batch)?;
            }
        }
        Ok(())
    }
}
