//! Tries servers until one answers: in turn, the next at once if one fails before its first word,
//! all of them again after a pause. After the first word nothing is retried automatically: the
//! partial answer is kept.

use std::time::Duration;

use serde_json::{Map, Value};

use super::delta::Reply;
use super::dialect::{ContinuationStyle, Dialect};
use super::fault::{Fault, RetryAdvice, broken};
use super::http::{Answer, HttpCall};
use super::omitted_fields::MAX_OMISSIONS;
use super::progress::TurnProgress;
use super::reading::read_answer;
use super::{Endpoint, RemoteContext, Server, list_models};
use contract::protocol::{GenerateRequest, Location, PromptMessage};
use contract::types::ConnectionPurpose;
use contract::{Error, ErrorKind, Result};

/// How often all servers of a name are asked, with a pause before each round but the first.
const MAX_ROUNDS: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// A server that wants a longer pause is not waited for.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The user sees a notice of pauses from this length on.
const NOTICED_PAUSE: Duration = Duration::from_secs(2);

/// What continues an answer where nothing else does.
const CONTINUE: &str = "Your last answer was cut off. Go on exactly where it ends, in the middle of the sentence if it \
                        ends there. Repeat nothing and explain nothing.";

/// `Ok`: the whole answer has been reported.
pub async fn attempts(
    context: &RemoteContext,
    request: &GenerateRequest,
    progress: &mut TurnProgress<'_>,
) -> Result<()> {
    let Location::Remote { name, model } = &request.model.location else {
        return Err(Error::bug("a model of this machine was asked elsewhere"));
    };
    let mut pause = FIRST_PAUSE;
    let mut last = None;
    for round in 0..MAX_ROUNDS {
        let rows = context.directory.candidates(name, model)?;
        let mut later = None;
        for at in context.order(name, &rows) {
            let fault = match attempt(context, &rows[at], model, request, progress).await {
                Ok(()) => {
                    context.remote.known().pool.worked(&rows[at].id);
                    return Ok(());
                }
                Err(fault) => fault,
            };
            if fault.again != RetryAdvice::Never && fault.error.code() != "remote.model_gone" {
                context.failed(&rows[at].id, &fault.error);
            }
            if !progress.is_empty() {
                return Err(midway(*fault.error, &progress.place));
            }
            match fault.again {
                RetryAdvice::Never => return Err(*fault.error),
                RetryAdvice::Elsewhere => {}
                RetryAdvice::Later(wait) => {
                    let wait = wait.unwrap_or_default();
                    later = Some(later.map_or(wait, |least: Duration| least.min(wait)));
                }
            }
            tracing::info!(code = fault.error.code(), turn = progress.turn, "asked again: {}", fault.error);
            last = Some(*fault.error);
        }
        let Some(wait) = later.map(|wait| wait.max(pause)).filter(|wait| *wait <= LONGEST_PAUSE) else {
            break;
        };
        if round + 1 == MAX_ROUNDS {
            break;
        }
        if let Some(error) = last.as_ref().filter(|_| wait >= NOTICED_PAUSE) {
            let message = format!("{} Retrying in {} seconds.", error.message(), wait.as_secs());
            progress.notice(Error::new(error.kind, "remote.asked_again", message, error.remedy()));
        }
        tokio::time::sleep(wait).await;
        pause *= 2;
    }
    Err(last.unwrap_or_else(|| Error::bug("no server was asked")))
}

impl RemoteContext {
    /// Whose turn it is; those that rested long enough are looked at meanwhile.
    fn order(&self, name: &str, rows: &[Endpoint]) -> Vec<usize> {
        let ids: Vec<String> = rows.iter().map(|row| row.id.clone()).collect();
        let now = self.clock.monotonic();
        let mut known = self.remote.known();
        let order = known.pool.order(name, &ids, now);
        let due = known.pool.take_due(&ids, now);
        drop(known);
        for id in due.into_iter().filter(|id| order.first().is_none_or(|&at| ids[at] != *id)) {
            list_models::list_in_background(self, id);
        }
        order
    }

