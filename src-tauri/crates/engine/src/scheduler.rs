//! Many requests, one batch per step: decode rows first, then prompt chunks, bounded.
//!
//! Pure and deterministic: the same submissions and steps give the same events. No clock: callers that
//! want timings read their own at each event. What a request samples does not depend on its batch mates, nor on what is
//! guessed ahead: guesses are checked by drawing at every position as if there were none.

use std::collections::VecDeque;

use kernels::Observer;
use serde::{Deserialize, Serialize};

use crate::TokenId;
use crate::budget::ReasoningBudget;
use crate::error::{EngineError, Result, guarded};
use crate::kv::sequence_id::SequenceId;
use crate::kv::size::Rewind;
use crate::model::{GpuIncident, LogitsSelection, Model};
use crate::sampler::Sampling;
use crate::speculate::{DraftCandidate, DraftModel, DraftPlan, RunCosts, Speculation, UndraftedRun};

mod active;
mod batching;
mod preemption;
mod prefill_budget;
mod run;

use active::{ActiveRequest, BatchSlot, RequestEnd};
use prefill_budget::PrefillBudget;

/// One prompt to answer.
#[derive(Debug, Clone)]
pub struct Request {
    /// The caller's name for it; events carry it. Unique among requests in flight.
    pub id: u64,
    /// The whole prompt, as ids. What `sequence` already holds of it is not computed again.
    pub prompt: Vec<TokenId>,
    /// A sequence to continue and to keep afterwards: its longest common prefix with `prompt` is reused,
    /// the rest of it dropped. None: a sequence is made, and freed at the end.
    pub sequence: Option<SequenceId>,
    pub sampling: Sampling,
    /// None: until the model stops or the context is full.
    pub max_tokens: Option<usize>,
    /// Texts that end the answer; they are not part of it.
    pub stop: Vec<String>,
    /// Go on past end-of-generation tokens.
    pub ignore_eos: bool,
    /// Tokens that are markup of the reply whatever their kind: like control tokens they have no text.
    pub markup_tokens: Vec<TokenId>,
    /// None: the model thinks as long as it likes.
    pub budget: Option<ReasoningBudget>,
    /// None: one token a step. The answer is the same.
    pub speculation: Option<Speculation>,
    /// Tokens that come in place of the first sampled ones; for measuring.
    pub script: Vec<TokenId>,
    /// Tokens of the answer that an earlier run of this request sampled: told again at once, then the answer goes on
    /// after them as it would have there.
    pub resumed: Vec<TokenId>,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The model ended it, or a stop text appeared.
    Stop,
    /// `max_tokens` were generated.
    Length,
    Cancelled,
    /// The context holds no further token.
    ContextFull,
    /// Cancelled by whoever asked, who had no more time for it.
    TimeUp,
}

/// What a finished request did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GenerationStats {
    pub finish: Finish,
    /// Tokens of the prompt.
    pub n_prompt: usize,
    /// Tokens sampled, the end-of-generation token included.
    pub n_generated: usize,
    /// Tokens of the prompt that were not computed again.
    pub n_reused: usize,
    /// DraftSource that were checked, and those of them that came true.
    pub n_drafted: usize,
    pub n_accepted: usize,
}

/// What happened to a request.
#[derive(Debug, Clone, PartialEq)]
pub enum GenEvent {
    /// `done` of `total` prompt tokens stand in the cache (reused ones count as done).
    Prefill {
        done: usize,
        total: usize,
    },
    /// A token was sampled. `text` is what may be shown now: whole characters, nothing that may yet turn out
    /// to begin a stop text; often empty, and with the last token also what was held back before it. A control
    /// token or mark has no text of its own: what comes with it stands before it.
    Token {
        id: TokenId,
        text: String,
    },
    Done(GenerationStats),
    Failed(EngineError),
}

/// Requests that may wait; far more than a person or a small office sends at once.
pub const MAX_PENDING: usize = 1024;

/// Requests that share a batch; the rest wait their turn. More would make every answer crawl.
pub const MAX_ACTIVE: usize = 32;

/// Requests in flight.
#[derive(Default)]
pub struct Scheduler {
    pending: VecDeque<Request>,
    /// In order of admission.
    active: Vec<ActiveRequest>,
    /// Gave way to others; the youngest first.
    paused: Vec<ActiveRequest>,
    /// In a batch that failed, and not yet seen to run alone.
    suspects: Vec<u64>,
    /// The last run was given up.
    was_interrupted: bool,
    /// None: `MAX_ACTIVE`.
    max_active: Option<usize>,
    cancelled: Vec<u64>,
    costs: RunCosts,
    prefill_budget: PrefillBudget,
    plan: DraftPlan,
    /// Who takes part in the step; kept for the next one.
    slots: Vec<BatchSlot>,
    /// Rows of the last step.
    n_rows: usize,
    /// Rows of the last step, unless prompts were read or a draft model ran.
    n_decoded: Option<usize>,
    draft_model: Option<DraftModel>,
}

