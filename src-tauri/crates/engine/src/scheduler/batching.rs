//! Row assignment: which requests take part in a batch, and with how many rows.
//!
//! Each replica gets the rows of the sequences on it; replicas run at the same time.

use super::Scheduler;
use super::active::{ActiveRequest, BatchSlot};
use super::prefill_budget::MIN_PREFILL_ROWS;
use crate::kv::sequence_id::SequenceId;
use crate::model::{LogitsSelection, Model};

impl Scheduler {
    /// Assigns the rows of the next batch: all decoding requests first, then prompts, which share the remaining rows.
    /// After a failed batch, its requests run alone until the cause is known.
    pub(super) fn assign_rows(&self, model: &Model, slots: &mut Vec<BatchSlot>) {
        slots.clear();
        let suspect =
            self.suspects.iter().find_map(|id| self.active.iter().position(|a| a.request.id == *id));
        for replica in 0..model.n_replicas() {
            let takes_part = |index: usize, active: &ActiveRequest| {
                suspect.is_none_or(|suspect| suspect == index) && model.replica_of(active.sequence) == replica
            };
            self.assign_replica_rows(model, &takes_part, slots);
        }
    }

    /// Assigns the rows of one replica.
    fn assign_replica_rows(
        &self,
        model: &Model,
        takes_part: &dyn Fn(usize, &ActiveRequest) -> bool,
        slots: &mut Vec<BatchSlot>,
    ) {
        let max_rows = model.max_rows();
        let active = || self.active.iter().enumerate().filter(|(index, active)| takes_part(*index, active));
        let mut n_free = max_rows;
        let mut give = |index: usize, active: &ActiveRequest, max_rows: usize| {
            let n_left = active.history.len() - active.n_done;
            let n_tokens = n_left.min(max_rows).min(n_free).min(active.n_until_rewind_point());
            let n_tokens = model.whole_images(&active.history, active.n_done, n_tokens, n_free);
            n_free -= n_tokens;
            let logits = if n_tokens == n_left { LogitsSelection::Last } else { LogitsSelection::None };
            if n_tokens > 0 {
                slots.push(BatchSlot { index, n_tokens, n_drafted: 0, logits });
            }
            n_tokens
        };
        let (mut n_answers, mut n_readers) = (0, 0);
        for (index, active) in active() {
            match active.is_prefilling() {
                true => n_readers += 1,
                false => n_answers += usize::from(give(index, active, MIN_PREFILL_ROWS) > 0),
            }
        }
        let mut n_rows = self.prefill_budget.rows(n_answers > 0, max_rows);
        for (index, active) in active().filter(|(_, active)| active.is_prefilling()) {
            // Unused budget rolls over to the next request.
            let part = (n_rows / n_readers).max(MIN_PREFILL_ROWS).min(n_rows);
            // A whole image may exceed its share.
            n_rows = n_rows.saturating_sub(give(index, active, part));
            n_readers -= 1;
        }
    }

    /// Moves a new request to the replica with the fewest, if its sequence is small.
    pub(super) fn place_on_idlest_replica(&self, model: &mut Model, sequence: SequenceId) {
        let n_at = |replica: usize| {
            let there = |active: &&ActiveRequest| model.replica_of(active.sequence) == replica;
            self.active.iter().filter(there).count()
        };
        let here = model.replica_of(sequence);
        let idlest = (0..model.n_replicas()).min_by_key(|replica| n_at(*replica)).unwrap_or(here);
        if n_at(idlest) < n_at(here) {
            // If it cannot be moved, it runs where it is.
            model.move_to_replica(sequence, idlest);
        }
    }
}
