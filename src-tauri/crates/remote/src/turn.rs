//! One turn that a remote server answers: the prompt is fitted, sent, streamed, and ended once.

use std::time::Duration;

use compaction::{Strategy, TokenBudget};
use contract::types::Finish;
use tokio::sync::oneshot;

use super::RemoteContext;
use super::count::{About, estimate, exactly};
use super::delta::{Delta, Reason, Reply};
use super::request::attempts;
use contract::protocol::{
    CompactedRange, Compression, GenerateRequest, Ids, Location, Prompt, PromptMessage, Step, SummaryTask,
    TurnResult,
};
use contract::{Error, ErrorKind, Result};
use prompt::context_fit::{Counts, Fit, Fitting, Why};
use secrets::Secret;

/// Beyond this part of the context a prompt is counted by its server, if it can: an estimate might be off by as much.
const COUNT_BEYOND: f64 = 0.4;

/// Longest answer, reasoning included. Bytes.
const MAX_ANSWER_BYTES: usize = 16 << 20;

/// How a turn ended.
enum End {
    Answered,
    /// It goes on when a summary is there.
    Handed,
    Cancelled,
    TimeUp,
    Failed(Error),
}

/// What has been progress of a turn.
pub struct TurnProgress<'a> {
    context: &'a RemoteContext,
    pub turn: &'a str,
    arrived: Duration,
    /// The messages as they are sent, without the answer's own beginning.
    pub messages: Vec<PromptMessage>,
    /// What the answer has already.
    pub had: Option<PromptMessage>,
    n_prompt: usize,
    begun: bool,
    n_bytes: usize,
    /// Events with text: about the number of tokens.
    n_pieces: usize,
    first: Option<Duration>,
    last: Option<Duration>,
    pub reply: Reply,
    called: bool,
    /// Where the answer comes from.
    pub place: String,
    /// What that server's words must not show.
    pub key: Option<Secret>,
}

/// Answers a turn; `cancelled` ends it before its next word.
pub async fn answer(
    context: &RemoteContext,
    mut request: Box<GenerateRequest>,
    arrived: Duration,
    cancelled: oneshot::Receiver<()>,
) {
    let turn = request.turn.clone();
    let left = request.bounds.deadline(arrived).map(|end| end.saturating_sub(context.clock.monotonic()));
    let up = async {
        match left {
            Some(left) => tokio::time::sleep(left).await,
            None => std::future::pending().await,
        }
    };
    let mut progress = TurnProgress::new(context, &turn, arrived);
    let end = tokio::select! {
        biased;
        _ = cancelled => End::Cancelled,
        () = up => End::TimeUp,
        end = work(context, &mut request, &mut progress) => end,
    };
    match end {
        End::Answered => progress.end(&request, None).await,
        End::Handed => {}
        End::Cancelled if progress.is_empty() => {
            context.tell(&turn, Step::Done(Box::new(TurnResult::never_started())))
        }
        End::Cancelled => progress.end(&request, Some(Finish::Cancelled)).await,
        End::TimeUp if progress.is_empty() => {
            context.tell(&turn, Step::Failed { error: request.bounds.time_up() });
        }
        End::TimeUp => progress.end(&request, Some(Finish::TimeUp)).await,
        End::Failed(error) => context.tell(&turn, Step::Failed { error }),
    }
}

async fn work(
    context: &RemoteContext,
    request: &mut GenerateRequest,
    progress: &mut TurnProgress<'_>,
) -> End {
    match prepare(context, request, progress).await {
        Ok(Ready::Asking) => {}
        Ok(Ready::Wanting(wanted)) => {
            let wanted = Box::new(wanted);
            context.tell(&request.turn, Step::Wanting { request: Box::new(request.clone()), wanted });
            return End::Handed;
        }
        Err(error) => return End::Failed(error),
    }
    match attempts(context, request, progress).await {
        Ok(()) => End::Answered,
        Err(error) => End::Failed(error),
    }
}

enum Ready {
    Asking,
    Wanting(SummaryTask),
}

