//! A turn in progress: the engine's events become steps, text is separated from reasoning and
//! calls, time is measured.

use std::time::Duration;

use engine::reply::{ReplyEnd, ReplyFormat, ReplyPiece, ReplySink, ReplySplitter, ToolCall};
use engine::tokenizer::Tokenizer;
use engine::{Finish, GenEvent, GenerationStats, TokenId};

use contract::Error;
use contract::protocol::{Ids, Step, TokenAlternatives, TurnResult};

use super::model::logprobs::{self, TokenBytes};
use crate::engine_types;
use contract::limits::Bounds;

/// One turn in a model's scheduler.
pub struct ActiveTurn {
    /// Its name there.
    pub number: u64,
    pub turn: String,
    splitter: ReplySplitter,
    /// Sorted.
    marks: Vec<TokenId>,
    n_calls: usize,
    log: Log,
    /// Everything that was generated, in order.
    whole: Vec<TokenId>,
    times: Times,
    bounds: Bounds,
    /// It exceeded its time and was asked to end.
    is_late: bool,
    /// The queue position last reported.
    position: usize,
}

/// What a token or the end of the answer brought.
#[derive(Default)]
pub(super) struct TurnOutput {
    pub text: String,
    pub reasoning: String,
    calls: Vec<ToolCall>,
    /// Why calls cannot be read.
    malformed: Vec<String>,
    /// A call was cut before its tool's name.
    has_cut_call: bool,
    /// Of the tokens of `text`.
    logprobs: Vec<TokenAlternatives>,
}

/// What of the model a turn's end needs.
pub struct Context<'a> {
    pub tokenizer: Option<&'a Tokenizer>,
    pub fingerprint: &'a str,
    pub n_ctx: usize,
}

/// Moments of a monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// The request came.
    pub arrived: Duration,
    /// How long its model took to load; zero if it was there.
    pub loading: Duration,
    /// What its images took.
    pub images: ImageTime,
    /// The prompt was handed to the model.
    pub submitted: Duration,
    pub first_token: Option<Duration>,
    pub last_token: Option<Duration>,
}

/// What the vision tower did for a prompt.
#[derive(Debug, Clone, Copy, Default)]
pub struct ImageTime {
    /// Tokens of images that it did not remember.
    pub n_tokens: usize,
    pub took: Duration,
}

impl Times {
    pub fn new(arrived: Duration, loading: Duration, images: ImageTime, submitted: Duration) -> Self {
        Self { arrived, loading, images, submitted, first_token: None, last_token: None }
    }
}

/// Ids of the answer's text.
#[derive(Default)]
struct Log {
    ids: Vec<TokenId>,
    /// Tokens whose text is still held back: whose they are shows when it comes.
    undecided: Vec<TokenId>,
    /// The text begins with white space; None: there is no text yet.
    begins_blank: Option<bool>,
    logprobs: PendingLogprobs,
}

/// Logprobs of tokens whose text is still held back.
#[derive(Default)]
struct PendingLogprobs {
    /// Of the token that is being read.
    next: Option<TokenAlternatives>,
    undecided: Vec<TokenAlternatives>,
}

impl PendingLogprobs {
    fn keep_next(&mut self) {
        self.undecided.extend(self.next.take());
    }

    fn clear(&mut self) {
        self.next = None;
        self.undecided.clear();
    }

    /// Those of a text that is shown now. `drops_blank`: white space before it was dropped.
    fn take(&mut self, drops_blank: bool) -> Vec<TokenAlternatives> {
        let mut taken = std::mem::take(&mut self.undecided);
        if drops_blank {
            let n_blank = taken.iter().take_while(|seen| seen.token.text.trim().is_empty()).count();
            taken.drain(..n_blank);
        }
        taken
    }
}

/// A turn of this name fails at its first token.
#[cfg(test)]
pub const PANICS: &str = "panics";

impl ActiveTurn {
    /// `splitter` knows the text that the answer continues.
    pub fn new(
        number: u64,
        turn: String,
        splitter: ReplySplitter,
        format: &ReplyFormat,
        times: Times,
        bounds: Bounds,
    ) -> Self {
        let (marks, log, whole) = (format.markup_tokens().to_vec(), Log::default(), Vec::new());
        let (is_late, position) = (false, 0);
        Self { number, turn, splitter, marks, n_calls: 0, log, whole, times, bounds, is_late, position }
    }

