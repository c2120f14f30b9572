//! A turn that a model is answering: the engine's events become steps, text is told from reasoning,
//! time is measured.

use std::time::Duration;

use engine::reply::{Part, ReplySplitter};
use engine::tokenizer::Tokenizer;
use engine::{Done, GenEvent, TokenId};

use super::protocol::{Finished, Ids, Step};

/// One turn in a model's scheduler.
pub struct Running {
    /// Its name there.
    pub number: u64,
    pub turn: String,
    splitter: ReplySplitter,
    log: Log,
    times: Times,
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
    /// The prompt was handed to the model.
    pub submitted: Duration,
    pub first_token: Option<Duration>,
    pub last_token: Option<Duration>,
}

/// Ids of the answer's text.
#[derive(Default)]
struct Log {
    ids: Vec<TokenId>,
    /// Tokens whose text is still held back: whose they are shows when it comes.
    undecided: Vec<TokenId>,
}

impl Running {
    /// `prompt` is the text the answer continues.
    pub fn new(number: u64, turn: String, prompt: &str, times: Times) -> Self {
        Self { number, turn, splitter: ReplySplitter::after_prompt(prompt), log: Log::default(), times }
    }

    /// The steps that an event makes. `now` is the moment it happened.
    pub fn on(
        &mut self,
        event: GenEvent,
        now: Duration,
        context: &Context,
        emit: &mut dyn FnMut(&str, Step),
    ) {
        match event {
            GenEvent::Prefill { done, total } => {
                emit(&self.turn, Step::Prefill { done: count(done), total: count(total) });
            }
            GenEvent::Token { id, text } => {
                self.times.first_token.get_or_insert(now);
                self.times.last_token = Some(now);
                let (text, reasoning) = self.split(Some(id), |splitter, show| splitter.push(&text, show));
                emit(&self.turn, Step::Token { id, text, reasoning });
            }
            GenEvent::Done(done) => {
                let (text, reasoning) = self.split(None, |splitter, show| splitter.finish(show));
                if !text.is_empty() || !reasoning.is_empty() {
                    emit(&self.turn, Step::Rest { text, reasoning });
                }
                let finished = self.finished(done, context);
                emit(&self.turn, Step::Done(Box::new(finished)));
            }
            GenEvent::Failed(error) => emit(&self.turn, Step::Failed { error: error.into() }),
        }
    }

    /// Text and reasoning that may be shown now.
    fn split(
        &mut self,
        id: Option<TokenId>,
        push: impl FnOnce(&mut ReplySplitter, &mut dyn FnMut(Part, &str)),
    ) -> (String, String) {
        let (mut text, mut reasoning) = (String::new(), String::new());
        push(&mut self.splitter, &mut |part, piece| match part {
            Part::Text => text.push_str(piece),
            Part::Reasoning => reasoning.push_str(piece),
        });
        self.log.undecided.extend(id);
        if !text.is_empty() {
            self.log.ids.append(&mut self.log.undecided);
        } else if !reasoning.is_empty() {
            self.log.undecided.clear();
        }
        (text, reasoning)
    }

    fn finished(&mut self, done: Done, context: &Context) -> Finished {
        let mut ids = std::mem::take(&mut self.log.ids);
        ids.append(&mut self.log.undecided);
        while ids.pop_if(|id| context.tokenizer.is_some_and(|tokenizer| tokenizer.is_eog(*id))).is_some() {}
        let times = self.times;
        let computed = done.n_prompt.saturating_sub(done.n_reused);
        let prefill = times.first_token.map(|first| first.saturating_sub(times.submitted));
        let decode = times.first_token.zip(times.last_token).map(|(first, last)| last.saturating_sub(first));
        Finished {
            finish: done.finish,
            prompt_tokens: count(done.n_prompt),
            reused_tokens: count(done.n_reused),
            generated_tokens: count(done.n_generated),
            context_limit: count(context.n_ctx),
            load_ms: ms(times.loading),
            ttft_ms: times.first_token.map_or(0.0, |first| ms(first.saturating_sub(times.arrived))),
            prefill_tok_s: rate(computed, prefill),
            decode_tok_s: rate(done.n_generated.saturating_sub(1), decode),
            log: Ids { fingerprint: context.fingerprint.into(), ids },
        }
    }
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
