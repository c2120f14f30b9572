//! One batch through the model: what its requests make of the logits, which of them end, and what follows where it
//! fails.

use kernels::{KernelError, Observer};

use super::{End, GenEvent, MAX_ACTIVE, Scheduler, Share};
use crate::error::{EngineError, guarded};
use crate::kv::cache::SequenceId;
use crate::kv::size::Rewind;
use crate::model::{Chunk, Model, Wanted};
use crate::speculate::DraftModel;

impl Scheduler {
    pub(super) fn run(
        &mut self,
        model: &mut Model,
        shares: &[Share],
        sink: &mut dyn FnMut(u64, GenEvent),
        observer: Option<Observer>,
    ) {
        let mut chunks = [Chunk { seq: SequenceId(0), tokens: &[], logits: Wanted::None }; MAX_ACTIVE];
        for (chunk, share) in chunks.iter_mut().zip(shares) {
            *chunk = self.active[share.index].chunk(share);
        }
        let n_ctx = model.n_ctx();
        let allowed = self.may_be_given_up(model, shares);
        model.allow_interrupts(allowed);
        let n_likeliest = self.n_likeliest(shares, model.spec().n_vocab);
        let (logits, tokenizer) = match model.forward_to_draw(&chunks[..shares.len()], n_likeliest, observer)
        {
            Ok(ran) => ran,
            Err(error) => return self.failed(model, shares, error, sink),
        };
        self.gave_up = false;
        let ids = shares.iter().map(|share| self.active[share.index].request.id);
        self.suspects.retain(|suspect| !ids.clone().any(|id| id == *suspect));
        let (mut ended, mut to_keep) = (Vec::new(), Vec::new());
        let mut row = 0;
        for share in shares {
            let active = &mut self.active[share.index];
            let (id, decoded) = (active.request.id, active.decodes());
            if share.n_tokens == active.n_to_keep() {
                to_keep.push(active.sequence);
            }
            active.n_done += share.n_tokens;
            if !decoded {
                let total = active.request.prompt.len();
                sink(id, GenEvent::Prefill { done: active.n_done.min(total), total });
            }
            if share.wanted == Wanted::Last {
                let end = guarded(|| Ok(active.take(share, (&logits, row), tokenizer, n_ctx, sink)));
                let end = end.unwrap_or_else(|error| Some(End::Failed(error)));
                ended.extend(end.map(|end| (share.index, end)));
                row += 1 + share.n_guesses;
            }
        }
        for sequence in to_keep {
            // what isn't kept is computed again
            _ = model.keep(sequence);
        }
        let Self { active, costs, draft_model, .. } = self;
        for active in shares.iter().map(|share| &active[share.index]).filter(|active| active.decodes()) {
            // the prompt can be gone back through now
            _ = model.let_pass(active.sequence);
        }
        let guess_cost = draft_model.as_ref().map_or(0.0, DraftModel::cost);
        for share in shares {
            active[share.index].settle(share, model, costs, guess_cost);
        }
        self.end(model, ended, sink);
    }

    /// How many of the likeliest tokens all samplers of a batch do with. None: some look at every token.
    fn n_likeliest(&self, shares: &[Share], n_vocab: usize) -> Option<usize> {
        let draws = shares.iter().filter(|share| share.wanted != Wanted::None);
        let mut most = 1;
        for share in draws {
            most = most.max(self.active[share.index].n_likeliest(share)?);
        }
        (most < n_vocab).then_some(most)
    }

    /// A run that is given up costs what it had computed, no more; never two in a row, so that whoever asks and takes
    /// back all the time holds up nobody. Where layers have a state, that is so only for sequences that are marked: all
    /// of a run have to be, and are where some of them read, which takes long, or have guesses anyway.
    fn may_be_given_up(&self, model: &mut Model, shares: &[Share]) -> bool {
        match model.rewind() {
            _ if self.gave_up => false,
            Rewind::Anywhere | Rewind::Near => true,
            Rewind::Nowhere => {
                let sequence = |share: &Share| self.active[share.index].sequence;
                let reads = shares.iter().any(|share| self.active[share.index].reads());
                let unmarked = || shares.iter().filter(|share| share.n_guesses == 0);
                let all = unmarked().next().is_none()
                    || reads && unmarked().all(|share| model.mark(sequence(share)));
                if !all {
                    unmarked().for_each(|share| model.unmark(sequence(share)));
                }
                all
            }
        }
    }

    /// A batch failed, or was given up. Of several requests it isn't known whose fault that was: each is tried alone.
    fn failed(
        &mut self,
        model: &mut Model,
        shares: &[Share],
        error: EngineError,
        sink: &mut dyn FnMut(u64, GenEvent),
    ) {
        let is_given_up = error.code() == KernelError::Interrupted.code();
        if is_given_up {
            self.gave_up = true;
            // how long it took says nothing of its rows
            (self.n_rows, self.n_decoded) = (0, None);
        }
        if let ([share], false) = (shares, is_given_up) {
            self.suspects.retain(|id| *id != self.active[share.index].request.id);
            return self.end(model, vec![(share.index, End::Failed(error))], sink);
        }
        for share in shares {
            let active = &mut self.active[share.index];
            model.unmark(active.sequence);
            active.n_done = model.len(active.sequence).unwrap_or(0).min(active.n_done);
            if !is_given_up {
                self.suspects.push(active.request.id);
            }
        }
    }

    /// Takes those that ended out of the active ones, in order.
    pub(super) fn end(
        &mut self,
        model: &mut Model,
        ended: Vec<(usize, End)>,
        sink: &mut dyn FnMut(u64, GenEvent),
    ) {
        let mut ended = ended;
        ended.sort_by_key(|(index, _)| *index);
        let mut leaving = Vec::with_capacity(ended.len());
        for (index, end) in ended.into_iter().rev() {
            leaving.push((self.active.remove(index), end));
        }
        for (active, end) in leaving.into_iter().rev() {
            match end {
                End::Finished(finish) => active.end(model, finish, sink),
                End::Failed(error) => {
                    let id = active.request.id;
                    active.release(model);
                    sink(id, GenEvent::Failed(error));
                }
            }
        }
    }
}
