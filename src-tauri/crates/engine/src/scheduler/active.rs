//! A request in flight: what is computed of it, and how its tokens are sampled.

use super::prefill_budget::MIN_PREFILL_ROWS;
use super::{Finish, GenEvent, GenerationStats, Request};
use crate::TokenId;
use crate::budget::BudgetWatch;
use crate::constraint::ReplyConstraint;
use crate::error::{EngineError, Result};
use crate::kv::cache::context_full;
use crate::kv::sequence_id::SequenceId;
use crate::kv::size::{Rewind, WINDOW_REWIND_TOKENS};
use crate::logprobs::{self, ProbabilityStage, TokenLogprobs};
use crate::model::{Chunk, Logits, LogitsRow, LogitsSelection, Model, nan_logits};
use crate::sampler::SamplerChain;
use crate::speculate::{
    BlockText, DraftModel, DraftSource, Drafter, PendingHidden, RunCosts, propose_by_assistant,
    propose_by_block,
};
use crate::stop::StopStrings;
use crate::tokenizer::{DetokenizeStream, Tokenizer};
use crate::vision::is_image_token;

mod constrained;

use constrained::{nothing_left, sample_constrained};

/// Distance of rewind points in a long prompt.
const REWIND_POINT_INTERVAL_TOKENS: usize = 1024;

/// A rewind point this far before the prompt's end: the tokens that open an answer often differ in the next prompt.
const ANSWER_OPENING_TOKENS: usize = 16;

/// A request with this stop text panics at its first token.
#[cfg(test)]
pub(super) const PANICS: &str = "panics";

/// A request with a sequence.
pub(super) struct ActiveRequest {
    pub request: Request,
    pub sequence: SequenceId,
    /// The prompt, then every sampled token. The sequence holds the first `n_done` of them.
    pub history: Vec<TokenId>,
    pub n_done: usize,
    rewind: Rewind,
    n_reused: usize,
    n_generated: usize,
    chain: SamplerChain,
    /// `None` without a tokenizer: then there are ids but no text.
    stream: Option<DetokenizeStream>,
    stops: StopStrings,
    budget: Option<BudgetWatch>,
    constraint: Option<ReplyConstraint>,
    /// `None` without speculation.
    pub drafter: Option<Drafter>,
    /// Tokens of the next batch: those of `history` from `n_done` on, then drafted ones.
    rows: Vec<TokenId>,
    pub n_drafted: usize,
    pub n_accepted: usize,
    /// Accepted tokens of the last draft.
    n_right: usize,
    /// What a draft block needs to know of tokens that the sequence gave back.
    pending: PendingHidden,
}

/// Returns the length of the common prefix.
fn common<'a>(held: &[TokenId], text: impl IntoIterator<Item = &'a TokenId>) -> usize {
    held.iter().zip(text).take_while(|(a, b)| a == b).count()
}

/// Rows of one request in a batch.
pub(super) struct BatchSlot {
    pub index: usize,
    /// Tokens of its text.
    pub n_tokens: usize,
    /// Drafted tokens after them.
    pub n_drafted: usize,
    pub logits: LogitsSelection,
}

/// How a request ends.
pub(super) enum RequestEnd {
    Finished(Finish),
    Failed(EngineError),
}

