//! Who takes part in a batch, and with how much: of each replica of the model those that are there, which run at the same
//! time.

use super::Scheduler;
use super::active::{Active, Share};
use super::pace::LEAST_ROWS;
use crate::kv::cache::SequenceId;
use crate::model::{Model, Wanted};

impl Scheduler {
    /// Who takes part in the next batch: everyone who decodes, then prompts while there are rows, as many for each.
    /// After a batch that failed its requests go one by one, until it is seen whose fault it was.
    pub(super) fn share_out(&self, model: &Model, shares: &mut Vec<Share>) {
        shares.clear();
        let suspect =
            self.suspects.iter().find_map(|id| self.active.iter().position(|a| a.request.id == *id));
        for replica in 0..model.n_replicas() {
            let takes_part = |index: usize, active: &Active| {
                suspect.is_none_or(|suspect| suspect == index) && model.replica_of(active.sequence) == replica
            };
            self.share_out_of(&takes_part, model.max_rows(), shares);
        }
    }

    /// The same of one replica.
    fn share_out_of(
        &self,
        takes_part: &dyn Fn(usize, &Active) -> bool,
        max_rows: usize,
        shares: &mut Vec<Share>,
    ) {
        let active = || self.active.iter().enumerate().filter(|(index, active)| takes_part(*index, active));
        let mut n_free = max_rows;
        let mut give = |index: usize, active: &Active, most: usize| {
            let n_left = active.history.len() - active.n_done;
            let n_tokens = n_left.min(most).min(n_free).min(active.n_to_keep());
            n_free -= n_tokens;
            let wanted = if n_tokens == n_left { Wanted::Last } else { Wanted::None };
            if n_tokens > 0 {
                shares.push(Share { index, n_tokens, n_guesses: 0, wanted });
            }
            n_tokens
        };
        let (mut n_answers, mut n_readers) = (0, 0);
        for (index, active) in active() {
            match active.reads() {
                true => n_readers += 1,
                false => n_answers += usize::from(give(index, active, LEAST_ROWS) > 0),
            }
        }
        let mut n_rows = self.pace.rows(n_answers > 0, max_rows);
        for (index, active) in active().filter(|(_, active)| active.reads()) {
            // what one leaves of its part is the next one's
            let part = (n_rows / n_readers).max(LEAST_ROWS).min(n_rows);
            n_rows -= give(index, active, part);
            n_readers -= 1;
        }
    }

    /// A request that begins goes to the replica where fewest are answered, if it holds little elsewhere.
    pub(super) fn settle(&self, model: &mut Model, sequence: SequenceId) {
        let n_at = |replica: usize| {
            let there = |active: &&Active| model.replica_of(active.sequence) == replica;
            self.active.iter().filter(there).count()
        };
        let here = model.replica_of(sequence);
        let idlest = (0..model.n_replicas()).min_by_key(|replica| n_at(*replica)).unwrap_or(here);
        if n_at(idlest) < n_at(here) {
            // where it can't be moved it is answered where it is
            model.settle_at(sequence, idlest);
        }
    }
}
