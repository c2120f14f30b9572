//! Fine-tuning runs as resources: the same use cases as `POST /api/tune_start` and its neighbours.

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use axum::routing::{get, post};
use serde_json::json;

use crate::RouteState;
use crate::app_calls::{run_call, run_call_with_body};
use crate::guard::CallerState;
use crate::url_parts::Path;

/// Routes under `/api/v1/tunes`.
pub fn routes() -> Router<RouteState> {
    Router::new()
        .route("/api/v1/tunes", get(list).post(start))
        .route("/api/v1/tunes/preview", post(preview))
        .route("/api/v1/tunes/{id}", get(read).delete(remove))
        .route("/api/v1/tunes/{id}/pause", post(pause))
        .route("/api/v1/tunes/{id}/resume", post(resume))
        .route("/api/v1/tunes/{id}/stop", post(stop))
}

async fn list(state: CallerState) -> Response {
    run_call(state, "tunes_list", json!({})).await
}

async fn start(state: CallerState, body: Body) -> Response {
    run_call_with_body(state, "tune_start", body).await
}

async fn preview(state: CallerState, body: Body) -> Response {
    run_call_with_body(state, "tune_preview", body).await
}

async fn read(state: CallerState, Path(id): Path<String>) -> Response {
    run_call(state, "tune_get", json!({ "id": id })).await
}

async fn remove(state: CallerState, Path(id): Path<String>) -> Response {
    run_call(state, "tune_remove", json!({ "id": id })).await
}

async fn pause(state: CallerState, Path(id): Path<String>) -> Response {
    run_call(state, "tune_pause", json!({ "id": id })).await
}

async fn resume(state: CallerState, Path(id): Path<String>) -> Response {
    run_call(state, "tune_resume", json!({ "id": id })).await
}

async fn stop(state: CallerState, Path(id): Path<String>) -> Response {
    run_call(state, "tune_stop", json!({ "id": id })).await
}