impl ActiveRequest {
    /// Checks the request against the model, and finds its sequence and the part of the prompt that it holds.
    pub fn new(mut request: Request, model: &mut Model) -> Result<Self> {
        model.check_generates()?;
        let n_prompt = request.prompt.len();
        if n_prompt == 0 {
            return Err(EngineError::new(
                "request.empty_prompt",
                "the prompt has no tokens",
                "Send some text.",
            ));
        }
        if n_prompt > model.n_ctx() {
            return Err(context_full(0, n_prompt, model.n_ctx()));
        }
        // Held tokens may be evicted ones, which no vocabulary has.
        let n_held = match request.sequence {
            None => 0,
            Some(sequence) => common(model.tokens(sequence)?, &request.prompt),
        };
        model.check_tokens(&request.prompt[n_held..])?;
        model.check_tokens(&request.script.tokens)?;
        model.check_tokens(&request.resumed)?;
        for bias in &request.sampling.logit_bias {
            model.check_tokens(&[bias.token])?;
        }
        let chain = SamplerChain::after_prompt(&request.sampling, n_prompt, model.spec().n_vocab);
        let stream = model.tokenizer().map(Tokenizer::stream);
        let (stops, budget) = (StopStrings::new(&request.stop), request.budget.clone().map(BudgetWatch::new));
        let constraint = request.constraint.take();
        let drafter = request.speculation.map(|how| Drafter::new(how, model.n_ctx(), &request.prompt));
        let history = request.prompt.clone();
        // Last, so that no failure leaves a sequence behind.
        let (sequence, n_reused) = match request.sequence {
            None => (model.new_sequence()?, 0),
            Some(sequence) => {
                let held = model.tokens(sequence)?;
                let text = request.prompt.iter().chain(&request.resumed);
                let n_common = common(held, text);
                // The last token is always computed: its logits are needed.
                let n_text = n_prompt + request.resumed.len();
                let n_reused = model.truncate(sequence, n_common.min(n_text - 1))?;
                model.save_rewind_point(sequence)?;
                model.pin_window(sequence)?;
                (sequence, n_reused)
            }
        };
        Ok(Self {
            sequence,
            history,
            n_done: n_reused,
            rewind: model.rewind(),
            n_reused,
            n_generated: 0,
            chain,
            stream,
            stops,
            budget,
            constraint,
            drafter,
            rows: Vec::new(),
            n_drafted: 0,
            n_accepted: 0,
            n_right: 0,
            pending: PendingHidden::default(),
            request,
        })
    }

    /// Emits the tokens of an earlier run. Returns whether they end the answer.
    pub fn replay_resumed(
        &mut self,
        tokenizer: Option<&Tokenizer>,
        n_ctx: usize,
        sink: &mut dyn FnMut(u64, GenEvent),
    ) -> Option<RequestEnd> {
        for token in std::mem::take(&mut self.request.resumed) {
            if self.budget.as_mut().and_then(BudgetWatch::forced).is_none() {
                self.chain.skip();
            }
            if let Err(error) = self.constrain_forced(token, tokenizer) {
                return Some(RequestEnd::Failed(error));
            }
            let end = self.accept(token, None, tokenizer, n_ctx, sink);
            if end.is_some() {
                return end;
            }
        }
        None
    }

    /// Returns whether the whole prompt is in the cache.
    pub fn is_decoding(&self) -> bool {
        self.n_done >= self.request.prompt.len()
    }

    /// Returns whether much of its text must be computed before the next token.
    pub fn is_prefilling(&self) -> bool {
        !self.is_decoding() || self.history.len() - self.n_done > MIN_PREFILL_ROWS
    }

    /// Returns the tokens until the next rewind point: before the reply, and at intervals in a long prompt.
    pub fn n_until_rewind_point(&self) -> usize {
        let (n_prompt, n_done) = (self.request.prompt.len(), self.n_done);
        let before_reply = match self.rewind {
            _ if self.request.sequence.is_none() => return usize::MAX,
            Rewind::Anywhere => return usize::MAX,
            Rewind::Near => [n_prompt, n_prompt],
            // The last token is computed again when the same prompt returns.
            Rewind::Nowhere => [n_prompt.saturating_sub(ANSWER_OPENING_TOKENS), n_prompt - 1],
        };
        let next = (n_done / REWIND_POINT_INTERVAL_TOKENS + 1) * REWIND_POINT_INTERVAL_TOKENS;
        let stops = before_reply.into_iter().chain(Some(next).filter(|&next| next < n_prompt));
        stops.filter(|&stop| stop > n_done).min().map_or(usize::MAX, |stop| stop - n_done)
    }

