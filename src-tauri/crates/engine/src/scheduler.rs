//! Many requests, one batch per step: decode rows first, then prompt chunks, bounded.
//!
//! Pure and deterministic: the same submissions and steps give the same events. No clock: callers that
//! want timings read their own at each event. What a request samples does not depend on its batch mates.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::TokenId;
use crate::budget::{BudgetWatch, ReasoningBudget};
use crate::error::{EngineError, Result};
use crate::kv::cache::{SequenceId, context_full};
use crate::kv::size::Rewind;
use crate::model::{Chunk, Model, Wanted, nan_logits};
use crate::sampler::{Chain, Sampling};
use crate::stop::StopStrings;
use crate::tokenizer::{DetokenizeStream, Tokenizer};

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
    pub marks: Vec<TokenId>,
    /// None: the model thinks as long as it likes.
    pub budget: Option<ReasoningBudget>,
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
}

/// What a finished request did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    pub finish: Finish,
    /// Tokens of the prompt.
    pub n_prompt: usize,
    /// Tokens sampled, the end-of-generation token included.
    pub n_generated: usize,
    /// Tokens of the prompt that were not computed again.
    pub n_reused: usize,
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
    Done(Done),
    Failed(EngineError),
}

/// Requests that may wait; far more than a person or a small office sends at once.
pub const MAX_PENDING: usize = 1024;

/// Requests that share a batch; the rest wait their turn. More would make every answer crawl.
pub const MAX_ACTIVE: usize = 32;

/// Tokens of a prompt between positions that are kept to go back to.
const KEEP_EVERY: usize = 1024;

/// A position this far before the prompt's end is kept as well: the tokens that open an answer are often not those
/// that the next prompt has in their place.
const OPENING: usize = 16;

/// Requests in flight.
#[derive(Default)]
pub struct Scheduler {
    pending: VecDeque<Request>,
    /// In order of admission.
    active: Vec<Active>,
    cancelled: Vec<u64>,
}

/// A request that has its sequence.
struct Active {
    request: Request,
    sequence: SequenceId,
    /// The prompt, then every sampled token. The sequence holds the first `n_done` of them.
    history: Vec<TokenId>,
    n_done: usize,
    rewind: Rewind,
    n_reused: usize,
    n_generated: usize,
    chain: Chain,
    /// None for a model without tokenizer: then there are ids, but no text.
    stream: Option<DetokenizeStream>,
    stops: StopStrings,
    budget: Option<BudgetWatch>,
}

