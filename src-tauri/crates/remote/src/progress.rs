//! The progress of a turn: sends each piece as it comes, and ends the turn once.

use std::time::Duration;

use contract::types::Finish;

use super::RemoteContext;
use super::answer_piece::{Call, Delta, Reason};
use super::count::{counted, estimate};
use super::delta::Reply;
use contract::Error;
use contract::protocol::{GenerateRequest, Ids, PromptMessage, Step, TurnResult};
use secrets::Secret;

/// Longest answer, reasoning included. Bytes.
const MAX_ANSWER_BYTES: usize = 16 << 20;

/// What a turn has reported so far.
pub struct TurnProgress<'a> {
    context: &'a RemoteContext,
    pub turn: &'a str,
    arrived: Duration,
    /// The messages as they are sent, without the answer's own beginning.
    pub messages: Vec<PromptMessage>,
    /// What the answer has already.
    pub had: Option<PromptMessage>,
    /// Tokens of the prompt, about.
    pub n_prompt: usize,
    begun: bool,
    n_bytes: usize,
    /// Events with text: about the number of tokens.
    n_pieces: usize,
    first: Option<Duration>,
    last: Option<Duration>,
    /// What has been told, in case it turns out to be something else.
    told: Delta,
    pub reply: Reply,
    called: bool,
    /// Where the answer comes from.
    pub place: String,
    /// What that server's words must not show.
    pub key: Option<Secret>,
}

impl<'a> TurnProgress<'a> {
    pub fn new(context: &'a RemoteContext, turn: &'a str, arrived: Duration) -> Self {
        Self {
            context,
            turn,
            arrived,
            messages: Vec::new(),
            had: None,
            n_prompt: 0,
            begun: false,
            n_bytes: 0,
            n_pieces: 0,
            first: None,
            last: None,
            told: Delta::default(),
            reply: Reply::default(),
            called: false,
            place: String::new(),
            key: None,
        }
    }

    /// Nothing of the answer has been reported.
    pub fn is_empty(&self) -> bool {
        self.n_pieces == 0
    }

    /// Whether it is still of a length that answers have.
    pub fn take(&mut self, delta: Delta) -> bool {
        let Delta { text, mut reasoning, is_revision } = delta;
        if text.is_empty() && reasoning.is_empty() && !is_revision {
            return true;
        }
        self.begin();
        if is_revision {
            self.revise(std::mem::take(&mut reasoning));
        }
        self.n_bytes += text.len() + reasoning.len();
        self.n_pieces += 1;
        let now = self.context.clock.monotonic();
        self.first.get_or_insert(now);
        self.last = Some(now);
        self.told.text.push_str(&text);
        self.told.reasoning.push_str(&reasoning);
        if !text.is_empty() || !reasoning.is_empty() {
            self.context.tell(self.turn, Step::Rest { text, reasoning, logprobs: Vec::new() });
        }
        self.n_bytes <= MAX_ANSWER_BYTES
    }

    /// All text so far was reasoning, and `more` is the rest of it.
    fn revise(&mut self, more: String) {
        self.n_bytes += more.len();
        let text = std::mem::take(&mut self.told.text);
        let told = &mut self.told.reasoning;
        told.push_str(if told.is_empty() { text.trim_start() } else { &text });
        told.push_str(&more);
        told.truncate(told.trim_end().len());
        let reasoning = told.clone();
        let had = self.had.as_ref();
        let text = had.map_or_else(String::new, |had| had.content.clone());
        let reasoning = had.map_or_else(String::new, |had| had.reasoning.clone()) + &reasoning;
        let had = Ids { fingerprint: String::new(), ids: Vec::new() };
        self.context.tell(self.turn, Step::Began { had, text, reasoning });
    }

    /// The server has taken it: what the answer has comes before anything new.
    pub fn begin(&mut self) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let (text, reasoning) = match &self.had {
            Some(had) => (had.content.clone(), had.reasoning.clone()),
            None => Default::default(),
        };
        let had = Ids { fingerprint: String::new(), ids: Vec::new() };
        self.context.tell(self.turn, Step::Began { had, text, reasoning });
    }

    pub fn notice(&self, error: Error) {
        self.context.tell(self.turn, Step::Notice { error });
    }

    /// The calls, what it cost, and the last word. `finish`: it was ended here.
    pub async fn end(mut self, request: &GenerateRequest, finish: Option<Finish>) {
        self.begin();
        if finish.is_none() {
            for Call { id, name, arguments, extra } in self.reply.calls() {
                if let Some(extra) = extra {
                    self.context.remote.keep_call_extra(&self.place, &id, extra);
                }
                let arguments = if arguments.trim().is_empty() { "{}".into() } else { arguments };
                self.called = true;
                self.context.tell(self.turn, Step::ToolCall { id, name, arguments });
            }
        }
        if self.reply.reason == Some(Reason::Filtered) {
            let message = format!("{} filtered part of this answer.", self.place);
            self.notice(Error::input(
                "remote.filtered",
                message,
                "Rephrase your message, or choose another model.",
            ));
        }
        let own = match self.reply.reason {
            Some(Reason::Length) => Finish::Length,
            Some(Reason::Stop | Reason::Calls | Reason::Filtered) | None => Finish::Stop,
        };
        let usage = self.reply.usage;
        if let Some(usage) = usage {
            let estimate = estimate(&self.messages, &request.chat);
            self.context.remote.learn(&request.model.id, estimate, usage.prompt_tokens as usize);
        }
        let prompt_tokens = match usage {
            Some(usage) => usage.prompt_tokens as usize,
            None if finish.is_none() => {
                counted(self.context, request, &self.messages).await.unwrap_or(self.n_prompt)
            }
            None => self.n_prompt,
        };
        let generated = usage.map_or(self.n_pieces, |usage| usage.generated_tokens as usize);
        let rate =
            |n: usize, took: Duration| if took.is_zero() { 0.0 } else { n as f64 / took.as_secs_f64() };
        let decode = self.first.zip(self.last).map(|(first, last)| last.saturating_sub(first));
        let finished = TurnResult {
            finish: finish.unwrap_or(own),
            called: self.called,
            prompt_tokens: clamp(prompt_tokens),
            reused_tokens: usage.map_or(0, |usage| usage.reused_tokens),
            generated_tokens: clamp(generated),
            context_limit: clamp(self.context.context_of(&request.model)),
            ttft_ms: self.first.map_or(0.0, |first| first.saturating_sub(self.arrived).as_secs_f64() * 1e3),
            decode_tok_s: decode.map_or(0.0, |took| rate(generated.saturating_sub(1), took)),
            is_about: usage.is_none(),
            answered_by: Some(self.place.clone()).filter(|place| !place.is_empty()),
            stop_index: None,
            guide: None,
            ..TurnResult::never_started()
        };
        self.context.tell(self.turn, Step::Done(Box::new(finished)));
    }
}

fn clamp(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