    /// Drafts what follows `n_tokens`, bounded by `max_tokens` and by how many could be accepted. Empty without
    /// speculation.
    ///
    /// Errors: those of the draft model or the draft block.
    pub fn propose_draft(
        &mut self,
        (n_tokens, max_tokens): (usize, usize),
        model: &mut Model,
        draft_model: Option<&mut DraftModel>,
    ) -> Result<&[f32]> {
        let n_left = self.request.max_tokens.map_or(usize::MAX, |n| n.saturating_sub(self.n_generated + 1));
        let n_free = model.n_ctx().saturating_sub(self.history.len());
        let n = n_left.min(n_free).min(max_tokens).min(WINDOW_REWIND_TOKENS.saturating_sub(n_tokens));
        let Self { drafter, constraint, request, sequence, history, pending, n_generated, .. } = self;
        let Some(drafter) = drafter else { return Ok(&[]) };
        if drafter.propose(history, n) {
            match (drafter.speculation.source, draft_model) {
                (DraftSource::Block, _) => {
                    let script = (&request.script, *n_generated);
                    let text = BlockText { sequence: *sequence, history, pending, script };
                    match model.has_assistant() {
                        true => propose_by_assistant(model, text, n, drafter)?,
                        false => propose_by_block(model, text, n, drafter)?,
                    }
                }
                (DraftSource::Model, Some(draft_model)) => {
                    draft_model.propose(request.id, history, n, drafter)?;
                }
                (DraftSource::Lookup | DraftSource::Model, _) => {}
            }
        }
        // Images in the text are never drafted.
        let n_words = drafter.draft().iter().take_while(|token| !is_image_token(**token)).count();
        let chances = &drafter.chances()[..n_words.min(drafter.chances().len())];
        match constraint {
            None => Ok(chances),
            Some(constraint) => Ok(&chances[..constraint.n_permitted(drafter.draft())?.min(chances.len())]),
        }
    }

    /// Returns the tokens that the draft model or the draft block drafted, checked or not, and which of the two.
    pub fn n_asked(&self) -> Option<(DraftSource, usize)> {
        let drafter = self.drafter.as_ref()?;
        Some((drafter.speculation.source, drafter.n_asked())).filter(|(_, n)| *n > 0)
    }

    /// Adds the first `n` drafted tokens to its slot.
    pub fn add_draft_rows(&mut self, slot: &mut BatchSlot, n: usize) {
        let draft = self.drafter.as_ref().map_or(&[][..], Drafter::draft);
        self.rows.clear();
        self.rows.extend_from_slice(&self.history[self.n_done..self.n_done + slot.n_tokens]);
        self.rows.extend_from_slice(&draft[..n]);
        slot.n_drafted = n;
        self.n_drafted += n;
    }

