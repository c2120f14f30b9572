//! Ollama's API: chat, generate, embed, and the library. Streams are JSON objects, one per line.
//!
//! Shares the prefix `/api/` with the application's own calls, whose names contain an underscore or differ from these.

mod context_window;
mod embed;
mod keep_alive;
mod library;
pub mod pull;
pub mod request;
mod response;

use app::{App, GenerateArgs, SamplingArgs};
use axum::Router;
use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete as on_delete, get, post};
use contract::protocol::{ChatOptions, GapText, Prompt};
use contract::{Error, Result};
use io::{Clock, RealClock};
use serde_json::{Value, json};

use crate::RouteState;
use crate::body::read;
use crate::fault::{full_text, json_response, status, with_retry_after};
use crate::guard::CallerState;
use crate::request_fields::{RequestFields, object};
use crate::running_turn::{RunningTurn, blocking};
use crate::whole_answer::AnswerBuilder;
use context_window::ContextWindow;
use contract::types::TurnEventKind;
use keep_alive::KeepAlive;
pub use keep_alive::ModelExpiries;
use pull::PullRequest;
use request::{AnswerKind, OllamaRequest};
use response::{AnswerHead, LineWriter, object_of};

/// The version of Ollama's interface that these routes follow; clients compare it.
const INTERFACE_VERSION: &str = "0.12.0";

pub fn routes() -> Router<RouteState> {
    Router::new()
        .route("/api/chat", post(chat))
        .route("/api/generate", post(generate))
        .route("/api/embed", post(embed))
        .route("/api/embeddings", post(embeddings))
        .route("/api/tags", get(tags))
        .route("/api/ps", get(ps))
        .route("/api/show", post(show))
        .route("/api/version", get(version))
        .route("/api/pull", post(pull))
        .route("/api/copy", post(copy))
        .route("/api/create", post(create))
        .route("/api/push", post(push))
        .route("/api/blobs/{digest}", post(blob).head(blob))
        .route("/api/delete", on_delete(delete))
}

/// Handles `POST /api/chat`.
async fn chat(CallerState(shared): CallerState, body: Body) -> Response {
    answered(&shared, AnswerKind::Chat, body).await
}

/// Handles `POST /api/generate`.
async fn generate(CallerState(shared): CallerState, body: Body) -> Response {
    answered(&shared, AnswerKind::Generate, body).await
}

/// Handles `GET /api/version`.
async fn version() -> Response {
    json_response(StatusCode::OK, &json!({ "version": INTERFACE_VERSION }))
}

/// Handles `GET /api/tags`.
async fn tags(CallerState(shared): CallerState) -> Response {
    respond(blocking(move || library::tags(&shared.app)).await)
}

/// Handles `GET /api/ps`.
async fn ps(CallerState(shared): CallerState) -> Response {
    respond(blocking(move || library::ps(&shared.app, &shared.expiries)).await)
}

/// Handles `POST /api/show`.
async fn show(CallerState(shared): CallerState, body: Body) -> Response {
    by_body(shared, body, |app, body| library::show(app, &named(body)?)).await
}

/// Handles `POST /api/embed`.
async fn embed(CallerState(shared): CallerState, body: Body) -> Response {
    by_body(shared, body, embed::embed).await
}

/// Handles `POST /api/embeddings`.
async fn embeddings(CallerState(shared): CallerState, body: Body) -> Response {
    by_body(shared, body, embed::embeddings).await
}

/// Handles `DELETE /api/delete`: the model leaves the library; its own files can be had back for a week.
async fn delete(CallerState(shared): CallerState, body: Body) -> Response {
    let remove = |app: &App, body: &[u8]| {
        let id = app.model_named(&named(body)?)?.id;
        app.model_remove(&id)?;
        Ok(json!({}))
    };
    by_body(shared, body, remove).await
}

/// Handles `POST /api/copy`: a model has one name here.
async fn copy() -> Response {
    not_offered("Models can't be copied: a model of this library has one name.")
}

/// Handles `POST /api/create`: models are files, and what a Modelfile adds goes with each request.
async fn create() -> Response {
    not_offered(
        "Models can't be created here. Add a file with `nook models import PATH`, and send the system prompt and options \
         with each request.",
    )
}

/// Handles `POST /api/push`.
async fn push() -> Response {
    not_offered("Models of this library are not sent to other servers.")
}

/// Handles `/api/blobs/{digest}`, which clients use before `/api/create`.
async fn blob() -> Response {
    not_offered("Model files are not uploaded here. Add one with `nook models import PATH`.")
}

fn not_offered(message: &str) -> Response {
    json_response(StatusCode::NOT_IMPLEMENTED, &json!({ "error": message }))
}

/// Handles `POST /api/pull`.
async fn pull(CallerState(shared): CallerState, body: Body) -> Response {
    let body = match read(body).await {
        Ok(body) => body,
        Err(refusal) => return refusal,
    };
    match PullRequest::parse(&body) {
        Ok(pull) if pull.stream => match pull::streamed(&shared, pull).await {
            Ok(body) => lines(body),
            Err(error) => refusal(&error),
        },
        Ok(pull) => respond(pull::whole(&shared, pull).await),
        Err(error) => refusal(&error),
    }
}

async fn answered(shared: &RouteState, kind: AnswerKind, body: Body) -> Response {
    let body = match read(body).await {
        Ok(body) => body,
        Err(refusal) => return refusal,
    };
    match answer(shared, kind, &body).await {
        Ok(response) => response,
        Err(error) => refusal(&error),
    }
}

