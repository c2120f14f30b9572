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

/// The first part of the path behind `/v1/`, and what to do instead.
const NOT_OFFERED: &[(&str, &str)] = &[
    ("fine_tuning", "Use /api/v1/tunes, or `nook tune`."),
    ("vector_stores", "Use /v1/embeddings and /v1/rerank, or send files in the messages of a request."),
    ("moderations", "Ask a model with /v1/chat/completions."),
    ("images", "Only texts are generated; models that see take images in /v1/chat/completions."),
    ("videos", "Only texts are generated; models that see take images in /v1/chat/completions."),
    ("audio", "Only texts are generated."),
    ("realtime", "Stream the answer of /v1/responses or /v1/chat/completions."),
    ("live", "Stream the answer of /v1/responses or /v1/chat/completions."),
    ("evals", "Answer the examples with /v1/batches and compare the results."),
    ("containers", "Tools run in the client: answer with /v1/responses and `tools`."),
    ("skills", "Send what the model has to know in `instructions` or `system`."),
    ("assistants", "Use /v1/responses and /v1/conversations."),
    ("threads", "Use /v1/responses and /v1/conversations."),
    ("chatkit", "Use /v1/responses and /v1/conversations."),
    ("agents", "Use /v1/responses or /v1/messages; the client runs the tools."),
    ("sessions", "Use /v1/responses or /v1/messages; the client runs the tools."),
    ("environments", "Use /v1/responses or /v1/messages; the client runs the tools."),
    ("decisions", "Ask a model with /v1/responses and a JSON schema in `text.format`."),
    ("organization", "Keys are managed with `nook keys`, and counts are in /api/v1/stats."),
    ("organizations", "Keys are managed with `nook keys`, and counts are in /api/v1/stats."),
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
    let message = format!("This server does not have {}: no route begins with /v1/{name}.", uri.path());
    refuse(StatusCode::NOT_IMPLEMENTED, "server.not_offered", &message, remedy)
}