impl Scheduler {
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a request; its events come from `step`. Error: too many are waiting.
    pub fn submit(&mut self, request: Request) -> Result<()> {
        if self.pending.len() >= MAX_PENDING {
            return Err(EngineError::new(
                "request.queue_full",
                format!("{MAX_PENDING} requests are waiting already"),
                "Wait until some of them are answered.",
            ));
        }
        self.pending.push_back(request);
        Ok(())
    }

    /// Ends a request at the next step, before another token of it. Unknown ids are ignored.
    pub fn cancel(&mut self, id: u64) {
        let admitted = self.active.iter().chain(&self.paused).map(|active| &active.request);
        let known = self.pending.iter().chain(admitted).any(|request| request.id == id);
        if known && !self.cancelled.contains(&id) {
            self.cancelled.push(id);
        }
    }

    /// Requests that have not ended.
    pub fn n_in_flight(&self) -> usize {
        self.pending.len() + self.active.len() + self.paused.len()
    }

    /// A request in flight was given this sequence.
    pub fn uses(&self, sequence: SequenceId) -> bool {
        let admitted = self.active.iter().chain(&self.paused).map(|active| &active.request);
        self.pending.iter().chain(admitted).any(|request| request.sequence == Some(sequence))
    }

    /// Requests that have not begun, in the order in which they will.
    pub fn pending_ids(&self) -> impl Iterator<Item = u64> {
        self.pending.iter().map(|request| request.id)
    }

    /// How many requests share a batch from now on, at most `MAX_ACTIVE`; those that run already stay.
    pub fn set_max_active(&mut self, n: usize) {
        self.max_active = Some(n.clamp(1, MAX_ACTIVE));
    }

    /// How long the last step record_step: what a row costs on this machine is learned from it, and with that how long drafts
    /// may be, and how much of a prompt is read at once. Where it is never said, figures of another machine hold, and
    /// prompts are read in chunks as large as there are.
    pub fn record_step(&mut self, seconds: f32) {
        self.prefill_budget.record_step(self.n_rows, seconds);
        if let Some(n_rows) = self.n_decoded.take() {
            self.costs.record_step(n_rows, seconds);
        }
    }

    /// Tokens of a prompt that may be read at once beside what runs here.
    pub fn prefill_rows(&self, max_rows: usize) -> usize {
        self.prefill_budget.rows(!self.active.is_empty(), max_rows)
    }

    /// The model that guesses for requests that want that, in place of an earlier one. Error `model.draft_vocabulary`: its
    /// tokens are not `model`'s.
    pub fn draft_with(&mut self, draft_model: Model, model: &Model) -> Result<()> {
        self.draft_model = Some(DraftModel::new(draft_model, model)?);
        Ok(())
    }

    /// As `Model::take_gpu_incident`, of the draft model.
    pub fn take_gpu_incident(&mut self) -> Option<GpuIncident> {
        self.draft_model.as_mut()?.take_gpu_incident()
    }

    /// One batch through the model; returns whether work is left.
    pub fn step(&mut self, model: &mut Model, sink: &mut dyn FnMut(u64, GenEvent)) -> bool {
        self.step_observed(model, sink, None)
    }

    /// As `step`, telling `observer` of each step of the model's plan after it ran; of a draft model's it isn't told.
    pub fn step_observed(
        &mut self,
        model: &mut Model,
        sink: &mut dyn FnMut(u64, GenEvent),
        observer: Option<Observer>,
    ) -> bool {
        self.end_cancelled(model, sink);
        self.admit(model, sink);
        let mut slots = std::mem::take(&mut self.slots);
        self.assign_rows(model, &mut slots);
        self.preempt(model, &mut slots);
        let failed = self.draft(model, &mut slots);
        self.n_rows = slots.iter().map(|slot| slot.n_tokens + slot.n_guesses).sum();
        if !failed.is_empty() {
            self.end(model, failed, sink);
        } else if !slots.is_empty() {
            self.run(model, &slots, sink, observer);
        }
        self.slots = slots;
        self.n_in_flight() > 0
    }