async fn answer(shared: &RouteState, kind: AnswerKind, body: &[u8]) -> Result<Response> {
    let OllamaRequest { model, mut args, stream, is_empty, keep_alive, suffix, window } =
        OllamaRequest::parse(kind, body)?;
    if is_empty {
        return without_prompt(shared, kind, model, keep_alive).await;
    }
    if let (Some(suffix), Prompt::Raw(prefix)) = (suffix, &args.prompt) {
        let (app, model, prefix) = (shared.app.clone(), model.clone(), prefix.clone());
        let ids = blocking(move || {
            let id = app.model_for_request(Some(&model))?.id;
            app.fill_in_prompt(&id, GapText { prefix, suffix, files: Vec::new() })
        });
        args.prompt = Prompt::Ids(ids.await?.iter().map(|token| token.id).collect());
    }
    let (mut running, before) = accepted(shared, model, args, window).await?;
    let head = AnswerHead { model: running.model.clone(), kind };
    if stream {
        shared.expiries.apply(&shared.app, &head.model, keep_alive);
        let writer = LineWriter::new(head);
        return Ok(lines(running.into_body(before, writer, shared)));
    }
    let mut answer = AnswerBuilder::default();
    before.into_iter().try_for_each(|kind| answer.take(kind))?;
    while let Some(events) = running.next().await {
        events.into_iter().try_for_each(|kind| answer.take(kind))?;
    }
    let value = object_of(&answer.build()?, &head);
    match keep_alive.is_unload() {
        true => {
            let app = shared.app.clone();
            blocking(move || app.model_unload(&head.model)).await?;
        }
        false => shared.expiries.apply(&shared.app, &head.model, keep_alive),
    }
    Ok(json_response(StatusCode::OK, &value))
}

/// Starts an answer whose prompt fits the context, and returns its first events.
async fn accepted(
    shared: &RouteState,
    model: String,
    args: GenerateArgs,
    window: ContextWindow,
) -> Result<(RunningTurn, Vec<TurnEventKind>)> {
    let fit = |args: GenerateArgs| {
        let (app, model) = (shared.app.clone(), model.clone());
        blocking(move || {
            let model = app.model_for_request(Some(&model))?.id;
            window.fit(&app, &model, args)
        })
    };
    // Most chats fit: only a bound of the request's own has to be counted for.
    let args = if window.n_tokens.is_some() { fit(args).await? } else { args };
    let mut running = RunningTurn::start(shared.app.clone(), Some(model.clone()), args.clone()).await?;
    match running.until_accepted().await {
        Err(error)
            if error.code() == "request.context_full" && window.n_tokens.is_none() && window.truncates =>
        {
            drop(running);
            let args = fit(args).await?;
            let mut running = RunningTurn::start(shared.app.clone(), Some(model.clone()), args).await?;
            let before = running.until_accepted().await?;
            Ok((running, before))
        }
        outcome => Ok((running, outcome?)),
    }
}

/// A text that any vocabulary has, for a model that is only to be loaded.
const LOAD_PROMPT: &str = "\n";

/// Loads a model by letting it read a text of one character, or unloads it.
async fn without_prompt(
    shared: &RouteState,
    kind: AnswerKind,
    name: String,
    keep_alive: KeepAlive,
) -> Result<Response> {
    let (app, is_unload) = (shared.app.clone(), keep_alive.is_unload());
    let model = blocking(move || {
        let id = app.model_for_request(Some(&name))?.id;
        if is_unload {
            app.model_unload(&id)?;
        }
        Ok(id)
    })
    .await?;
    if !is_unload {
        let args = GenerateArgs {
            model: None,
            prompt: Prompt::Raw(LOAD_PROMPT.into()),
            sampling: SamplingArgs::default(),
            max_tokens: Some(1),
            stop: Vec::new(),
            ignore_eos: false,
            chat: ChatOptions::default(),
            constraint: None,
            logprobs: None,
        };
        let mut running = RunningTurn::start(shared.app.clone(), Some(model.clone()), args).await?;
        running.until_accepted().await?;
        drop(running);
        shared.expiries.apply(&shared.app, &model, keep_alive);
    }
    let reason = if is_unload { "unload" } else { "load" };
    Ok(json_response(StatusCode::OK, &AnswerHead { model, kind }.without_prompt(reason)))
}

async fn by_body(
    shared: RouteState,
    body: Body,
    work: impl FnOnce(&App, &[u8]) -> Result<Value> + Send + 'static,
) -> Response {
    match read(body).await {
        Ok(body) => respond(blocking(move || work(&shared.app, &body)).await),
        Err(refusal) => refusal,
    }
}

fn named(body: &[u8]) -> Result<String> {
    let object = object(body)?;
    request::model(RequestFields(&object))
}

fn respond(outcome: Result<Value>) -> Response {
    match outcome {
        Ok(value) => json_response(StatusCode::OK, &value),
        Err(error) => refusal(&error),
    }
}

/// An error in Ollama's form: `{"error": "…"}`.
fn refusal(error: &Error) -> Response {
    with_retry_after(json_response(status(error), &json!({ "error": full_text(error) })))
}

fn lines(body: Body) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/x-ndjson"), (header::CACHE_CONTROL, "no-store")];
    (StatusCode::OK, headers, body).into_response()
}

fn line(value: &Value) -> String {
    format!("{value}\n")
}

fn created_at() -> String {
    time(RealClock::new().now_utc_ms())
}

fn time(utc_ms: i64) -> String {
    format!("{}Z", platform::calendar::date_time(utc_ms))
}
