//! Checks a batch for recurrent layers: every sequence has its own slot, and its rows are in order of position.

use super::Batch;
use crate::capacity::Capacity;
use crate::error::KernelError;
use crate::graph::Graph;

/// (n_states) use of each slot by a batch; scratch memory of the check.
pub struct StateSlots(Vec<SlotUse>);

#[derive(Clone, Copy)]
enum SlotUse {
    Free,
    /// belongs to a sequence that has had no row yet
    Assigned,
    /// last row of its sequence was at this position
    At(u32),
}

impl StateSlots {
    /// Scratch memory for `capacity.n_states` slots.
    pub fn new(capacity: &Capacity) -> Self {
        Self(vec![SlotUse::Free; capacity.n_states])
    }

    /// Checks `batch`, which has passed all other checks. Errors: missing, unknown or shared slots, rows out of order.
    pub fn check(&mut self, batch: &Batch, graph: &Graph) -> Result<(), KernelError> {
        let fail = |what, found, limit| Err(KernelError::Batch { what, found, limit });
        if graph.kv().states.is_empty() {
            return Ok(());
        }
        if batch.states.len() != batch.page_tables.len() {
            return fail("slots of recurrent states", batch.states.len(), batch.page_tables.len());
        }
        let n_states = self.0.len();
        self.0.fill(SlotUse::Free);
        for slot in batch.states {
            match self.0.get_mut(*slot as usize) {
                None => return fail("slot of a recurrent state", *slot as usize, n_states),
                Some(used @ SlotUse::Free) => *used = SlotUse::Assigned,
                Some(_) => return fail("sequences in one slot", 2, 1),
            }
        }
        for (sequence, position) in batch.sequence.iter().zip(batch.positions) {
            let last = &mut self.0[batch.states[*sequence as usize] as usize];
            if let SlotUse::At(last) = *last
                && last.checked_add(1) != Some(*position)
            {
                return fail("position after its sequence's last", *position as usize, last as usize + 1);
            }
            *last = SlotUse::At(*position);
        }
        Ok(())
    }
}