/// The part that one active request has in a batch.
struct Share {
    index: usize,
    n_tokens: usize,
    wanted: Wanted,
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
        let known = self.pending.iter().chain(self.active.iter().map(|a| &a.request)).any(|r| r.id == id);
        if known && !self.cancelled.contains(&id) {
            self.cancelled.push(id);
        }
    }

    /// Requests that have not ended.
    pub fn n_in_flight(&self) -> usize {
        self.pending.len() + self.active.len()
    }

    /// One batch through the model; returns whether work is left.
    pub fn step(&mut self, model: &mut Model, sink: &mut dyn FnMut(u64, GenEvent)) -> bool {
        self.end_cancelled(model, sink);
        self.admit(model, sink);
        let shares = self.shares(model.max_rows());
        if !shares.is_empty() {
            self.run(model, &shares, sink);
        }
        self.n_in_flight() > 0
    }

    fn end_cancelled(&mut self, model: &mut Model, sink: &mut dyn FnMut(u64, GenEvent)) {
        for id in std::mem::take(&mut self.cancelled) {
            if let Some(at) = self.pending.iter().position(|r| r.id == id) {
                let n_prompt = self.pending.remove(at).map_or(0, |r| r.prompt.len());
                let done = Done { finish: Finish::Cancelled, n_prompt, n_generated: 0, n_reused: 0 };
                sink(id, GenEvent::Done(done));
            } else if let Some(at) = self.active.iter().position(|a| a.request.id == id) {
                self.active.remove(at).end(model, Finish::Cancelled, sink);
            }
        }
    }

    /// Gives waiting requests their sequences, first come, first served.
    fn admit(&mut self, model: &mut Model, sink: &mut dyn FnMut(u64, GenEvent)) {
        while self.active.len() < MAX_ACTIVE.min(model.max_rows()) {
            let Some(request) = self.pending.front() else { return };
            let must_wait =
                request.sequence.is_none() && !model.has_free_sequence() && !self.active.is_empty();
            let busy = request.sequence.is_some_and(|seq| self.active.iter().any(|a| a.sequence == seq));
            if must_wait || busy {
                return;
            }
            let Some(request) = self.pending.pop_front() else { return };
            let id = request.id;
            match Active::new(request, model) {
                Ok(active) => {
                    let (done, total) = (active.n_done, active.request.prompt.len());
                    sink(id, GenEvent::Prefill { done, total });
                    self.active.push(active);
                }
                Err(error) => sink(id, GenEvent::Failed(error)),
            }
        }
    }

    /// Who takes part in the next batch: everyone who decodes, then prompts while there are rows.
    fn shares(&self, max_rows: usize) -> Vec<Share> {
        let mut shares = Vec::with_capacity(self.active.len());
        let mut n_free = max_rows;
        for decoding in [true, false] {
            for (index, active) in self.active.iter().enumerate() {
                let n_left = active.history.len() - active.n_done;
                let n_tokens = n_left.min(n_free).min(active.n_to_keep());
                if active.decodes() != decoding || n_tokens == 0 {
                    continue;
                }
                let wanted = if n_tokens == n_left { Wanted::Last } else { Wanted::None };
                shares.push(Share { index, n_tokens, wanted });
                n_free -= n_tokens;
            }
        }
        shares
    }

    fn run(&mut self, model: &mut Model, shares: &[Share], sink: &mut dyn FnMut(u64, GenEvent)) {
        let chunks: Vec<Chunk> = shares.iter().map(|share| self.active[share.index].chunk(share)).collect();
        let n_ctx = model.n_ctx();
        let (logits, tokenizer) = match model.forward_with_tokenizer(&chunks) {
            Ok(ran) => ran,
            Err(error) => {
                let failed: Vec<(usize, End)> =
                    shares.iter().map(|share| (share.index, End::Failed(error.clone()))).collect();
                return self.end(model, failed, sink);
            }
        };
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
                let end = match logits.row(row) {
                    Ok(logits) => active.draw(logits, tokenizer, n_ctx, sink),
                    Err(error) => Some(End::Failed(error)),
                };
                ended.extend(end.map(|end| (share.index, end)));
                row += 1;
            }
        }
        for sequence in to_keep {
            // what isn't kept is computed again
            _ = model.keep(sequence);
        }
        self.end(model, ended, sink);
    }

    /// Takes those that ended out of the active ones, in order.
    fn end(&mut self, model: &mut Model, ended: Vec<(usize, End)>, sink: &mut dyn FnMut(u64, GenEvent)) {
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

/// How a request leaves the active ones.
enum End {
    Finished(Finish),
    Failed(EngineError),
}

impl Active {
    /// Checks the request against the model, finds its sequence and what of the prompt that holds already.
    fn new(request: Request, model: &mut Model) -> Result<Self> {
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
        model.check_tokens(&request.prompt)?;
        let (sequence, n_reused) = match request.sequence {
            None => (model.new_sequence()?, 0),
            Some(sequence) => {
                let held = model.tokens(sequence)?;
                let n_common = held.iter().zip(&request.prompt).take_while(|(a, b)| a == b).count();
                // The last token is always computed: its logits are wanted.
                let n_reused = model.truncate(sequence, n_common.min(n_prompt - 1))?;
                model.keep(sequence)?;
                (sequence, n_reused)
            }
        };
        Ok(Self {
            sequence,
            history: request.prompt.clone(),
            n_done: n_reused,
            rewind: model.rewind(),
            n_reused,
            n_generated: 0,
            chain: Chain::new(&request.sampling, model.spec().n_vocab),
            stream: model.tokenizer().map(Tokenizer::stream),
            stops: StopStrings::new(&request.stop),
            budget: request.budget.clone().map(BudgetWatch::new),
            request,
        })
    }

    /// The whole prompt is in the cache.
    fn decodes(&self) -> bool {
        self.n_done >= self.request.prompt.len()
    }

    /// Tokens until the next position that is kept: before the reply, and at intervals in a long prompt.
    fn n_to_keep(&self) -> usize {
        let (n_prompt, n_done) = (self.request.prompt.len(), self.n_done);
        let before_reply = match self.rewind {
            _ if self.request.sequence.is_none() => return usize::MAX,
            Rewind::Anywhere => return usize::MAX,
            Rewind::Near => [n_prompt, n_prompt],
            // the last token is computed again when the same prompt comes again
            Rewind::Nowhere => [n_prompt.saturating_sub(OPENING), n_prompt - 1],
        };
        let next = (n_done / KEEP_EVERY + 1) * KEEP_EVERY;
        let stops = before_reply.into_iter().chain(Some(next).filter(|&next| next < n_prompt));
        stops.filter(|&stop| stop > n_done).min().map_or(usize::MAX, |stop| stop - n_done)
    }

    fn chunk(&self, share: &Share) -> Chunk<'_> {
        let tokens = &self.history[self.n_done..self.n_done + share.n_tokens];
        Chunk { seq: self.sequence, tokens, logits: share.wanted }
    }

    /// Samples the next token and says whether it was the last.
    fn draw(
        &mut self,
        logits: &[f32],
        tokenizer: Option<&Tokenizer>,
        n_ctx: usize,
        sink: &mut dyn FnMut(u64, GenEvent),
    ) -> Option<End> {
        if self.request.max_tokens == Some(0) {
            return Some(End::Finished(Finish::Length));
        }
        let forced = self.budget.as_mut().and_then(BudgetWatch::forced);
        let Some(token) = forced.or_else(|| self.chain.sample(logits, &self.history)) else {
            return Some(End::Failed(nan_logits()));
        };
        self.history.push(token);
        self.n_generated += 1;
        if let (Some(budget), Some(tokenizer)) = (&mut self.budget, tokenizer) {
            budget.saw(&tokenizer.decode(&[token]));
        }
        let mut text = String::new();
        let is_end = !self.request.ignore_eos && tokenizer.is_some_and(|t| t.is_eog(token));
        let is_mark = self.request.marks.contains(&token) || tokenizer.is_some_and(|t| t.is_control(token));
        if is_mark {
            self.flush(&mut text);
        }
        let stopped = !is_end
            && !is_mark
            && self.stream.as_mut().is_some_and(|s| self.stops.push(s.push(token), &mut text));
        let finish = if is_end || stopped {
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
        sink(self.request.id, GenEvent::Token { id: token, text });
        finish.map(End::Finished)
    }

    /// What the detokeniser and the stop watch still hold back belongs to the answer.
    fn flush(&mut self, text: &mut String) {
        if let Some(stream) = &mut self.stream
            && self.stops.push(stream.finish(), text)
        {
            return;
        }
        self.stops.finish(text);
    }

    fn end(self, model: &mut Model, finish: Finish, sink: &mut dyn FnMut(u64, GenEvent)) {
        let id = self.request.id;
        let (n_prompt, n_generated, n_reused) = (self.request.prompt.len(), self.n_generated, self.n_reused);
        self.release(model);
        sink(id, GenEvent::Done(Done { finish, n_prompt, n_generated, n_reused }));
    }

    /// A sequence that the caller gave stays the caller's.
    fn release(self, model: &mut Model) {
        if self.request.sequence.is_none() {
            model.free(self.sequence);
        }
    }
}
