//! The OpenAI-compatible API: models, chat completions, embeddings and token counts.
//!
//! Rejects known but unsupported fields by name; ignores unknown fields.

mod embeddings;
mod request;
mod response;

use app::App;
use app::GenerateArgs;
use app::ServedModel;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use contract::types::{TurnEvent, TurnEventKind};
use io::{Clock, RealClock};
use platform::Watch;
use serde_json::{Value, json};

use crate::RouteState;
use crate::body::read;
use crate::fault::{OpenAiFault, json_response};
use crate::stream::{CancelOnDrop, Sse};
pub use embeddings::embeddings;
use request::ChatRequest;
use response::{CompletionBuilder, Identity, StreamWriter};

/// Handles `GET /v1/models`.
pub async fn models(State(shared): State<RouteState>) -> Response {
    match blocking(move || shared.app.models_served()).await {
        Ok(entries) => {
            let data: Vec<Value> = entries.iter().map(model_value).collect();
            json_response(StatusCode::OK, &json!({ "object": "list", "data": data }))
        }
        Err(fault) => fault.into_response(),
    }
}

/// Handles `GET /v1/models/{id}`.
pub async fn model(State(shared): State<RouteState>, Path(id): Path<String>) -> Response {
    match blocking(move || shared.app.model_served(&id)).await {
        Ok(entry) => json_response(StatusCode::OK, &model_value(&entry)),
        Err(fault) => fault.into_response(),
    }
}

fn model_value(ServedModel { id, context }: &ServedModel) -> Value {
    let mut value = json!({ "id": id, "object": "model", "created": 0, "owned_by": "inglenook" });
    if let Some(context) = context {
        value["max_model_len"] = json!(context);
    }
    value
}

/// Handles `POST /v1/chat/completions`.
pub async fn chat_completions(State(shared): State<RouteState>, body: Body) -> Response {
    let body = match read(body).await {
        Ok(body) => body,
        Err(refusal) => return refusal,
    };
    match answer(shared, &body).await {
        Ok(response) => response,
        Err(fault) => fault.into_response(),
    }
}

/// Handles `POST /tokenize` like vLLM: counts the prompt tokens of a chat request.
pub async fn tokenize(State(shared): State<RouteState>, body: Body) -> Response {
    let body = match read(body).await {
        Ok(body) => body,
        Err(refusal) => return refusal,
    };
    let counted = async {
        let ChatRequest { model, args, .. } = ChatRequest::parse(&body)?;
        blocking(move || shared.app.prompt_count(model, args)).await
    };
    match counted.await {
        Ok(counted) => {
            let value = json!({ "count": counted.tokens, "max_model_len": counted.context_limit });
            json_response(StatusCode::OK, &value)
        }
        Err(fault) => fault.into_response(),
    }
}

async fn answer(shared: RouteState, body: &[u8]) -> Result<Response, OpenAiFault> {
    let request = ChatRequest::parse(body)?;
    let ChatRequest { model, args, stream, include_usage } = request;
    let (app, turn, model) = start(shared.app.clone(), model, args).await?;
    let guard = CancelOnDrop::new(app.clone(), turn.clone());
    let watch = app.watch_turn(&turn, 0)?;
    let created = RealClock::new().now_utc_ms() / 1000;
    let identity = Identity { id: format!("chatcmpl-{}", turn.replace('-', "")), created, model };
    if !stream {
        return whole(watch, identity, guard).await;
    }
    // Wait for the model to accept the prompt, so that a rejected one still gets an error status.
    let mut first = watch;
    let begun = until_accepted(&mut first).await?;
    let mut writer = StreamWriter::new(identity, include_usage);
    let mut begun = Some(begun);
    let write = move |events: Option<Vec<TurnEvent>>| {
        // Holds the guard until the client disconnects or the answer is complete.
        let _guard = &guard;
        let mut text: String = begun.take().map_or_else(String::new, |begun| writer.begin(begun));
        match events {
            Some(events) => events.into_iter().for_each(|event| text.push_str(&writer.write(event.kind))),
            None => text.push_str(&writer.end()),
        }
        text
    };
    Ok(Sse::new(first, write, &shared.stopping, false).into_response())
}

/// Starts the turn. Returns it with the id of the model.
async fn start(
    app: App,
    model: Option<String>,
    args: GenerateArgs,
) -> Result<(App, String, String), OpenAiFault> {
    blocking(move || {
        // Library ids only: a request can't open arbitrary files.
        let model = match model {
            Some(model) => app.model_served(&model)?.id,
            None => app.model_served(&app.default_model()?)?.id,
        };
        let turn = app.generate(GenerateArgs { model: Some(model.clone()), ..args })?;
        Ok((app, turn, model))
    })
    .await
}

async fn next(watch: &mut Watch<TurnEvent>) -> Option<Vec<TurnEvent>> {
    std::future::poll_fn(|context| watch.poll_next(context)).await
}

/// Collects events until the model has accepted the prompt.
async fn until_accepted(watch: &mut Watch<TurnEvent>) -> Result<Vec<TurnEvent>, OpenAiFault> {
    let mut seen = Vec::new();
    while let Some(events) = next(watch).await {
        let mut is_accepted = false;
        for event in &events {
            match &event.kind {
                TurnEventKind::Queued { .. }
                | TurnEventKind::Loading { .. }
                | TurnEventKind::Compacting { .. }
                | TurnEventKind::Compacted { .. }
                | TurnEventKind::Notice { .. } => {}
                TurnEventKind::Failed { error } if !is_accepted => return Err(response::failed(error)),
                TurnEventKind::Prefill { .. }
                | TurnEventKind::Text { .. }
                | TurnEventKind::Reasoning { .. }
                | TurnEventKind::Revised { .. }
                | TurnEventKind::ToolCall { .. }
                | TurnEventKind::Done { .. }
                | TurnEventKind::Failed { .. } => is_accepted = true,
            }
        }
        seen.extend(events);
        if is_accepted {
            break;
        }
    }
    Ok(seen)
}

async fn whole(
    mut watch: Watch<TurnEvent>,
    identity: Identity,
    guard: CancelOnDrop,
) -> Result<Response, OpenAiFault> {
    let mut whole = CompletionBuilder::default();
    while let Some(events) = next(&mut watch).await {
        for event in events {
            whole.take(event.kind)?;
        }
    }
    drop(guard);
    Ok(json_response(StatusCode::OK, &whole.into_value(&identity)?))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> contract::Result<T> + Send + 'static,
) -> Result<T, OpenAiFault> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => Ok(outcome?),
        Err(panic) => Err(contract::Error::bug(panic).into()),
    }
}
