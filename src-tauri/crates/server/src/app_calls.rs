//! The application's calls and events over HTTP, with the same names and types as in the window.

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use contract::Error;
use contract::ErrorKind;
use contract::types::{AppEvent, TurnEvent};
use serde::Deserialize;
use serde_json::Value;

use crate::body::read;
use crate::fault::{Fault, json_response};
use crate::guard::CallerState;
use crate::json_body;
use crate::stream::{Sse, event};
use crate::url_parts::{Path, Query};
use crate::whole_number::written_whole;

/// Handles `POST /api/{name}`; the body holds the arguments.
pub async fn call(state: CallerState, Path(name): Path<String>, body: Body) -> Response {
    run_call_with_body(state, &name, body).await
}

/// Runs a use case whose arguments are the body.
pub async fn run_call_with_body(state: CallerState, name: &str, body: Body) -> Response {
    let body = match read(body).await {
        Ok(body) => body,
        Err(refusal) => return refusal,
    };
    let args = if body.is_empty() { Ok(Value::Null) } else { json_body::parse(&body) };
    match args {
        Ok(args) => run_call(state, name, written_whole(args)).await,
        Err(error) => Fault(not_json(&error)).into_response(),
    }
}

/// Runs a use case.
pub async fn run_call(CallerState(shared): CallerState, name: &str, args: Value) -> Response {
    let name = name.to_owned();
    let outcome = tokio::task::spawn_blocking(move || shared.app.call(&name, args)).await;
    match outcome {
        Ok(Ok(value)) => json_response(StatusCode::OK, &value),
        Ok(Err(error)) => Fault(error).into_response(),
        Err(panic) => Fault(Error::bug(panic)).into_response(),
    }
}

fn not_json(error: &serde_json::Error) -> Error {
    Error::new(
        ErrorKind::Usage,
        "server.not_json",
        format!("The body is not JSON: {error}."),
        "Send a JSON object.",
    )
}

#[derive(Deserialize)]
pub struct AfterQuery {
    #[serde(default)]
    after: u64,
}

/// Handles `GET /api/turns/{turn}/events?after=SEQ`; ends with the turn.
pub async fn turn_events(
    CallerState(shared): CallerState,
    Path(turn): Path<String>,
    Query(AfterQuery { after }): Query<AfterQuery>,
) -> Response {
    match shared.app.watch_turn(&turn, after) {
        Ok(watch) => Sse::new(watch, all::<TurnEvent>, &shared.stopping, false).into_response(),
        Err(error) => Fault(error).into_response(),
    }
}

/// Handles `GET /api/events`; ends with the server.
pub async fn app_events(CallerState(shared): CallerState) -> Response {
    Sse::new(shared.app.watch_app(), all::<AppEvent>, &shared.stopping, true).into_response()
}

fn all<E: serde::Serialize>(events: Option<Vec<E>>) -> String {
    events.unwrap_or_default().iter().map(event).collect()
}
