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

/// Response body that writes batches of events.
pub struct Sse<E, F> {
    watch: Watch<E>,
    /// Formats a batch; `None` marks the end of the events.
    write: F,
    stopping: Watch<()>,
    /// Ends early when the server stops.
    ends_with_server: bool,
    is_over: bool,
}

impl<E, F> Sse<E, F>
where
    E: Clone + Send + 'static,
    F: FnMut(Option<Vec<E>>) -> String + Send + Unpin + 'static,
{
    pub fn new(watch: Watch<E>, write: F, stopping: &Arc<EventLog<()>>, ends_with_server: bool) -> Self {
        Self { watch, write, stopping: Watch::new(stopping, 0), ends_with_server, is_over: false }
    }

    pub fn into_response(self) -> Response {
        let headers =
            [(header::CONTENT_TYPE, "text/event-stream; charset=utf-8"), (header::CACHE_CONTROL, "no-store")];
        (StatusCode::OK, headers, Body::from_stream(self)).into_response()
    }
}

impl<E, F> Stream for Sse<E, F>
where
    E: Clone + Send + 'static,
    F: FnMut(Option<Vec<E>>) -> String + Send + Unpin + 'static,
{
    type Item = Result<Bytes, std::convert::Infallible>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if this.is_over {
                return Poll::Ready(None);
            }
            let events = match this.watch.poll_next(context) {
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

/// One server-sent event.
pub fn event(data: &impl serde::Serialize) -> String {
    // Our own types always serialize.
    let data = serde_json::to_string(data).unwrap_or_else(|_| "null".into());
    format!("data: {data}\n\n")
}
