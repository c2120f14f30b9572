//! Marks: the recurrent state before tokens that may be taken back, such as a draft.
//!
//! Unlike a rewind point, a mark is never dropped for other sequences; it lives until it is cleared.

use super::{KvCache, SequenceId};

/// Recurrent state at a position.
#[derive(Debug, Clone, Copy)]
pub(super) struct StateMark {
    pub position: usize,
    pub slot: u32,
}

impl KvCache {
    /// Marks the current position, replacing an earlier mark. For the next `size::WINDOW_REWIND_TOKENS` tokens
    /// `truncate` can return to it, and without recurrent layers to any position since.
    ///
    /// Returns false if no state slot is free or the sequence is unknown.
    pub fn set_mark(&mut self, id: SequenceId) -> bool {
        self.clear_mark(id);
        let n_marks = self.sequences.values().filter(|sequence| sequence.mark.is_some()).count();
        let Self { sequences, geometry, states, .. } = self;
        let Some(sequence) = sequences.get_mut(&id) else { return false };
        if let Some(lost) = &mut sequence.lost {
            lost.set_mark(geometry.recurrent.then_some(sequence.tokens.len()));
            return true;
        }
        let Some(slot) = sequence.state else { return true };
        if n_marks >= geometry.n_mark_states {
            return false;
        }
        states.share(slot);
        sequence.mark = Some(StateMark { position: sequence.tokens.len(), slot });
        true
    }

    /// Clears the mark. Sequences without one and unknown ids are ignored.
    pub fn clear_mark(&mut self, id: SequenceId) {
        let Some(sequence) = self.sequences.get_mut(&id) else { return };
        sequence.lost.iter_mut().for_each(|lost| lost.set_mark(None));
        let mark = sequence.mark.take();
        mark.into_iter().for_each(|mark| self.states.release(mark.slot));
    }
}