    /// Its time is up, which is said once.
    pub fn is_up(&mut self, now: Duration) -> bool {
        let is_up = self.bounds.deadline(self.times.arrived).is_some_and(|deadline| deadline <= now);
        is_up && !std::mem::replace(&mut self.is_late, true)
    }

    /// Waits at queue position `position`.
    pub fn waits(&mut self, position: usize, emit: &mut dyn FnMut(&str, Step)) {
        if std::mem::replace(&mut self.position, position) != position {
            emit(&self.turn, Step::Queued { position: count(position) });
        }
    }

    /// The steps that an event makes. `now` is the moment it happened.
    pub fn on(
        &mut self,
        event: GenEvent,
        now: Duration,
        context: &Context,
        emit: &mut dyn FnMut(&str, Step),
    ) {
        #[cfg(test)]
        assert!(self.turn != PANICS || matches!(event, GenEvent::Prefill { .. }), "a turn that panics");
        match event {
            GenEvent::Prefill { done, total } => {
                emit(&self.turn, Step::Prefill { done: count(done), total: count(total) });
            }
            GenEvent::Token { id, text, logprobs } => {
                self.times.first_token.get_or_insert(now);
                self.times.last_token = Some(now);
                let share = |seen| logprobs::alternatives(seen, context.tokenizer, TokenBytes::Included);
                self.log.logprobs.next = logprobs.map(|seen| share(*seen));
                let mut brought = self.token(id, &text, context);
                let (text, reasoning) = (brought.text.clone(), brought.reasoning.clone());
                let logprobs = std::mem::take(&mut brought.logprobs);
                emit(&self.turn, Step::Token { id, text, reasoning, logprobs });
                self.tell(brought, emit);
            }
            GenEvent::Done(done) if self.is_late && done.n_generated == 0 => {
                emit(&self.turn, Step::Failed { error: self.bounds.time_up() });
            }
            GenEvent::Done(done) => {
                let finish = if self.is_late { Finish::TimeUp } else { done.finish };
                let done = GenerationStats { finish, ..done };
                let end = reply_end(finish);
                let mut brought = self.split(|splitter, show| splitter.finish(end, show));
                if !brought.text.is_empty() || !brought.reasoning.is_empty() {
                    let (text, reasoning) = (brought.text.clone(), brought.reasoning.clone());
                    let logprobs = std::mem::take(&mut brought.logprobs);
                    emit(&self.turn, Step::Rest { text, reasoning, logprobs });
                }
                self.tell(brought, emit);
                let finished = self.finished(done, context);
                emit(&self.turn, Step::Done(Box::new(finished)));
            }
            GenEvent::Failed(error) => emit(&self.turn, Step::Failed { error: error.into() }),
        }
    }

    /// The text that came with a token, then the token itself where it is markup.
    pub(super) fn token(&mut self, id: TokenId, text: &str, context: &Context) -> TurnOutput {
        self.whole.push(id);
        let is_control = context.tokenizer.is_some_and(|tokenizer| tokenizer.is_control(id));
        if !is_control && self.marks.binary_search(&id).is_err() {
            self.log.undecided.push(id);
            self.log.logprobs.keep_next();
            return self.split(|splitter, show| splitter.text(text, show));
        }
        let mark = context.tokenizer.and_then(|tokenizer| tokenizer.token_text(id)).unwrap_or_default();
        let brought = self.split(|splitter, show| {
            splitter.text(text, show);
            splitter.markup(mark, is_control, show);
        });
        // Markup is no part of the text, nor is what waited before it; the end of the answer is no markup.
        if !context.tokenizer.is_some_and(|tokenizer| tokenizer.is_eog(id)) {
            self.log.undecided.clear();
            self.log.logprobs.clear();
        }
        brought
    }

    fn split(&mut self, push: impl FnOnce(&mut ReplySplitter, &mut ReplySink)) -> TurnOutput {
        let mut brought = TurnOutput::default();
        push(&mut self.splitter, &mut |shown| match shown {
            ReplyPiece::Text(piece) => brought.text.push_str(piece),
            ReplyPiece::Reasoning(piece) => brought.reasoning.push_str(piece),
            ReplyPiece::Call(call) => brought.calls.push(call),
            ReplyPiece::CutCall => brought.has_cut_call = true,
            ReplyPiece::Malformed(why) => brought.malformed.push(why.into()),
        });
        if let Some(first) = brought.text.chars().next() {
            let is_first = self.log.begins_blank.is_none();
            self.log.begins_blank.get_or_insert(first.is_whitespace());
            self.log.ids.append(&mut self.log.undecided);
            brought.logprobs = self.log.logprobs.take(is_first && !first.is_whitespace());
        } else if !brought.reasoning.is_empty() || !brought.calls.is_empty() {
            self.log.undecided.clear();
            self.log.logprobs.clear();
        }
        brought
    }

