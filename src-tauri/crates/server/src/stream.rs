//! Streams events as server-sent events in a response body.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use app::App;
use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_core::Stream;
use platform::EventLog;
use platform::Watch;

/// Cancels a turn when dropped, after the client disconnects or has its answer.
pub struct CancelOnDrop {
    app: App,
    turn: String,
}

impl CancelOnDrop {
    pub fn new(app: App, turn: String) -> Self {
        Self { app, turn }
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        // Has no effect on a finished turn; without a worker there are no turns.
        let _ = self.app.turn_cancel(&self.turn);
    }
}

/// Where a stream's events come from.
pub trait EventSource {
    /// One event.
    type Event;

    /// All events since the last call; `None` after the last one.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Vec<Self::Event>>>;
}

impl<E: Clone> EventSource for Watch<E> {
    type Event = E;

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Vec<E>>> {
        Watch::poll_next(self, context)
    }
}

/// Response body that writes batches of events.
pub struct Sse<S, F> {
    source: S,
    /// Formats a batch; `None` marks the end of the events.
    write: F,
    stopping: Watch<()>,
    /// Ends early when the server stops.
    ends_with_server: bool,
    is_over: bool,
}

impl<S, F> Sse<S, F>
where
    S: EventSource + Send + Unpin + 'static,
    F: FnMut(Option<Vec<S::Event>>) -> String + Send + Unpin + 'static,
{
    pub fn new(source: S, write: F, stopping: &Arc<EventLog<()>>, ends_with_server: bool) -> Self {
        Self { source, write, stopping: Watch::new(stopping, 0), ends_with_server, is_over: false }
    }

    pub fn into_response(self) -> Response {
        let headers =
            [(header::CONTENT_TYPE, "text/event-stream; charset=utf-8"), (header::CACHE_CONTROL, "no-store")];
        (StatusCode::OK, headers, Body::from_stream(self)).into_response()
    }
}

impl<S, F> Stream for Sse<S, F>
where
    S: EventSource + Send + Unpin + 'static,
    F: FnMut(Option<Vec<S::Event>>) -> String + Send + Unpin + 'static,
{
    type Item = Result<Bytes, std::convert::Infallible>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if this.is_over {
                return Poll::Ready(None);
            }
            let events = match this.source.poll_next(context) {
                Poll::Ready(events) => events,
                Poll::Pending if this.ends_with_server && this.stopping.poll_next(context).is_ready() => None,
                Poll::Pending => return Poll::Pending,
            };
            this.is_over = events.is_none();
            let text = (this.write)(events);
            if !text.is_empty() {
                return Poll::Ready(Some(Ok(text.into())));
            }
        }
    }
}

/// One server-sent event without a name.
pub fn event(data: &impl serde::Serialize) -> String {
    // Our own types always serialize.
    let data = serde_json::to_string(data).unwrap_or_else(|_| "null".into());
    format!("data: {data}\n\n")
}

/// One server-sent event whose name is its data's `type`.
pub fn named_event(data: &serde_json::Value) -> String {
    let name = data.get("type").and_then(serde_json::Value::as_str).unwrap_or("message");
    format!("event: {name}\ndata: {data}\n\n")
}