    fn failed(&self, id: &str, error: &Error) {
        let now = self.clock.monotonic();
        self.remote.known().pool.failed(id, error.info.clone(), now);
    }
}

async fn attempt(
    context: &RemoteContext,
    row: &Endpoint,
    model: &str,
    request: &GenerateRequest,
    progress: &mut TurnProgress<'_>,
) -> Result<(), Fault> {
    let elsewhere = |error| Fault::from_error(RetryAdvice::Elsewhere, error);
    let server = context.server_of(row).map_err(elsewhere)?;
    progress.place = server.address.place();
    progress.key.clone_from(&server.key);
    progress.reply = Reply::default();
    let mut answer = ask_without_refused_fields(context, row, &server, model, request, progress).await?;
    read_answer(&mut answer, progress).await
}

/// Asks a server. A field that it refuses is left out, and the server is asked once more.
async fn ask_without_refused_fields(
    context: &RemoteContext,
    row: &Endpoint,
    server: &Server,
    model: &str,
    request: &GenerateRequest,
    progress: &TurnProgress<'_>,
) -> Result<Answer, Fault> {
    let mut full = body(server, model, request, progress);
    context.remote.add_call_extras(&progress.place, &mut full);
    let mut n_left = MAX_OMISSIONS;
    loop {
        let mut body = full.clone();
        context.remote.omitted_fields(&row.id, model).apply(&mut body);
        let call = HttpCall {
            address: &server.address,
            url: server.address.route("/chat/completions"),
            key: server.key.as_ref(),
            body: Some(Value::Object(body.clone()).to_string().into_bytes()),
            purpose: ConnectionPurpose::Answer,
            silence: context.silence(),
        };
        let fault = match context.http()?.ask(&context.gate, call).await {
            Err(fault) if n_left > 0 => fault,
            ended => return ended,
        };
        n_left -= 1;
        let refused = fault.refused.as_deref();
        let Some(field) = refused.and_then(|it| context.remote.omit_field(&row.id, model, it, &body)) else {
            return Err(fault);
        };
        progress.notice(Error::new(
            ErrorKind::Conflict,
            "remote.field_omitted",
            format!("{} doesn't accept \"{field}\" for this model, so it was left out.", progress.place),
            "Reset this setting to its default, or choose another model.",
        ));
    }
}

fn body(
    server: &Server,
    model: &str,
    request: &GenerateRequest,
    progress: &TurnProgress,
) -> Map<String, Value> {
    let mut messages = progress.messages.clone();
    let continuing = progress.had.as_ref().map(|had| (had, Dialect(server.kind).continuing()));
    if let Some((had, how)) = &continuing {
        messages.push((*had).clone());
        if *how == ContinuationStyle::Asked {
            let (role, content) = ("user".into(), CONTINUE.into());
            messages.push(PromptMessage { role, content, ..PromptMessage::default() });
        }
    }
    let mut body = Dialect(server.kind).body(model, &messages, request);
    match continuing {
        Some((_, ContinuationStyle::Marked)) => {
            body.insert("add_generation_prompt".into(), false.into());
            body.insert("continue_final_message".into(), true.into());
        }
        Some((_, ContinuationStyle::Asked)) => progress.notice(Error::new(
            ErrorKind::Conflict,
            "remote.continued_by_asking",
            "This server can't continue an unfinished answer, so the model was asked to.",
            "If the two parts don't fit together, regenerate the answer.",
        )),
        Some((_, ContinuationStyle::Placed)) | None => {}
    }
    body
}

/// What went wrong after the first word: the answer stays, and can go on.
fn midway(error: Error, place: &str) -> Error {
    match error.code() {
        "remote.too_large" => error,
        "remote.broken" => error,
        _ => *broken(place, error.message().trim_end_matches('.')).error,
    }
}
