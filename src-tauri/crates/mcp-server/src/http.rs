//! Streamable HTTP: every message is a POST; an answer is JSON, or a stream of events where there is progress.
//!
//! The stateless revision has no sessions. Earlier ones have them from their handshake to a DELETE.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use app::App;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures_core::Stream;
use serde_json::Value;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::AbortHandle;
use tokio::time::Interval;

use crate::connection::MAX_WAITING;
use crate::dispatcher::RequestDispatcher;
use crate::notifier::wants_warnings;
use crate::revision::Revision;
use crate::rpc::{
    HEADER_MISMATCH, INVALID_REQUEST, METHOD_NOT_FOUND, RpcError, RpcMessage, RpcRequest,
    UNSUPPORTED_REVISION, parse, response,
};
use crate::sessions::{HttpSession, HttpSessions};
use crate::subscription::LISTEN;
use crate::{MAX_MESSAGE_BYTES, PATH, headers, lifecycle};

const SESSION: &str = "mcp-session-id";

/// A comment in a silent stream keeps those on the way from closing it.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

#[derive(Clone)]
struct HttpState {
    dispatcher: RequestDispatcher,
    sessions: Arc<HttpSessions>,
}

/// The routes of the transport.
pub fn routes(app: App) -> Router {
    let state = HttpState { dispatcher: RequestDispatcher::new(app), sessions: Arc::default() };
    Router::new().route(PATH, post(receive).get(watch).delete(end_session)).with_state(state)
}

/// Handles `GET`: notifications that belong to no request, for as long as the client listens.
async fn watch(State(state): State<HttpState>, headers: HeaderMap) -> Response {
    if !accepts_events(&headers) {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    // Revisions without sessions have no such stream.
    let Some(id) = session_id(&headers) else { return StatusCode::METHOD_NOT_ALLOWED.into_response() };
    let Some(session) = state.sessions.get(id) else { return StatusCode::NOT_FOUND.into_response() };
    let (outbox, inbox) = channel(MAX_WAITING);
    let task = tokio::spawn(async move { state.dispatcher.push_changes(&session.client, &outbox).await });
    EventBody { inbox, _task: Some(AbortOnDrop(task.abort_handle())), timer: None }.into_response()
}

async fn end_session(State(state): State<HttpState>, headers: HeaderMap) -> StatusCode {
    match session_id(&headers) {
        Some(id) if state.sessions.end(id) => StatusCode::NO_CONTENT,
        Some(_) => StatusCode::NOT_FOUND,
        None => StatusCode::BAD_REQUEST,
    }
}

fn session_id(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION)?.to_str().ok()
}

async fn receive(State(state): State<HttpState>, headers: HeaderMap, body: Body) -> Response {
    let Ok(bytes) = axum::body::to_bytes(body, MAX_MESSAGE_BYTES).await else {
        let error = RpcError::new(INVALID_REQUEST, "The message is too large, or was cut off.");
        return json_response(StatusCode::PAYLOAD_TOO_LARGE, &error.message(&Value::Null));
    };
    match parse(&bytes) {
        Ok(RpcMessage::Request(request)) => state.request(&headers, request).await,
        Ok(RpcMessage::Notification { method, params }) => {
            let session = session_id(&headers).and_then(|id| state.sessions.get(id));
            if let Some(session) = session.filter(|_| method == "notifications/cancelled") {
                session.running.cancel(&params);
            }
            StatusCode::ACCEPTED.into_response()
        }
        Ok(RpcMessage::Response) => StatusCode::ACCEPTED.into_response(),
        Err(malformed) => json_response(StatusCode::BAD_REQUEST, &malformed.error.message(&malformed.id)),
    }
}

/// How a request is served.
struct RequestTerms {
    revision: Revision,
    /// Of revisions with a handshake.
    session: Option<HttpSession>,
}

/// A refused request, with its status.
struct Refusal(StatusCode, RpcError);

impl HttpState {
    async fn request(&self, headers: &HeaderMap, request: RpcRequest) -> Response {
        if request.method == "initialize" && lifecycle::revision_in_meta(&request).is_none() {
            return self.initialize(&request);
        }
        match self.terms(headers, &request) {
            Ok(terms) => self.answer(headers, request, terms).await,
            Err(Refusal(status, error)) => json_response(status, &error.message(&request.id)),
        }
    }

    fn initialize(&self, request: &RpcRequest) -> Response {
        match lifecycle::initialize(request) {
            Ok((revision, result)) => {
                let id = self.sessions.begin(revision);
                let answer = json_response(StatusCode::OK, &response(&request.id, Ok(result)));
                ([(SESSION, id)], answer).into_response()
            }
            Err(error) => json_response(StatusCode::BAD_REQUEST, &error.message(&request.id)),
        }
    }

