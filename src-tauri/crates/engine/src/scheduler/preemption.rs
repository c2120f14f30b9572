//! Preemption: when the cache is short of pages, the youngest request pauses until there are enough again.
//!
//! Its answer is the same; its context is computed again.

use super::prefill_budget::MIN_PREFILL_ROWS;
use super::{ActiveRequest, BatchSlot, GenEvent, Scheduler};
use crate::model::Model;
use crate::speculate::DEFAULT_DRAFT_TOKENS;

impl Scheduler {
    /// Returns whether the next step needs more pages than are free. The caller may then free idle sequences.
    pub fn is_short_of_pages(&self, model: &Model) -> bool {
        if !model.is_kv_bounded() {
            return false;
        }
        let mut slots = Vec::new();
        self.assign_rows(model, &mut slots);
        self.n_pages(model, &slots) > model.n_free_pages()
            || self.next_length().is_some_and(|n| !self.has_pages_for(model, n) && !self.active.is_empty())
    }

    /// Returns the length of the next waiting request.
    fn next_length(&self) -> Option<usize> {
        let paused = self.paused.last().map(|paused| paused.history.len());
        paused.or_else(|| self.pending.front().map(|request| request.prompt.len() + request.resumed.len()))
    }

    /// Returns whether enough pages are free for `n_tokens`, and for running requests to continue a while.
    pub(super) fn has_pages_for(&self, model: &Model, n_tokens: usize) -> bool {
        !model.is_kv_bounded() || model.pages_for(n_tokens) + self.active.len() <= model.n_free_pages()
    }

    /// Returns the pages that a step needs, with drafts.
    fn n_pages(&self, model: &Model, slots: &[BatchSlot]) -> usize {
        let of = |slot: &BatchSlot| {
            let active = &self.active[slot.index];
            let n_drafted =
                if active.drafter.is_some() && active.is_decoding() { DEFAULT_DRAFT_TOKENS } else { 0 };
            model.n_pages_to_grow(active.sequence, slot.n_tokens + n_drafted)
        };
        slots.iter().map(of).sum()
    }

    /// Requantizes contexts under pressure, then pauses the youngest requests until the step has its pages. Never
    /// pauses one whose context cannot be recomputed. A lone request continues: the cache holds any one context.
    pub(super) fn preempt(&mut self, model: &mut Model, slots: &mut Vec<BatchSlot>) {
        let lacks =
            |model: &Model| model.is_kv_bounded() && self.n_pages(model, slots) > model.n_free_pages();
        while lacks(model) && model.requantize_some() {}
        while model.is_kv_bounded()
            && self.active.len() > 1
            && self.n_pages(model, slots) > model.n_free_pages()
        {
            let can_go = |active: &ActiveRequest| !model.has_evicted(active.sequence);
            let Some(at) = self.active.iter().rposition(can_go) else { return };
            let mut youngest = self.active.remove(at);
            youngest.pause(model);
            self.paused.push(youngest);
            slots.retain(|slot| slot.index != at);
            slots.iter_mut().filter(|slot| slot.index > at).for_each(|slot| slot.index -= 1);
        }
    }

    /// Resumes paused requests when there are enough pages. Returns false if some still wait.
    pub(super) fn resume_paused(&mut self, model: &mut Model, sink: &mut dyn FnMut(u64, GenEvent)) -> bool {
        while let Some(paused) = self.paused.last() {
            let has_place = paused.request.sequence.is_some() || model.has_free_sequence();
            let has_pages_for =
                has_place && self.has_pages_for(model, paused.history.len() + MIN_PREFILL_ROWS);
            if !self.active.is_empty() && !has_pages_for {
                return false;
            }
            let Some(mut active) = self.paused.pop() else { return true };
            match active.resume_paused(model) {
                Ok(()) => self.active.push(active),
                Err(error) => sink(active.request.id, GenEvent::Failed(error)),
            }
        }
        true
    }
}

impl ActiveRequest {
    /// Releases its cache.
    fn pause(&mut self, model: &mut Model) {
        match self.request.sequence {
            None => model.free(self.sequence),
            Some(sequence) => {
                model.clear_mark(sequence);
                // A freed sequence holds nothing.
                _ = model.truncate(sequence, 0);
            }
        }
        self.n_done = 0;
    }

    fn resume_paused(&mut self, model: &mut Model) -> crate::Result<()> {
        if self.request.sequence.is_none() {
            self.sequence = model.new_sequence()?;
        }
        Ok(())
    }
}
