//! Runs one batch: samples from its logits, ends finished requests, and isolates the cause of a failure.

use kernels::{KernelError, Observer};

use super::{BatchSlot, GenEvent, MAX_ACTIVE, RequestEnd, Scheduler};
use crate::error::{EngineError, guarded};
use crate::kv::sequence_id::SequenceId;
use crate::kv::size::Rewind;
use crate::model::{Chunk, LogitsSelection, Model};
use crate::speculate::{DraftModel, DraftSource};

impl Scheduler {
    pub(super) fn run(
        &mut self,
        model: &mut Model,
        slots: &[BatchSlot],
        sink: &mut dyn FnMut(u64, GenEvent),
        observer: Option<Observer>,
    ) {
        let mut chunks =
            [Chunk { seq: SequenceId(0), tokens: &[], logits: LogitsSelection::None }; MAX_ACTIVE];
        for (chunk, slot) in chunks.iter_mut().zip(slots) {
            *chunk = self.active[slot.index].chunk(slot);
        }
        let n_ctx = model.n_ctx();
        let allowed = self.can_interrupt(model, slots);
        model.allow_interrupts(allowed);
        let n_top = self.n_top(slots, model.spec().n_vocab);
        let (logits, tokenizer) = match model.forward_to_draw(&chunks[..slots.len()], n_top, observer) {
            Ok(ran) => ran,
            Err(error) => return self.failed(model, slots, error, sink),
        };
        self.was_interrupted = false;
        let ids = slots.iter().map(|slot| self.active[slot.index].request.id);
        self.suspects.retain(|suspect| !ids.clone().any(|id| id == *suspect));
        let (mut ended, mut at_rewind_point) = (Vec::new(), Vec::new());
        let mut row = 0;
        for slot in slots {
            let active = &mut self.active[slot.index];
            let (id, decoded) = (active.request.id, active.is_decoding());
            if slot.n_tokens == active.n_until_rewind_point() {
                at_rewind_point.push(active.sequence);
            }
            active.n_done += slot.n_tokens;
            if !decoded {
                let total = active.request.prompt.len();
                sink(id, GenEvent::Prefill { done: active.n_done.min(total), total });
            }
            if slot.logits == LogitsSelection::Last {
                let end = guarded(|| Ok(active.take(slot, (&logits, row), tokenizer, n_ctx, sink)));
                let end = end.unwrap_or_else(|error| Some(RequestEnd::Failed(error)));
                ended.extend(end.map(|end| (slot.index, end)));
                row += 1 + slot.n_drafted;
            }
        }
        for sequence in at_rewind_point {
            // A position without a rewind point is computed again.
            _ = model.save_rewind_point(sequence);
        }
        let Self { active, costs, draft_model, .. } = self;
        for active in slots.iter().map(|slot| &active[slot.index]).filter(|active| active.is_decoding()) {
            // Rewind points cover the prompt from here on.
            _ = model.unpin_window(active.sequence);
        }
        let (of_model, of_block) = (draft_model.as_ref().map_or(0.0, DraftModel::cost), model.draft_cost());
        let of_block = costs.draft_cost(of_block);
        let draft_cost = |source: DraftSource| match source {
            DraftSource::Lookup => 0.0,
            DraftSource::Model => of_model,
            DraftSource::Block => of_block,
        };
        for slot in slots {
            active[slot.index].drop_rejected_drafts(slot, model, costs, &draft_cost);
        }
        self.end(model, ended, sink);
    }

    /// Returns how many of the most likely tokens all samplers of the batch need. `None`: some need all.
    fn n_top(&self, slots: &[BatchSlot], n_vocab: usize) -> Option<usize> {
        let draws = slots.iter().filter(|slot| slot.logits != LogitsSelection::None);
        let mut max_n_top = 1;
        for slot in draws {
            max_n_top = max_n_top.max(self.active[slot.index].n_top(slot)?);
        }
        (max_n_top < n_vocab).then_some(max_n_top)
    }

    /// Returns whether the run may be interrupted. An interrupt costs what the run had computed, so never two in a
    /// row: repeated cancellations must not starve others. Recurrent layers need a mark for every sequence of the
    /// run; marks are set if some read prompts, which takes long, or have drafts anyway.
    fn can_interrupt(&self, model: &mut Model, slots: &[BatchSlot]) -> bool {
        match model.rewind() {
            _ if self.was_interrupted => false,
            Rewind::Anywhere | Rewind::Near => true,
            Rewind::Nowhere => {
                let sequence = |slot: &BatchSlot| self.active[slot.index].sequence;
                let reads = slots.iter().any(|slot| self.active[slot.index].is_prefilling());
                let unmarked = || slots.iter().filter(|slot| slot.n_drafted == 0);
                let all = unmarked().next().is_none()
                    || reads && unmarked().all(|slot| model.set_mark(sequence(slot)));
                if !all {
                    unmarked().for_each(|slot| model.clear_mark(sequence(slot)));
                }
                all
            }
        }
    }

    /// Handles a failed or interrupted batch. If it had several requests, each then runs alone to find the cause.
    fn failed(
        &mut self,
        model: &mut Model,
        slots: &[BatchSlot],
        error: EngineError,
        sink: &mut dyn FnMut(u64, GenEvent),
    ) {
        let is_interrupted = error.code() == KernelError::Interrupted.code();
        if is_interrupted {
            self.was_interrupted = true;
            // Its duration says nothing about its rows.
            (self.n_rows, self.n_decoded) = (0, None);
        }
        if let ([slot], false) = (slots, is_interrupted) {
            self.suspects.retain(|id| *id != self.active[slot.index].request.id);
            return self.end(model, vec![(slot.index, RequestEnd::Failed(error))], sink);
        }
        for slot in slots {
            let active = &mut self.active[slot.index];
            model.clear_mark(active.sequence);
            active.n_done = model.len(active.sequence).unwrap_or(0).min(active.n_done);
            if !is_interrupted {
                self.suspects.push(active.request.id);
            }
        }
    }

    /// Removes ended requests from the active ones, in order.
    pub(super) fn end(
        &mut self,
        model: &mut Model,
        ended: Vec<(usize, RequestEnd)>,
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
                RequestEnd::Finished(finish) => active.end(model, finish, sink),
                RequestEnd::Failed(error) => {
                    let id = active.request.id;
                    active.release(model);
                    sink(id, GenEvent::Failed(error));
                }
            }
        }
    }
}
