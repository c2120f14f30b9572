//! One turn that a remote server answers: the prompt is fitted, sent, streamed, and ended once.

use std::time::Duration;

use compaction::{Strategy, TokenBudget};
use contract::types::Finish;
use tokio::sync::oneshot;

use super::RemoteContext;
use super::count::{About, counted, estimate};
use super::progress::TurnProgress;
use super::request::attempts;
use contract::protocol::{
    CompactedRange, Compression, Constraint, GenerateRequest, Prompt, PromptMessage, Step, SummaryTask,
    TurnResult,
};
use contract::{Error, ErrorKind, Result};
use prompt::context_fit::{Counts, Fit, Fitting, Why};
use prompt::images;

/// Beyond this part of the context a prompt is counted by its server, if it can: an estimate might be off by as much.
const COUNT_BEYOND: f64 = 0.4;

/// How a turn ended.
enum End {
    Answered,
    /// It goes on when a summary is there.
    Handed,
    Cancelled,
    TimeUp,
    Failed(Error),
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

/// Messages whose images are no files of this computer.
fn with_image_bytes(messages: &[PromptMessage]) -> Result<Vec<PromptMessage>> {
    let inlined = |message: &PromptMessage| {
        let images = message.images.iter().map(images::inlined).collect::<Result<_>>()?;
        Ok(PromptMessage { images, ..message.clone() })
    };
    messages.iter().map(inlined).collect()
}

/// Makes the prompt fit, as far as anything is known of the model's context.
async fn prepare(
    context: &RemoteContext,
    request: &mut GenerateRequest,
    progress: &mut TurnProgress<'_>,
) -> Result<Ready> {
    let mut messages = match &request.prompt {
        Prompt::Chat(messages) => with_image_bytes(messages)?,
        Prompt::Raw(_) | Prompt::Ids(_) => return Err(only_chat(&request.model.id)),
    };
    if matches!(request.constraint, Some(Constraint::Regex(_) | Constraint::Lark(_))) {
        return Err(no_grammar(&request.model.id));
    }
    if request.logprobs.is_some() {
        context.tell(&request.turn, Step::Notice { error: no_logprobs() });
    }
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
            Fit::Ready { messages: shown, compacted, .. } => {
                messages = shown;
                compacted.into_iter().for_each(|range: CompactedRange| {
                    context.tell(&request.turn, Step::Compacted { range });
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

/// Other servers can't be asked to forget tokens.
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

fn no_grammar(model: &str) -> Error {
    Error::new(
        ErrorKind::Usage,
        "remote.no_grammar",
        format!("{model} is on another server, which takes only JSON schemas."),
        "Use a JSON schema, or a model on this computer.",
    )
}

fn no_logprobs() -> Error {
    Error::new(
        ErrorKind::Conflict,
        "remote.no_logprobs",
        "Probabilities of tokens are not taken over from other servers.",
        "Use a model on this computer.",
    )
}

fn only_chat(model: &str) -> Error {
    Error::new(
        ErrorKind::Usage,
        "remote.only_chat",
        format!("{model} is on another server, which accepts only chat messages."),
        "Omit --raw and --ids, or use a model on this computer.",
    )
}
