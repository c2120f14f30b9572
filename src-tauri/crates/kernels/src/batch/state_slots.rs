//! What recurrent layers ask of a batch: a slot of its own for every sequence, rows in order of position.

use super::{Batch, Capacity};
use crate::error::KernelError;
use crate::graph::Graph;

/// Scratch of the check: (n_states) what a batch does with each slot.
pub struct SlotUses(Vec<SlotUse>);

#[derive(Clone, Copy)]
enum SlotUse {
    Free,
    /// of a sequence that has had no row yet
    Taken,
    /// its last row was at this position
    At(u32),
}

impl SlotUses {
    pub fn new(capacity: &Capacity) -> Self {
        Self(vec![SlotUse::Free; capacity.n_states])
    }

    /// `batch` has passed the other checks. Errors: slots that are missing, absent or shared; rows out of order.
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
                Some(used @ SlotUse::Free) => *used = SlotUse::Taken,
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
