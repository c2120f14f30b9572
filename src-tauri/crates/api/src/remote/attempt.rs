//! Asking servers until one answers: by turns, the next at once where one fails before its first word, all of them again
//! after a pause. After the first word nothing is asked again by itself: what came is kept.

use std::time::Duration;

use serde_json::Value;
use session::EndpointRow;

use super::delta::{Reply, Wrong};
use super::dialect::Continuing;
use super::http::{Again, Answer, Call, Fault, broken, malformed, quote, too_large};
use super::sse::Events;
use super::turn::Told;
use super::{Desk, Server, look};
use crate::error::{Error, ErrorKind, Result};
use crate::types::ConnectionPurpose;
use crate::worker::protocol::{GenerateRequest, Location, PromptMessage};

/// How often all servers of a name are asked, with a pause before each round but the first.
const MAX_ROUNDS: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// A server that wants a longer pause is not waited for.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A pause that people notice is told.
const NOTICED_PAUSE: Duration = Duration::from_secs(2);

/// What continues an answer where nothing else does.
const CONTINUE: &str = "Your last answer was cut off. Go on exactly where it ends, in the middle of the sentence if it \
                        ends there. Repeat nothing and explain nothing.";

/// The whole answer has been told where this is `Ok`.
pub async fn attempts(desk: &Desk, request: &GenerateRequest, told: &mut Told<'_>) -> Result<()> {
    let Location::Remote { name, model } = &request.model.location else {
        return Err(Error::bug("a model of this machine was asked elsewhere"));
    };
    let mut pause = FIRST_PAUSE;
    let mut last = None;
    for round in 0..MAX_ROUNDS {
        let rows = desk.shared.candidates(name, model)?;
        let mut later = None;
        for at in desk.order(name, &rows) {
            let fault = match attempt(desk, &rows[at], model, request, told).await {
                Ok(()) => {
                    desk.shared.remote.known().pool.worked(&rows[at].id);
                    return Ok(());
                }
                Err(fault) => fault,
            };
            if fault.again != Again::Never && fault.error.code() != "remote.model_gone" {
                desk.failed(&rows[at].id, &fault.error);
            }
            if !told.is_empty() {
                return Err(midway(fault.error, &told.place));
            }
            match fault.again {
                Again::Never => return Err(fault.error),
                Again::Elsewhere => {}
                Again::Later(wait) => {
                    let wait = wait.unwrap_or_default();
                    later = Some(later.map_or(wait, |least: Duration| least.min(wait)));
                }
            }
            tracing::info!(code = fault.error.code(), turn = told.turn, "asked again: {}", fault.error);
            last = Some(fault.error);
        }
        let Some(wait) = later.map(|wait| wait.max(pause)).filter(|wait| *wait <= LONGEST_PAUSE) else {
            break;
        };
        if round + 1 == MAX_ROUNDS {
            break;
        }
        if let Some(error) = last.as_ref().filter(|_| wait >= NOTICED_PAUSE) {
            let message = format!("{} Retrying in {} seconds.", error.message(), wait.as_secs());
            told.notice(Error::new(error.kind, "remote.asked_again", message, error.remedy()));
        }
        tokio::time::sleep(wait).await;
        pause *= 2;
    }
    Err(last.unwrap_or_else(|| Error::bug("no server was asked")))
}

impl Desk {
    /// Whose turn it is; those that rested long enough are looked at meanwhile.
    fn order(&self, name: &str, rows: &[EndpointRow]) -> Vec<usize> {
        let ids: Vec<String> = rows.iter().map(|row| row.id.clone()).collect();
        let now = self.shared.clock.monotonic();
        let mut known = self.shared.remote.known();
        let order = known.pool.order(name, &ids, now);
        let due = known.pool.take_due(&ids, now);
        drop(known);
        for id in due.into_iter().filter(|id| order.first().is_none_or(|&at| ids[at] != *id)) {
            look::in_passing(self, id);
        }
        order
    }

    fn failed(&self, id: &str, error: &Error) {
        let now = self.shared.clock.monotonic();
        self.shared.remote.known().pool.failed(id, error.info.clone(), now);
    }
}

