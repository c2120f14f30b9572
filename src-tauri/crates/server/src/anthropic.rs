//! Anthropic's API: messages, whole or streamed, in batches, counts of their tokens, models and files.

pub mod batches;
mod fault;
pub mod files;
mod messages;
mod models;
pub mod request;
mod response;

use app::App;
use axum::Router;
use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use contract::Result;
use serde_json::{Value, json};

use crate::RouteState;
use crate::body::read;
use crate::fault::json_response;
use crate::guard::CallerState;
use crate::running_turn::{RunningTurn, blocking};
use crate::whole_answer::AnswerBuilder;
pub use batches::MessageBatches;
use fault::AnthropicFault;
pub use models::{model, models};
use request::MessagesRequest;
use response::{EventWriter, MessageHead, message_of};

pub fn routes() -> Router<RouteState> {
    Router::new()
        .route("/v1/messages", post(messages))
        .route("/v1/messages/count_tokens", post(count_tokens))
        .merge(batches::routes())
}

/// Handles `POST /v1/messages`.
async fn messages(CallerState(shared): CallerState, body: Body) -> Response {
    let body = match read(body).await {
        Ok(body) => body,
        Err(refusal) => return refusal,
    };
    match answer(shared, &body).await {
        Ok(response) => response,
        Err(error) => AnthropicFault::from(error).into_response(),
    }
}

/// Handles `POST /v1/messages/count_tokens`.
async fn count_tokens(CallerState(shared): CallerState, body: Body) -> Response {
    let body = match read(body).await {
        Ok(body) => body,
        Err(refusal) => return refusal,
    };
    match count(shared, &body).await {
        Ok(value) => json_response(StatusCode::OK, &value),
        Err(error) => AnthropicFault::from(error).into_response(),
    }
}

async fn answer(shared: RouteState, body: &[u8]) -> Result<Response> {
    let request = MessagesRequest::parse(body)?;
    if !request.stream {
        return Ok(json_response(StatusCode::OK, &whole_message(shared.app, request).await?));
    }
    let (mut running, head) = started(shared.app.clone(), request).await?;
    let before = running.until_accepted().await?;
    let body = running.into_body(before, EventWriter::new(head), &shared);
    let headers =
        [(header::CONTENT_TYPE, "text/event-stream; charset=utf-8"), (header::CACHE_CONTROL, "no-store")];
    Ok((StatusCode::OK, headers, body).into_response())
}

async fn started(app: App, request: MessagesRequest) -> Result<(RunningTurn, MessageHead)> {
    let MessagesRequest { model, args, show, .. } = request;
    let stops = args.stop.clone();
    let running = RunningTurn::start(app, model, args).await?;
    let id = format!("msg_{}", running.turn.replace('-', ""));
    let head = MessageHead { id, model: running.model.clone(), stops, show };
    Ok((running, head))
}

/// Answers a request by one whole message, even where it asks for a stream.
async fn message(app: App, body: &[u8]) -> Result<Value> {
    whole_message(app, MessagesRequest::parse(body)?).await
}

async fn whole_message(app: App, request: MessagesRequest) -> Result<Value> {
    let (mut running, head) = started(app, request).await?;
    let mut answer = AnswerBuilder::default();
    while let Some(events) = running.next().await {
        events.into_iter().try_for_each(|kind| answer.take(kind))?;
    }
    Ok(message_of(&answer.build()?, &head))
}

async fn count(shared: RouteState, body: &[u8]) -> Result<Value> {
    let MessagesRequest { model, args, .. } = MessagesRequest::parse(body)?;
    let counted = blocking(move || {
        let model = shared.app.model_for_request(model.as_deref())?.id;
        shared.app.prompt_count(Some(model), args)
    });
    Ok(json!({ "input_tokens": counted.await?.tokens }))
}
