//! Continuous batching: one batch per step for many requests, decode rows first, then a bounded number of prompt
//! rows.
//!
//! Deterministic and without a clock: equal submissions and steps give equal events. What a request samples never
//! depends on batch mates or drafts.

use std::collections::VecDeque;

use kernels::Observer;
use serde::{Deserialize, Serialize};

use crate::TokenId;
use crate::budget::ReasoningBudget;
use crate::constraint::ReplyConstraint;
use crate::error::{EngineError, Result, guarded};
use crate::kv::sequence_id::SequenceId;
use crate::kv::size::Rewind;
use crate::logprobs::{LogprobsReport, TokenLogprobs};
use crate::model::{GpuIncident, LogitsSelection, Model};
use crate::sampler::Sampling;
use crate::speculate::{
    DraftCandidate, DraftModel, DraftPlan, DraftSource, RunCosts, Script, Speculation, UndraftedRun,
};

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
    /// Identifies the request in events. Unique among requests in flight.
    pub id: u64,
    /// The whole prompt. Tokens that `sequence` already holds are not computed again.
    pub prompt: Vec<TokenId>,
    /// Sequence to continue and keep: its longest common prefix with `prompt` is reused, the rest dropped. `None`: a
    /// temporary sequence.
    pub sequence: Option<SequenceId>,
    /// How tokens are sampled.
    pub sampling: Sampling,
    /// `None`: until the model stops or the context is full.
    pub max_tokens: Option<usize>,
    /// Texts that end the answer without being part of it.
    pub stop: Vec<String>,
    /// Continues past end-of-generation tokens.
    pub ignore_eos: bool,
    /// Tokens that are reply markup, whatever their kind. Like control tokens they have no text.
    pub markup_tokens: Vec<TokenId>,
    /// `None`: unlimited reasoning.
    pub budget: Option<ReasoningBudget>,
    /// `None`: one token per step. The answer is the same either way.
    pub speculation: Option<Speculation>,
    /// What the answer consists of, for benchmarks.
    pub script: Script,
    /// The form of the reply.
    pub constraint: Option<ReplyConstraint>,
    /// Reports each token's probability and its alternatives. `None`: neither.
    pub logprobs: Option<LogprobsReport>,
    /// Tokens that an earlier run of this request sampled. They are emitted at once, and the answer continues after
    /// them as it would have.
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
    /// The caller cancelled it.
    Cancelled,
    /// The context is full.
    ContextFull,
    /// Cancelled because the caller's time limit passed.
    TimeUp,
}

/// Token counts of a finished request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GenerationStats {
    /// Why the answer ended.
    pub finish: Finish,
    /// Prompt tokens.
    pub n_prompt: usize,
    /// Sampled tokens, including the end-of-generation token.
    pub n_generated: usize,
    /// Prompt tokens that were not computed again.
    pub n_reused: usize,
    /// Drafted tokens that were checked, and how many were accepted.
    pub n_drafted: usize,
    /// Drafted tokens that were accepted.
    pub n_accepted: usize,
    /// The stop text that ended the answer: its place in `Request::stop`.
    pub stop_index: Option<usize>,
}

/// Progress of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum GenEvent {
    /// `done` of `total` prompt tokens are in the cache. Reused ones count as done.
    Prefill {
        /// Prompt tokens in the cache.
        done: usize,
        /// All prompt tokens.
        total: usize,
    },
    /// A token was sampled. `text` may be shown now: whole characters that cannot begin a stop text. It is often
    /// empty; the last token also brings what was held back. Control and markup tokens have no text:
    /// their text precedes them.
    Token {
        /// The sampled token.
        id: TokenId,
        /// Text to show now, often empty.
        text: String,
        /// Where the request wants it. Tokens of an earlier run have none.
        logprobs: Option<Box<TokenLogprobs>>,
    },
    /// The answer is complete.
    Done(GenerationStats),
    /// The request failed. No event follows.
    Failed(EngineError),
}

/// Requests in the queue. Far more than a person or a small office sends at once.
pub const MAX_PENDING: usize = 1024;

/// Requests that share a batch. More would make every answer crawl.
pub const MAX_ACTIVE: usize = 32;

/// Rows of a step that reads no prompt.
#[derive(Debug, Clone, Copy)]
struct DecodedRows {
    n_rows: usize,
    /// Drafts of the model's draft block, and what each should cost.
    drafts: (usize, f32),
}

/// Requests in flight.
#[derive(Default)]
pub struct Scheduler {
    pending: VecDeque<Request>,
    /// Ordered by admission.
    active: Vec<ActiveRequest>,
    /// Preempted requests, youngest first.
    paused: Vec<ActiveRequest>,
    /// Requests of a failed batch that have not yet run alone.
    suspects: Vec<u64>,
    /// Whether the last run was interrupted.
    was_interrupted: bool,
    /// `None`: `MAX_ACTIVE`.
    max_active: Option<usize>,
    cancelled: Vec<u64>,
    costs: RunCosts,
    prefill_budget: PrefillBudget,
    plan: DraftPlan,
    /// Slots of the step, reused between steps.
    slots: Vec<BatchSlot>,
    /// Rows of the last step.
    n_rows: usize,
    /// Rows of the last step, unless it read prompts or used a draft model.
    n_decoded: Option<DecodedRows>,
    draft_model: Option<DraftModel>,
}

impl Scheduler {
    /// Creates a scheduler without requests.
    pub fn new() -> Self {
        Self::default()
    }