async fn attempt(
    desk: &Desk,
    row: &EndpointRow,
    model: &str,
    request: &GenerateRequest,
    told: &mut Told<'_>,
) -> Result<(), Fault> {
    let server = desk.shared.server_of(row).map_err(|error| Fault { error, again: Again::Elsewhere })?;
    let body = body(&server, model, request, told);
    told.place = server.address.place();
    told.key.clone_from(&server.key);
    told.reply = Reply::default();
    let call = Call {
        address: &server.address,
        url: server.address.route("/chat/completions"),
        key: server.key.as_ref(),
        body: Some(body),
        purpose: ConnectionPurpose::Answer,
        silence: desk.silence(),
    };
    let mut answer = desk.http()?.ask(&desk.shared, call).await?;
    if answer.is_stream() { stream(&mut answer, told).await } else { whole(&mut answer, told).await }
}

fn body(server: &Server, model: &str, request: &GenerateRequest, told: &Told) -> Vec<u8> {
    let mut messages = told.messages.clone();
    let continuing = told.had.as_ref().map(|had| (had, server.kind.continuing()));
    if let Some((had, how)) = &continuing {
        messages.push((*had).clone());
        if *how == Continuing::Asked {
            let (role, content) = ("user".into(), CONTINUE.into());
            messages.push(PromptMessage { role, content, ..PromptMessage::default() });
        }
    }
    let mut body = server.kind.body(model, &messages, request);
    match continuing {
        Some((_, Continuing::Marked)) => {
            body.insert("add_generation_prompt".into(), false.into());
            body.insert("continue_final_message".into(), true.into());
        }
        Some((_, Continuing::Asked)) => told.notice(Error::new(
            ErrorKind::Conflict,
            "remote.continued_by_asking",
            "This server can't continue an unfinished answer, so the model was asked to.",
            "If the two parts don't fit together, regenerate the answer.",
        )),
        Some((_, Continuing::Placed)) | None => {}
    }
    Value::Object(body).to_string().into_bytes()
}

async fn stream(answer: &mut Answer, told: &mut Told<'_>) -> Result<(), Fault> {
    let place = told.place.clone();
    let mut events = Events::default();
    while let Some(bytes) = answer.next().await? {
        for data in events.push(&bytes).map_err(|_| too_large(&place))? {
            take(told, &place, |reply| reply.take(&data))?;
        }
        if told.reply.is_done {
            break;
        }
    }
    if let Some(data) = events.end() {
        take(told, &place, |reply| reply.take(&data))?;
    }
    take(told, &place, |reply| Ok(reply.rest()))?;
    // Some servers leave the end mark out, but none the reason.
    match told.reply.is_done || told.reply.reason.is_some() {
        true => Ok(()),
        false => Err(broken(&place, "it ended before the answer did")),
    }
}

/// A server that doesn't stream answers at once.
async fn whole(answer: &mut Answer, told: &mut Told<'_>) -> Result<(), Fault> {
    let place = told.place.clone();
    let value = answer.json().await?;
    take(told, &place, |reply| reply.take_value(&value, "message"))?;
    take(told, &place, |reply| Ok(reply.rest()))?;
    match told.reply.reason {
        Some(_) => Ok(()),
        None => Err(malformed(&place, "it has no finish_reason")),
    }
}

fn take(
    told: &mut Told<'_>,
    place: &str,
    read: impl FnOnce(&mut Reply) -> std::result::Result<super::delta::Delta, Wrong>,
) -> Result<(), Fault> {
    let key = told.key.clone();
    let delta = read(&mut told.reply).map_err(|wrong| match wrong {
        Wrong::Malformed(why) => malformed(place, &why),
        Wrong::TooLong => too_large(place),
        Wrong::Server(words) => Fault::new(
            Again::Later(None),
            ErrorKind::Device,
            "remote.failing",
            format!("{place} failed while answering{}", quote(&words, key.as_ref())),
            "Try again. If it keeps happening, check the log of that server.",
        ),
    })?;
    if told.take(delta) { Ok(()) } else { Err(too_large(place)) }
}

/// What went wrong after the first word: the answer stays, and can go on.
fn midway(error: Error, place: &str) -> Error {
    match error.code() {
        "remote.too_large" => error,
        "remote.broken" => error,
        _ => broken(place, error.message().trim_end_matches('.')).error,
    }
}
