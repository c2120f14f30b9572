//! Where a sequence was before tokens that may be taken back at once: for recurrent layers the state there. Unlike
//! what is kept, it is never dropped for others' sake, and only until it is let go of.

use super::{KvCache, SequenceId};

/// The state of recurrent layers at a position.
#[derive(Debug, Clone, Copy)]
pub(super) struct StateMark {
    pub position: usize,
    pub slot: u32,
}

impl KvCache {
    /// Marks where the sequence is, in place of an earlier mark, for at most `size::WINDOW_REWIND_TOKENS` tokens: `truncate` comes
    /// back to here, or to any position since where no state is lost. False: there is no room for another state, or no
    /// such sequence.
    pub fn mark(&mut self, id: SequenceId) -> bool {
        self.unmark(id);
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

    /// Lets go of the mark. A sequence that has none, or doesn't live, is ignored.
    pub fn unmark(&mut self, id: SequenceId) {
        let Some(sequence) = self.sequences.get_mut(&id) else { return };
        sequence.lost.iter_mut().for_each(|lost| lost.set_mark(None));
        let mark = sequence.mark.take();
        mark.into_iter().for_each(|mark| self.states.release(mark.slot));
    }
}