    /// Queues a request. Its events come from `step`.
    ///
    /// Errors: `request.queue_full`.
    pub fn submit(&mut self, request: Request) -> Result<()> {
        if self.pending.len() >= MAX_PENDING {
            return Err(EngineError::new(
                "request.queue_full",
                format!("{MAX_PENDING} requests are already waiting"),
                "Wait until some of them are finished.",
            ));
        }
        self.pending.push_back(request);
        Ok(())
    }

    /// Ends a request at the next step, before another token. Unknown ids are ignored.
    pub fn cancel(&mut self, id: u64) {
        let admitted = self.active.iter().chain(&self.paused).map(|active| &active.request);
        let known = self.pending.iter().chain(admitted).any(|request| request.id == id);
        if known && !self.cancelled.contains(&id) {
            self.cancelled.push(id);
        }
    }

    /// Returns the number of requests that have not ended.
    pub fn n_in_flight(&self) -> usize {
        self.pending.len() + self.active.len() + self.paused.len()
    }

    /// Returns whether a request in flight uses this sequence.
    pub fn uses(&self, sequence: SequenceId) -> bool {
        let admitted = self.active.iter().chain(&self.paused).map(|active| &active.request);
        self.pending.iter().chain(admitted).any(|request| request.sequence == Some(sequence))
    }

    /// Returns the ids of queued requests, in order.
    pub fn pending_ids(&self) -> impl Iterator<Item = u64> {
        self.pending.iter().map(|request| request.id)
    }

    /// Limits how many requests share a batch, up to `MAX_ACTIVE`. Running ones stay.
    pub fn set_max_active(&mut self, n: usize) {
        self.max_active = Some(n.clamp(1, MAX_ACTIVE));
    }

    /// Records how long the last step took. Draft lengths and prompt chunks adapt to it. Without it, built-in figures
    /// apply and prompts are read in the largest chunks.
    pub fn record_step(&mut self, seconds: f32) {
        self.prefill_budget.record_step(self.n_rows, seconds);
        if let Some(DecodedRows { n_rows, drafts }) = self.n_decoded.take() {
            self.costs.record_drafted_step(n_rows, drafts, seconds);
        }
    }

    /// Returns how many prompt tokens may be read at once beside the running requests.
    pub fn prefill_rows(&self, max_rows: usize) -> usize {
        self.prefill_budget.rows(!self.active.is_empty(), max_rows)
    }

    /// Sets the model that drafts for requests, replacing an earlier one.
    ///
    /// Errors: `model.draft_vocabulary` if its tokens differ from `model`'s.
    pub fn draft_with(&mut self, draft_model: Model, model: &Model) -> Result<()> {
        self.draft_model = Some(DraftModel::new(draft_model, model)?);
        Ok(())
    }

    /// Returns the oldest unfetched GPU incident of the draft model.
    pub fn take_gpu_incident(&mut self) -> Option<GpuIncident> {
        self.draft_model.as_mut()?.take_gpu_incident()
    }

    /// Runs one batch. Returns whether work is left.
    pub fn step(&mut self, model: &mut Model, sink: &mut dyn FnMut(u64, GenEvent)) -> bool {
        self.step_observed(model, sink, None)
    }

    /// Runs one batch and calls `observer` after each step of the model's plan. The draft model is not observed.
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
        self.n_rows = slots.iter().map(|slot| slot.n_tokens + slot.n_drafted).sum();
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
                    stop_index: None,
                };
                sink(id, GenEvent::Done(done));
            } else if let Some(at) = self.active.iter().position(|a| a.request.id == id) {
                self.active.remove(at).end(model, Finish::Cancelled, sink);
            } else if let Some(at) = self.paused.iter().position(|a| a.request.id == id) {
                self.paused.remove(at).end(model, Finish::Cancelled, sink);
            }
        }
    }

    /// Admits queued requests in order, and gives them sequences.
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

    /// Adds drafted tokens to the slots as far as they pay. Beside prompts they do not, since those fill the batch.
    /// Returns the requests for which the draft model failed.
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
        let (mut n_by_model, mut n_by_block) = (0, 0);
        for (text, slot) in slots.iter().enumerate() {
            let active = &mut active[slot.index];
            // A rejected draft must not have seen more requantized chunks than the tokens that replace it.
            let max_tokens = model.n_until_requantize(active.sequence).saturating_sub(slot.n_tokens);
            match guarded(|| active.propose_draft((slot.n_tokens, max_tokens), model, draft_model.as_mut())) {
                Ok(chances) => {
                    plan.candidates.extend(chances.iter().map(|&chance| DraftCandidate { text, chance }));
                }
                Err(error) => failed.push((slot.index, RequestEnd::Failed(error))),
            }
            match active.n_asked() {
                Some((DraftSource::Block, n)) => n_by_block += n,
                Some((_, n)) => n_by_model += n,
                None => {}
            }
        }
        let n_free =
            model.max_rows().saturating_sub(n_rows).min(model.max_outputs().saturating_sub(slots.len()));
        let n_longest = n_rows + plan.candidates.len().min(n_free);
        let recomputes = slots.len() > 1 && model.rewind() == Rewind::Nowhere || !model.takes_back(n_longest);
        plan.choose(UndraftedRun { n_rows, n_texts: slots.len(), n_free, recomputes }, costs);
        for (slot, &n) in slots.iter_mut().zip(&plan.lengths) {
            let active = &mut active[slot.index];
            if n > 0 && model.set_mark(active.sequence) {
                active.add_draft_rows(slot, n);
            }
        }
        let n_rows = slots.iter().map(|slot| slot.n_tokens + slot.n_drafted).sum();
        let drafts = (n_by_block, model.draft_cost());
        self.n_decoded = (n_by_model == 0).then_some(DecodedRows { n_rows, drafts });
        failed
    }
}

#[cfg(test)]
pub(crate) mod tests;