    fn end_cancelled(&mut self, model: &mut Model, sink: &mut dyn FnMut(u64, GenEvent)) {
        for id in std::mem::take(&mut self.cancelled) {
            if let Some(at) = self.pending.iter().position(|r| r.id == id) {
                let n_prompt = self.pending.remove(at).map_or(0, |r| r.prompt.len());
                let done = GenerationStats {
                    finish: Finish::Cancelled,
                    n_prompt,
                    n_generated: 0,
                    n_reused: 0,
                    n_drafted: 0,
                    n_accepted: 0,
                };
                sink(id, GenEvent::Done(done));
            } else if let Some(at) = self.active.iter().position(|a| a.request.id == id) {
                self.active.remove(at).end(model, Finish::Cancelled, sink);
            } else if let Some(at) = self.paused.iter().position(|a| a.request.id == id) {
                self.paused.remove(at).end(model, Finish::Cancelled, sink);
            }
        }
    }

    /// Gives waiting requests their sequences, first come, first served.
    fn admit(&mut self, model: &mut Model, sink: &mut dyn FnMut(u64, GenEvent)) {
        let max_active = self.max_active.unwrap_or(MAX_ACTIVE).min(model.max_rows());
        while self.resume_paused(model, sink) && self.active.len() < max_active {
            let Some(request) = self.pending.front() else { return };
            let has_place = request.sequence.is_some() || model.has_free_sequence();
            let n_tokens = request.prompt.len() + request.resumed.len();
            let fits = has_place && self.has_pages_for(model, n_tokens);
            let must_wait = !fits && !self.active.is_empty();
            let busy = request.sequence.is_some_and(|seq| self.active.iter().any(|a| a.sequence == seq));
            if must_wait || busy {
                return;
            }
            let Some(request) = self.pending.pop_front() else { return };
            let id = request.id;
            match guarded(|| ActiveRequest::new(request, model)) {
                Ok(mut active) => {
                    self.place_on_idlest_replica(model, active.sequence);
                    let (done, total) = (active.n_done, active.request.prompt.len());
                    sink(id, GenEvent::Prefill { done: done.min(total), total });
                    let end = guarded(|| Ok(active.replay_resumed(model.tokenizer(), model.n_ctx(), sink)));
                    let end = end.unwrap_or_else(|error| Some(RequestEnd::Failed(error)));
                    self.active.push(active);
                    if let Some(end) = end {
                        self.end(model, vec![(self.active.len() - 1, end)], sink);
                    }
                }
                Err(error) => sink(id, GenEvent::Failed(error)),
            }
        }
    }

    /// Adds guesses to the slots as far as they pay. Beside prompts they don't: those fill the batch. Returns requests
    /// that the draft model failed on.
    fn draft(&mut self, model: &mut Model, slots: &mut [BatchSlot]) -> Vec<(usize, RequestEnd)> {
        let Self { active, plan, costs, draft_model, .. } = self;
        if let Some(draft_model) = draft_model {
            draft_model.retain(|id| active.iter().any(|active| active.request.id == id));
        }
        let mut failed = Vec::new();
        plan.clear(slots.len());
        self.n_decoded = None;
        if slots.iter().any(|slot| !active[slot.index].is_decoding() || slot.logits == LogitsSelection::None)
        {
            return failed;
        }
        let n_rows: usize = slots.iter().map(|slot| slot.n_tokens).sum();
        let mut n_by_model = 0;
        for (text, slot) in slots.iter().enumerate() {
            let active = &mut active[slot.index];
            // what is taken back must not have seen more that has aged than what comes in its place
            let n_most = model.n_until_requantize(active.sequence).saturating_sub(slot.n_tokens);
            match guarded(|| active.guess((slot.n_tokens, n_most), model.n_ctx(), draft_model.as_mut())) {
                Ok(chances) => {
                    plan.candidates.extend(chances.iter().map(|&chance| DraftCandidate { text, chance }));
                }
                Err(error) => failed.push((slot.index, RequestEnd::Failed(error))),
            }
            n_by_model += active.n_drafted_by_model();
        }
        let n_free =
            model.max_rows().saturating_sub(n_rows).min(model.max_outputs().saturating_sub(slots.len()));
        let recomputes = model.rewind() == Rewind::Nowhere;
        plan.choose(UndraftedRun { n_rows, n_texts: slots.len(), n_free, recomputes }, costs);
        for (slot, &n) in slots.iter_mut().zip(&plan.lengths) {
            let active = &mut active[slot.index];
            if n > 0 && model.mark(active.sequence) {
                active.add_guesses(slot, n);
            }
        }
        let n_rows = slots.iter().map(|slot| slot.n_tokens + slot.n_guesses).sum();
        self.n_decoded = (n_by_model == 0).then_some(n_rows);
        failed
    }
}

#[cfg(test)]
pub(crate) mod tests;
