//! Takes back the last tokens of a run: drafted ones that were rejected.
//!
//! Recurrent layers can't go back to any position. Their state before the run was marked, and the accepted tokens
//! advance it again by what the run has left of them, without the rest of the model.

use kernels::{Batch, GivenRows};

use super::Model;
use crate::error::{Result, guarded};
use crate::kv::sequence_id::SequenceId;
use crate::kv::size::Rewind;

/// A run of one sequence alone, whose values its executor still has.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunOfOne {
    pub seq: SequenceId,
    /// Position of its first row.
    pub start: usize,
    pub n_rows: usize,
    /// Index of the replica.
    pub replica: usize,
}

impl Model {
    /// Whether tokens of a run of `n_rows` rows of one sequence are taken back at little cost.
    pub(crate) fn takes_back(&self, n_rows: usize) -> bool {
        self.rewind() != Rewind::Nowhere
            || self.replicas.iter().all(|replica| replica.executor.can_replay_states(n_rows))
    }

    /// Takes back what a sequence holds beyond `n` tokens of the run before, if a mark was set before that run. Returns
    /// how many it holds now: `n`, or fewer where the recurrent state can't be advanced to there.
    pub(crate) fn take_back(&mut self, seq: SequenceId, n: usize) -> Result<usize> {
        let run = self.last_run.take().filter(|run| run.seq == seq && self.takes_back(run.n_rows));
        let Some(run) = run.filter(|_| self.rewind() == Rewind::Nowhere) else {
            return self.truncate(seq, n);
        };
        if !self.cache.return_to_replay(seq, run.start, n)? {
            return self.truncate(seq, n);
        }
        match guarded(|| self.replay_states(run, n)) {
            Ok(()) => Ok(n),
            // The state is undefined: back to a rewind point.
            Err(_) => self.cache.revert(seq, n),
        }
    }

    fn replay_states(&mut self, run: RunOfOne, n: usize) -> Result<()> {
        let Self { cache, replicas, .. } = self;
        let position = |at: usize| u32::try_from(at).expect("the context is shorter than 2^32 tokens");
        let positions: Vec<u32> = (run.start..n).map(position).collect();
        let (sequence, state) = (vec![0; positions.len()], cache.state(run.seq)?);
        Ok(replicas[run.replica].executor.replay_states(&Batch {
            tokens: &cache.tokens(run.seq)?[run.start..],
            positions: &positions,
            kinds: &[],
            given: GivenRows::NONE,
            sequence: &sequence,
            page_tables: &[],
            window_tables: &[],
            states: state.as_slice(),
            outputs: &[],
        })?)
    }
}