/// Makes the prompt fit, as far as anything is known of the model's context.
async fn prepare(
    context: &RemoteContext,
    request: &mut GenerateRequest,
    progress: &mut TurnProgress<'_>,
) -> Result<Ready> {
    let mut messages = match &request.prompt {
        Prompt::Chat(messages) => messages.clone(),
        Prompt::Raw(_) | Prompt::Ids(_) => return Err(only_chat(&request.model.id)),
    };
    if request.had.is_some() {
        progress.had = messages.pop().filter(|message| !message.content.trim().is_empty());
    }
    let limit = context.context_of(&request.model);
    let mut about = About { ratio: context.remote.ratio(&request.model.id) };
    let n_about = about.n_tokens(&messages, &request.chat)?;
    let is_long = limit > 0 && n_about as f64 > limit as f64 * COUNT_BEYOND;
    if (is_long || request.bounds.prompt_tokens.is_some_and(|most| n_about * 2 > most))
        && let Some(n_tokens) = counted(context, request, &messages).await
    {
        context.remote.learn(&request.model.id, estimate(&messages, &request.chat), n_tokens);
        about = About { ratio: context.remote.ratio(&request.model.id) };
    }
    if let Some(compression) = request.compression.clone().filter(|_| limit > 0) {
        let compression = without_attention(context, &request.turn, compression);
        let room = TokenBudget::new(limit, request.max_tokens);
        match Fitting::new(&about, &request.chat, &compression, &messages, room).fit(Why::Need)? {
            Fit::Ready { messages: shown, folded, .. } => {
                messages = shown;
                folded.into_iter().for_each(|folded: CompactedRange| {
                    context.tell(&request.turn, Step::Compacted { folded });
                });
            }
            Fit::Wanting(wanted) => return Ok(Ready::Wanting(wanted)),
        }
    }
    progress.n_prompt = about.n_tokens(&messages, &request.chat)?;
    request.bounds.check_prompt(progress.n_prompt)?;
    progress.messages = messages;
    Ok(Ready::Asking)
}

/// By whichever server is next.
async fn counted(
    context: &RemoteContext,
    request: &GenerateRequest,
    messages: &[PromptMessage],
) -> Option<usize> {
    let Location::Remote { name, model } = &request.model.location else { return None };
    let rows = context.directory.candidates(name, model).ok()?;
    let server = rows.iter().find_map(|row| context.server_of(row).ok())?;
    exactly(context, &server, model, messages, &request.chat).await
}

/// What a model forgets can't be progress to another server.
fn without_attention(context: &RemoteContext, turn: &str, mut compression: Compression) -> Compression {
    if compression.strategy == Strategy::Attention {
        compression.strategy = Strategy::Window;
        let error = Error::new(
            ErrorKind::Conflict,
            "remote.no_attention",
            "Models on other servers can't forget tokens selectively. The oldest messages are left out instead when needed.",
            "Change \"When the context is full\" in the settings, or choose a model on this computer.",
        );
        context.tell(turn, Step::Notice { error });
    }
    compression
}

fn only_chat(model: &str) -> Error {
    Error::new(
        ErrorKind::Usage,
        "remote.only_chat",
        format!("{model} is on another server, which accepts only chat messages."),
        "Omit --raw and --ids, or use a model on this computer.",
    )
}

impl<'a> TurnProgress<'a> {
    fn new(context: &'a RemoteContext, turn: &'a str, arrived: Duration) -> Self {
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
            reply: Reply::default(),
            called: false,
            place: String::new(),
            key: None,
        }
    }

    /// Nothing of the answer has been progress.
    pub fn is_empty(&self) -> bool {
        self.n_pieces == 0
    }

    /// Whether it is still of a length that answers have.
    pub fn take(&mut self, delta: Delta) -> bool {
        let Delta { text, reasoning } = delta;
        if text.is_empty() && reasoning.is_empty() {
            return true;
        }
        self.begin();
        self.n_bytes += text.len() + reasoning.len();
        self.n_pieces += 1;
        let now = self.context.clock.monotonic();
        self.first.get_or_insert(now);
        self.last = Some(now);
        self.context.tell(self.turn, Step::Rest { text, reasoning });
        self.n_bytes <= MAX_ANSWER_BYTES
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
    async fn end(mut self, request: &GenerateRequest, finish: Option<Finish>) {
        self.begin();
        if finish.is_none() {
            for (n, call) in self.reply.calls().into_iter().enumerate() {
                let id = if call.id.is_empty() { format!("call_{n}") } else { call.id };
                let arguments = if call.arguments.trim().is_empty() { "{}".into() } else { call.arguments };
                self.called = true;
                self.context.tell(self.turn, Step::ToolCall { id, name: call.name, arguments });
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
            ..TurnResult::never_started()
        };
        self.context.tell(self.turn, Step::Done(Box::new(finished)));
    }
}

fn clamp(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