    pub fn chunk(&self, slot: &BatchSlot) -> Chunk<'_> {
        let seq = self.sequence;
        match slot.n_drafted {
            0 => {
                let tokens = &self.history[self.n_done..self.n_done + slot.n_tokens];
                Chunk { seq, tokens, logits: slot.logits }
            }
            n => Chunk { seq, tokens: &self.rows, logits: LogitsSelection::Tail(n + 1) },
        }
    }

    /// Returns how many of the most likely tokens its sampler needs in any row of the slot. `None`: all.
    pub fn n_top(&self, slot: &BatchSlot) -> Option<usize> {
        if self.request.logprobs.is_some() || self.constraint.is_some() {
            return None;
        }
        self.chain.n_top(self.history.len() + slot.n_drafted)
    }

    /// Samples until a drafted token is rejected, and one token more. The slot's first row of logits is `row`.
    /// Afterwards `n_done` counts the accepted tokens of the sequence.
    pub fn take(
        &mut self,
        slot: &BatchSlot,
        (logits, row): (&Logits, usize),
        tokenizer: Option<&Tokenizer>,
        n_ctx: usize,
        sink: &mut dyn FnMut(u64, GenEvent),
    ) -> Option<RequestEnd> {
        self.n_right = 0;
        let from = self.n_done - slot.n_tokens;
        let end = self.take_rows(slot, (logits, row), tokenizer, n_ctx, sink);
        self.pending.record((from, slot.n_tokens), self.n_right, (logits, row));
        end
    }

    fn take_rows(
        &mut self,
        slot: &BatchSlot,
        (logits, row): (&Logits, usize),
        tokenizer: Option<&Tokenizer>,
        n_ctx: usize,
        sink: &mut dyn FnMut(u64, GenEvent),
    ) -> Option<RequestEnd> {
        for at in 0..=slot.n_drafted {
            let end = match logits.candidates(row + at) {
                Ok(row) => self.draw(row, tokenizer, n_ctx, sink),
                Err(error) => Some(RequestEnd::Failed(error)),
            };
            if end.is_some() {
                return end;
            }
            let draft = self.rows.get(slot.n_tokens + at).filter(|_| at < slot.n_drafted);
            if draft != self.history.last() {
                return None;
            }
            self.n_done += 1;
            self.n_accepted += 1;
            self.n_right += 1;
        }
        None
    }

    /// Removes rejected tokens from the sequence, and records whether the draft model or the draft block paid off.
    /// `draft_cost` returns what a draft of either costs.
    pub fn drop_rejected_drafts(
        &mut self,
        slot: &BatchSlot,
        model: &mut Model,
        costs: &RunCosts,
        draft_cost: &dyn Fn(DraftSource) -> f32,
    ) {
        let asked = self.n_asked();
        if let (Some(drafter), Some((source, n_asked))) = (&mut self.drafter, asked) {
            // Tokens that are computed again count too: without drafts there would be none.
            let cost = costs.cost(slot.n_tokens + slot.n_drafted);
            drafter.record_payoff(1 + self.n_right, cost + n_asked as f32 * draft_cost(source));
        }
        if slot.n_drafted > 0 {
            let held = model.take_back(self.sequence, self.n_done);
            self.n_done = held.expect("the sequence has just run");
        }
        model.clear_mark(self.sequence);
    }

    /// Samples the next token. Returns whether it was the last.
    fn draw(
        &mut self,
        row: LogitsRow,
        tokenizer: Option<&Tokenizer>,
        n_ctx: usize,
        sink: &mut dyn FnMut(u64, GenEvent),
    ) -> Option<RequestEnd> {
        if self.request.max_tokens == Some(0) {
            return Some(RequestEnd::Finished(Finish::Length));
        }
        let drawn = match self.budget.as_mut().and_then(BudgetWatch::forced) {
            Some(forced) => self.constrain_forced(forced, tokenizer).map(|()| forced),
            None => self.sample(row, tokenizer),
        };
        let drawn = match drawn {
            Ok(drawn) => drawn,
            Err(error) => return Some(RequestEnd::Failed(error)),
        };
        let token = self.request.script.tokens.get(self.n_generated).copied().unwrap_or(drawn);
        let logprobs = match (self.request.logprobs, row) {
            (Some(report), LogitsRow::Whole(logits)) => Some(Box::new(match report.stage {
                ProbabilityStage::BeforeSampling => logprobs::at(logits, token, report.n_top),
                ProbabilityStage::AfterSampling => logprobs::after_sampling(&self.chain, token, report.n_top),
            })),
            (Some(_) | None, LogitsRow::Whole(_) | LogitsRow::Likeliest(_)) => None,
        };
        self.accept(token, logprobs, tokenizer, n_ctx, sink)
    }

    fn sample(&mut self, row: LogitsRow, tokenizer: Option<&Tokenizer>) -> Result<TokenId> {
        let drawn = match (&mut self.constraint, row) {
            (Some(constraint), LogitsRow::Whole(logits)) => {
                return sample_constrained(constraint, &mut self.chain, logits, &self.history, tokenizer);
            }
            (_, LogitsRow::Whole(logits)) => self.chain.sample(logits, &self.history),
            (_, LogitsRow::Likeliest(likeliest)) => self.chain.sample_top(likeliest, &self.history),
        };
        drawn.ok_or_else(|| match self.request.sampling.logit_bias.is_empty() {
            true => nan_logits(),
            false => nothing_left(),
        })
    }

    /// Tells the constraint of a token that was not sampled.
    fn constrain_forced(&mut self, token: TokenId, tokenizer: Option<&Tokenizer>) -> Result<()> {
        let Some(constraint) = &mut self.constraint else { return Ok(()) };
        let text = tokenizer.map_or_else(String::new, |tokenizer| tokenizer.decode(&[token]));
        match constraint.accept_forced(token, &text)? {
            true => Ok(()),
            false => Err(nothing_left()),
        }
    }

    /// Takes the next token: emits its text, and returns whether it was the last.
    fn accept(
        &mut self,
        token: TokenId,
        logprobs: Option<Box<TokenLogprobs>>,
        tokenizer: Option<&Tokenizer>,
        n_ctx: usize,
        sink: &mut dyn FnMut(u64, GenEvent),
    ) -> Option<RequestEnd> {
        #[cfg(test)]
        assert!(self.request.stop.iter().all(|stop| stop != PANICS), "a stop text that panics");
        self.history.push(token);
        self.n_generated += 1;
        if let Some(drafter) = &mut self.drafter {
            drafter.observe(&self.history);
        }
        if let (Some(budget), Some(tokenizer)) = (&mut self.budget, tokenizer) {
            budget.observe(&tokenizer.decode(&[token]));
        }
        let mut text = String::new();
        let ends = !self.request.ignore_eos || self.constraint.is_some();
        let is_end = ends && tokenizer.is_some_and(|t| t.is_eog(token));
        let is_complete = self.constraint.as_ref().is_some_and(|it| it.is_over() && !it.has_end());
        let is_mark =
            self.request.markup_tokens.contains(&token) || tokenizer.is_some_and(|t| t.is_control(token));
        if is_mark {
            self.flush(&mut text);
        }
        let stopped = !is_end
            && !is_mark
            && self.stream.as_mut().is_some_and(|s| self.stops.push(s.push(token), &mut text));
        let finish = if is_end || stopped || is_complete {
            Some(Finish::Stop)
        } else if self.request.max_tokens == Some(self.n_generated) {
            Some(Finish::Length)
        } else if self.history.len() > n_ctx {
            Some(Finish::ContextFull)
        } else {
            None
        };
        if finish.is_some() && !stopped {
            self.flush(&mut text);
        }
        sink(self.request.id, GenEvent::Token { id: token, text, logprobs });
        finish.map(RequestEnd::Finished)
    }

    /// Appends what the detokenizer and the stop strings still hold back.
    fn flush(&mut self, text: &mut String) {
        if let Some(stream) = &mut self.stream
            && self.stops.push(stream.finish(), text)
        {
            return;
        }
        self.stops.finish(text);
    }

    pub fn end(self, model: &mut Model, finish: Finish, sink: &mut dyn FnMut(u64, GenEvent)) {
        let id = self.request.id;
        let Self { n_generated, n_reused, n_drafted, n_accepted, .. } = self;
        let stop_index = self.stops.found().filter(|_| finish == Finish::Stop);
        let n_prompt = self.request.prompt.len();
        let n_reused = n_reused.min(n_prompt);
        self.release(model);
        sink(
            id,
            GenEvent::Done(GenerationStats {
                finish,
                n_prompt,
                n_generated,
                n_reused,
                n_drafted,
                n_accepted,
                stop_index,
            }),
        );
    }

    /// Releases the sequence. One that the caller gave stays alive.
    pub fn release(self, model: &mut Model) {
        match self.request.sequence {
            None => model.free(self.sequence),
            Some(sequence) => {
                model.clear_mark(sequence);
                // A freed sequence has no window.
                _ = model.unpin_window(sequence);
            }
        }
    }
}