    fn tell(&mut self, brought: TurnOutput, emit: &mut dyn FnMut(&str, Step)) {
        for ToolCall { id, name, arguments } in brought.calls {
            let id = id.unwrap_or_else(|| call_id(&self.turn, self.n_calls));
            self.n_calls += 1;
            emit(&self.turn, Step::ToolCall { id, name, arguments });
        }
        let malformed = brought.malformed.into_iter().map(|message| {
            let remedy = "Its text is shown unchanged. Try again, or choose a model that supports tools.";
            Error::input("reply.call_malformed", message, remedy)
        });
        for error in malformed.chain(brought.has_cut_call.then(cut_call)) {
            emit(&self.turn, Step::Notice { error });
        }
    }

    fn finished(&mut self, done: GenerationStats, context: &Context) -> TurnResult {
        let mut ids = std::mem::take(&mut self.log.ids);
        ids.append(&mut self.log.undecided);
        if let (Some(false), Some(tokenizer)) = (self.log.begins_blank, context.tokenizer) {
            // White space between a tag and the text was dropped.
            let n_blank = ids.iter().take_while(|id| tokenizer.decode(&[**id]).trim().is_empty()).count();
            ids.drain(..n_blank);
        }
        let is_end = |id: &mut TokenId| context.tokenizer.is_some_and(|tokenizer| tokenizer.is_eog(*id));
        while ids.pop_if(is_end).is_some() {}
        let mut whole = std::mem::take(&mut self.whole);
        while whole.pop_if(is_end).is_some() {}
        let times = self.times;
        let computed = done.n_prompt.saturating_sub(done.n_reused);
        let prefill = times.first_token.map(|first| first.saturating_sub(times.submitted));
        let decode = times.first_token.zip(times.last_token).map(|(first, last)| last.saturating_sub(first));
        TurnResult {
            finish: engine_types::finish(done.finish),
            called: self.n_calls > 0,
            prompt_tokens: count(done.n_prompt),
            reused_tokens: count(done.n_reused),
            generated_tokens: count(done.n_generated),
            drafted_tokens: count(done.n_drafted),
            accepted_tokens: count(done.n_accepted),
            context_limit: count(context.n_ctx),
            load_ms: ms(times.loading),
            ttft_ms: times.first_token.map_or(0.0, |first| ms(first.saturating_sub(times.arrived))),
            prefill_tok_s: rate(computed, prefill),
            decode_tok_s: rate(done.n_generated.saturating_sub(1), decode),
            image_tokens: count(times.images.n_tokens),
            image_ms: ms(times.images.took),
            log: Ids { fingerprint: context.fingerprint.into(), ids },
            whole,
            is_about: false,
            answered_by: None,
            stop_index: done.stop_index.map(count),
            guide: None,
        }
    }
}

/// Whether a call may have been cut at this end.
fn reply_end(finish: Finish) -> ReplyEnd {
    match finish {
        Finish::Stop => ReplyEnd::Whole,
        Finish::Length | Finish::Cancelled | Finish::ContextFull | Finish::TimeUp => ReplyEnd::Cut,
    }
}

fn cut_call() -> Error {
    Error::input(
        "reply.call_cut",
        "The answer ended while the model was writing a tool call, before the name of the tool.",
        "Allow longer answers, or continue this one.",
    )
}

/// The name of a turn's call: nine letters and digits, since some templates take no other.
fn call_id(turn: &str, number: usize) -> String {
    const LETTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let mut hash = turn.bytes().chain(number.to_le_bytes()).fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut id = String::new();
    for _ in 0..9 {
        id.push(char::from(LETTERS[(hash % 36) as usize]));
        hash /= 36;
    }
    id
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Milliseconds to the microsecond.
fn ms(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1e3
}

/// Per second, to three places; 0 where nothing was measured.
fn rate(n: usize, took: Option<Duration>) -> f64 {
    match took {
        Some(took) if !took.is_zero() => (n as f64 / took.as_secs_f64() * 1e3).round() / 1e3,
        Some(_) | None => 0.0,
    }
}