    /// The revision and session of a request.
    fn terms(&self, headers: &HeaderMap, request: &RpcRequest) -> Result<RequestTerms, Refusal> {
        let bad = |error: RpcError| Refusal(StatusCode::BAD_REQUEST, error);
        let in_header = headers.get(headers::REVISION).map(|value| value.to_str().unwrap_or_default());
        let is_stateless = in_header.and_then(Revision::of_name).is_some_and(Revision::is_stateless);
        if lifecycle::revision_in_meta(request).is_some() || is_stateless {
            if in_header.is_some() && lifecycle::revision_in_meta(request).is_some() {
                // Before the revision itself: who is on the way has read the header.
                headers::check_revision(headers, request).map_err(bad)?;
            }
            let revision = lifecycle::revision_by_itself(request).map_err(bad)?;
            if revision.is_stateless() {
                headers::check(headers, request).map_err(bad)?;
            }
            return Ok(RequestTerms { revision, session: None });
        }
        if let Some(name) = in_header.filter(|name| Revision::of_name(name).is_none()) {
            return Err(bad(lifecycle::unsupported(name)));
        }
        let Some(id) = session_id(headers) else {
            let error = lifecycle::revision_of(request, None).err();
            return Err(bad(error.unwrap_or_else(|| {
                RpcError::new(INVALID_REQUEST, "The header Mcp-Session-Id is missing.")
            })));
        };
        let session = self.sessions.get(id).ok_or_else(|| {
            let message = "The session has ended. Send `initialize` for another.";
            Refusal(StatusCode::NOT_FOUND, RpcError::new(INVALID_REQUEST, message))
        })?;
        let revision = lifecycle::revision_of(request, Some(session.revision)).map_err(bad)?;
        Ok(RequestTerms { revision, session: Some(session) })
    }

    /// Answers with events where the client asks for progress and accepts them, else with JSON.
    async fn answer(&self, headers: &HeaderMap, request: RpcRequest, terms: RequestTerms) -> Response {
        let (outbox, inbox) = channel(MAX_WAITING);
        let RequestTerms { revision, session } = terms;
        let client = session.as_ref().map_or_else(Arc::default, |session| Arc::clone(&session.client));
        let has_notifications = request.meta("progressToken").is_some()
            || request.method == "tools/call" && wants_warnings(&request, &client);
        let is_listening = revision.is_stateless() && request.method == LISTEN;
        if is_listening && !accepts_events(headers) {
            let error =
                RpcError::new(INVALID_REQUEST, "`subscriptions/listen` needs Accept: text/event-stream.");
            return json_response(StatusCode::NOT_ACCEPTABLE, &error.message(&request.id));
        }
        let wants_events = is_listening || has_notifications && accepts_events(headers);
        let (dispatcher, id) = (self.dispatcher.clone(), request.id.clone());
        let mut task = None;
        let start = || {
            let spawned = tokio::spawn(async move {
                let outcome = dispatcher.answer(&request, (revision, &client), &outbox).await;
                // The body of the answer notices that its client left.
                let _ = outbox.send(response(&request.id, outcome)).await;
            });
            let handle = spawned.abort_handle();
            task = Some(AbortOnDrop(handle.clone()));
            handle
        };
        match &session {
            Some(session) => {
                if let Err(error) = session.running.add(&id, start) {
                    return json_response(StatusCode::SERVICE_UNAVAILABLE, &error.message(&id));
                }
            }
            None => drop(start()),
        }
        let mut events = EventBody { inbox, _task: task, timer: None };
        if wants_events {
            return events.into_response();
        }
        let mut last = None;
        while let Some(message) = events.inbox.recv().await {
            last = Some(message);
        }
        match last.filter(|message| message.get("id").is_some()) {
            Some(message) => json_response(status_of(&message, revision), &message),
            // Cancelled: no client waits for an answer.
            None => StatusCode::NO_CONTENT.into_response(),
        }
    }
}

/// The HTTP status of an answer. Earlier revisions answer every request with 200.
fn status_of(message: &Value, revision: Revision) -> StatusCode {
    match message["error"]["code"].as_i64().filter(|_| revision.is_stateless()) {
        Some(METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(UNSUPPORTED_REVISION | HEADER_MISMATCH) => StatusCode::BAD_REQUEST,
        Some(_) | None => StatusCode::OK,
    }
}

fn accepts_events(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.any(|value| value.contains("text/event-stream") || value.contains("*/*"))
}

fn json_response(status: StatusCode, message: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], message.to_string()).into_response()
}

/// Cancels a request whose client left. Streams can't be resumed: no client could get the answer.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The messages of one request as server-sent events.
struct EventBody {
    inbox: Receiver<Value>,
    _task: Option<AbortOnDrop>,
    timer: Option<Interval>,
}

impl EventBody {
    fn into_response(mut self) -> Response {
        let mut timer = tokio::time::interval(KEEP_ALIVE);
        timer.reset();
        self.timer = Some(timer);
        let headers = [
            (header::CONTENT_TYPE.as_str(), "text/event-stream"),
            (header::CACHE_CONTROL.as_str(), "no-store"),
            ("x-accel-buffering", "no"),
        ];
        (StatusCode::OK, headers, Body::from_stream(self)).into_response()
    }
}

impl Stream for EventBody {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Poll::Ready(message) = self.inbox.poll_recv(context) {
            return Poll::Ready(message.map(|it| Ok(format!("event: message\ndata: {it}\n\n").into())));
        }
        match self.timer.as_mut().map(|timer| timer.poll_tick(context)) {
            Some(Poll::Ready(_)) => Poll::Ready(Some(Ok(Bytes::from_static(b":\n\n")))),
            Some(Poll::Pending) | None => Poll::Pending,
        }
    }
}
