//! Parts of OpenAI's API that this server does not have, told apart from unknown paths.

use axum::Router;
use axum::body::Body;
use axum::extract::OriginalUri;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::any;

use crate::RouteState;
use crate::body::read;
use crate::refusal::refuse;

/// The first part of the path, and what to do instead.
const NOT_OFFERED: &[(&str, &str)] = &[
    ("files", "Send the content of the file in the messages of the request."),
    ("uploads", "Send the content of the file in the messages of the request."),
    ("batches", "Answer the file with `nook batch --jsonl F`, which takes lines in OpenAI's batch form."),
    ("fine_tuning", "Use /api/v1/tunes, or `nook tune`."),
    ("vector_stores", "Use /v1/embeddings and /v1/rerank."),
    ("moderations", "Ask a model with /v1/chat/completions."),
    ("images", "Only texts are generated; models that see take images in /v1/chat/completions."),
    ("audio", "Only texts are generated."),
    ("assistants", "Use /v1/responses and /v1/conversations."),
    ("threads", "Use /v1/responses and /v1/conversations."),
];

/// Routes that answer 501.
pub fn routes() -> Router<RouteState> {
    NOT_OFFERED.iter().fold(Router::new(), |router, (name, _)| {
        router
            .route(&format!("/v1/{name}"), any(refused))
            .route(&format!("/v1/{name}/{{*rest}}"), any(refused))
    })
}

/// Reads the body first, so that a client that is still sending gets the answer.
async fn refused(OriginalUri(uri): OriginalUri, body: Body) -> Response {
    if let Err(refusal) = read(body).await {
        return refusal;
    }
    let name = uri.path().split('/').nth(2).unwrap_or_default();
    let remedy = NOT_OFFERED.iter().find(|(offered, _)| *offered == name).map_or("", |(_, remedy)| remedy);
    let message = format!("This server does not have OpenAI's /v1/{name}.");
    refuse(StatusCode::NOT_IMPLEMENTED, "server.not_offered", &message, remedy)
}
