//! The OpenAI-compatible API: models, chat completions, completions, responses, conversations, embeddings, files,
//! batches.
//!
//! Rejects known but unsupported fields by name; ignores unknown fields.

mod answer_values;
pub mod batches;
pub mod chat;
pub mod completions;
mod conversations;
pub mod embeddings;
mod fields;
pub mod files;
mod format;
mod models;
mod not_offered;
mod pages;
pub mod rerank;
pub mod responses;
mod running_timings;
mod sampling_fields;
mod stored_completions;
mod tools;
mod turn_set;
mod uploads;

use app::{App, ServedModel};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use io::{Clock, RealClock};
use rand::RngCore;
use serde_json::Value;

use crate::RouteState;
use crate::body::read;
use crate::fault::{OpenAiFault, json_response};
pub use answer_values::logprobs_value;
pub use batches::Batches;
pub use chat::tokenize;
use fields::Result;
pub use models::{delete_model, model, models};
pub use responses::Responses;

/// A path that means llama.cpp's interface where it stands without `/v1`.
const LLAMA_CPP_PATH: &str = "/completions";

/// The routes, with and without `/v1`. `lib.rs` has those of models, files and token counts.
pub fn routes() -> Router<RouteState> {
    let items = get(conversations::items).post(conversations::add_items);
    let stored =
        get(stored_completions::one).post(stored_completions::update).delete(stored_completions::delete);
    let conversation = get(conversations::one).post(conversations::update).delete(conversations::delete);
    let all: [(&str, MethodRouter<RouteState>); 25] = [
        ("/chat/completions", post(chat::complete).get(stored_completions::list)),
        ("/chat/completions/input_tokens", post(chat::input_tokens)),
        ("/chat/completions/{id}", stored),
        ("/chat/completions/{id}/messages", get(stored_completions::messages)),
        ("/completions", post(completions::complete)),
        ("/embeddings", post(embeddings::embeddings)),
        ("/rerank", post(rerank::rerank)),
        ("/reranking", post(rerank::rerank)),
        ("/responses", post(responses::create)),
        ("/responses/input_tokens", post(responses::input_tokens)),
        ("/responses/compact", post(responses::compact)),
        ("/responses/{id}", get(responses::one).delete(responses::delete)),
        ("/responses/{id}/cancel", post(responses::cancel)),
        ("/responses/{id}/input_items", get(responses::input_items)),
        ("/conversations", post(conversations::create)),
        ("/conversations/{id}", conversation),
        ("/conversations/{id}/items", items),
        ("/conversations/{id}/items/{item}", get(conversations::item).delete(conversations::delete_item)),
        ("/batches", post(batches::create).get(batches::list)),
        ("/batches/{id}", get(batches::one)),
        ("/batches/{id}/cancel", post(batches::cancel)),
        ("/uploads", post(uploads::create)),
        ("/uploads/{id}/parts", post(uploads::add_part)),
        ("/uploads/{id}/complete", post(uploads::complete)),
        ("/uploads/{id}/cancel", post(uploads::cancel)),
    ];
    // `lib.rs` has them with `/v1`, where Anthropic's clients use the same paths.
    let router = Router::new()
        .route("/models", get(models))
        .route("/models/{*id}", get(model).delete(delete_model))
        .route("/files", post(files::create).get(files::list))
        .route("/files/{id}", get(files::one).delete(files::delete))
        .route("/files/{id}/content", get(files::content));
    let router = router.merge(not_offered::routes());
    all.into_iter().fold(router, |router, (path, methods)| {
        let router = match path {
            LLAMA_CPP_PATH => router,
            path => router.route(path, methods.clone()),
        };
        router.route(&format!("/v1{path}"), methods)
    })
}

/// Answers a request whose body is JSON by the value that `answer` makes of it.
async fn answered<F>(body: Body, answer: impl FnOnce(Bytes) -> F) -> Response
where
    F: Future<Output = Result<Response>>,
{
    match read(body).await {
        Ok(body) => answer(body).await.unwrap_or_else(IntoResponse::into_response),
        Err(refusal) => refusal,
    }
}

fn ok(value: &Value) -> Response {
    json_response(StatusCode::OK, value)
}

/// The model that answers. `name`: what the request says; None: the default model.
async fn answering_model(app: App, name: Option<String>) -> Result<ServedModel> {
    // Library ids only: a request can't open arbitrary files.
    blocking(move || app.model_for_request(name.as_deref())).await
}

/// Runs a use case, which may wait for the disk or the worker, apart from the threads of the network.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> contract::Result<T> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => Ok(outcome?),
        Err(panic) => Err(contract::Error::bug(panic).into()),
    }
}

fn now_ms() -> i64 {
    RealClock::new().now_utc_ms()
}

fn now_s() -> i64 {
    now_ms() / 1000
}

/// A new random id, such as `msg_…`.
pub fn new_id(prefix: &str) -> String {
    let mut bytes = [0_u8; 24];
    rand::rng().fill_bytes(&mut bytes);
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{prefix}_{hex}")
}

/// An object that was never stored, or is another key's.
fn no_such(what: &str, id: &str) -> OpenAiFault {
    OpenAiFault {
        status: StatusCode::NOT_FOUND,
        code: Some("not_found".into()),
        ..OpenAiFault::invalid(None, format!("There is no {what} with the id {id}."))
    }
}
