//! WebSocket: one client for each connection, one message per frame of text, with the subprotocol `mcp`.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::ws::{CloseCode, CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use rmcp::transport::Transport;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use crate::bounded_transport::{BoundedTransport, PendingReply};
use crate::content::Content;
use crate::handler::McpHandler;
use crate::{MAX_MESSAGE_BYTES, PATH};

/// Clients at the same time.
const MAX_CLIENTS: usize = 64;

/// A silent client is asked after this time whether it is still there, and leaves after twice as long.
const PING_INTERVAL: Duration = Duration::from_secs(30);

/// Time for a close frame to be written.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

const SUBPROTOCOL: &str = "mcp";

#[derive(Clone)]
struct WebSocketState<C> {
    content: C,
    clients: Arc<Semaphore>,
}

/// The routes of the transport.
pub fn routes<C: Content>(content: C) -> Router {
    let state = WebSocketState { content, clients: Arc::new(Semaphore::new(MAX_CLIENTS)) };
    Router::new().route(PATH, any(upgrade::<C>)).with_state(state)
}

async fn upgrade<C: Content>(State(state): State<WebSocketState<C>>, upgrade: WebSocketUpgrade) -> Response {
    let Ok(permit) = Arc::clone(&state.clients).try_acquire_owned() else {
        let wait = [(header::RETRY_AFTER, "5")];
        return (StatusCode::SERVICE_UNAVAILABLE, wait, "Too many clients are connected.").into_response();
    };
    upgrade
        .protocols([SUBPROTOCOL])
        .max_message_size(MAX_MESSAGE_BYTES)
        .max_frame_size(MAX_MESSAGE_BYTES)
        .on_failed_upgrade(|error| tracing::debug!("a WebSocket did not begin: {error}"))
        .on_upgrade(move |socket| async move {
            serve(state.content, socket).await;
            drop(permit);
        })
}

/// Serves a client until it leaves.
async fn serve(content: impl Content, socket: WebSocket) {
    // Ends the requests too: their answers reach no client.
    let client_left = CancellationToken::new();
    let transport = BoundedTransport::new(WebSocketTransport::new(socket), client_left.clone());
    let handler = McpHandler::new(content, client_left.clone());
    match serve_server_with_ct(handler, transport, client_left).await {
        Ok(running) => {
            if let Err(panic) = running.waiting().await {
                tracing::error!("a client is no longer served: {panic}");
            }
        }
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {}
        Err(error) => tracing::info!("the client did not begin: {error}"),
    }
}

/// Messages of the protocol in frames of text.
struct WebSocketTransport {
    sink: Arc<Mutex<SplitSink<WebSocket, Message>>>,
    stream: SplitStream<WebSocket>,
    /// Reset whenever the client is heard.
    silence: Interval,
    /// Whether the client was asked since then.
    is_pinged: bool,
    refusal: PendingReply,
    /// Why the connection ends, once that is known.
    closing: Option<CloseCode>,
}

impl WebSocketTransport {
    fn new(socket: WebSocket) -> Self {
        let (sink, stream) = socket.split();
        let sink = Arc::new(Mutex::new(sink));
        let mut silence = interval(PING_INTERVAL);
        silence.set_missed_tick_behavior(MissedTickBehavior::Delay);
        silence.reset();
        let (refusal, closing) = (PendingReply::default(), None);
        Self { sink, stream, silence, is_pinged: false, refusal, closing }
    }

    /// Asks whether the client is still there. One that does not read what it gets is not asked.
    async fn ping(&mut self) {
        self.is_pinged = true;
        if let Ok(mut sink) = self.sink.try_lock() {
            // A failed write is noticed by the next read.
            let _ = timeout(CLOSE_TIMEOUT, sink.send(Message::Ping(Bytes::new()))).await;
        }
    }

    /// Writes a close frame, if the client still reads.
    async fn write_close(&mut self, code: CloseCode) {
        let sink = Arc::clone(&self.sink);
        let frame = Message::Close(Some(CloseFrame { code, reason: "".into() }));
        let writing = async move { sink.lock().await.send(frame).await };
        if !matches!(timeout(CLOSE_TIMEOUT, writing).await, Ok(Ok(()))) {
            tracing::debug!("a client left before the close frame");
        }
    }

    /// The next frame of text; `None`: the client has left or is about to be closed.
    async fn next_text(&mut self) -> Option<String> {
        loop {
            let frame = tokio::select! {
                frame = self.stream.next() => frame?,
                _ = self.silence.tick() => {
                    if self.is_pinged {
                        return None;
                    }
                    self.ping().await;
                    continue;
                }
            };
            self.silence.reset();
            self.is_pinged = false;
            match frame {
                Ok(Message::Text(text)) => return Some(text.as_str().to_owned()),
                Ok(Message::Ping(_) | Message::Pong(_)) => {}
                Ok(Message::Binary(_)) => self.closing = Some(close_code::UNSUPPORTED),
                // The next read writes the answer to it.
                Ok(Message::Close(_)) => {
                    let _ = timeout(CLOSE_TIMEOUT, self.stream.next()).await;
                    return None;
                }
                Err(error) => self.closing = Some(code_of(error)),
            }
            if self.closing.is_some() {
                return None;
            }
        }
    }
}

/// The code of the close frame for a broken frame (RFC 6455, section 7.4.1).
fn code_of(error: axum::Error) -> CloseCode {
    match error.into_inner().downcast_ref::<tungstenite::Error>() {
        Some(tungstenite::Error::Capacity(_)) => close_code::SIZE,
        Some(tungstenite::Error::Utf8(_)) => close_code::INVALID,
        _ => close_code::PROTOCOL,
    }
}

/// The answer to a text that is no message, with the id of its request where that can be read.
fn refusal_of(text: &str, error: &serde_json::Error) -> ServerJsonRpcMessage {
    match serde_json::from_str::<Value>(text) {
        Ok(value) => {
            let id = value.get("id").and_then(|id| RequestId::deserialize(id).ok());
            ServerJsonRpcMessage::error(ErrorData::invalid_request(error.to_string(), None), id)
        }
        Err(_) => ServerJsonRpcMessage::error(ErrorData::parse_error(error.to_string(), None), None),
    }
}

impl Transport<RoleServer> for WebSocketTransport {
    type Error = axum::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let sink = Arc::clone(&self.sink);
        async move {
            let text = serde_json::to_string(&message).map_err(axum::Error::new)?;
            sink.lock().await.send(Message::text(text)).await
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        while self.closing.is_none() {
            self.refusal.written().await;
            let Some(text) = self.next_text().await else { break };
            match serde_json::from_str(&text) {
                Ok(message) => return Some(message),
                Err(error) => {
                    let sending = self.send(refusal_of(&text, &error));
                    self.refusal.set(sending);
                }
            }
        }
        if let Some(code) = self.closing {
            self.write_close(code).await;
        }
        None
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        if self.closing.is_none() {
            self.write_close(close_code::NORMAL).await;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tungstenite::error::{CapacityError, ProtocolError};

    use super::*;

    #[test]
    fn a_close_frame_says_what_was_broken() {
        let too_long = CapacityError::MessageTooLong { size: 2, max_size: 1 };
        for (error, expected) in [
            (tungstenite::Error::Capacity(too_long), 1009),
            (tungstenite::Error::Utf8("at 1".into()), 1007),
            (tungstenite::Error::Protocol(ProtocolError::UnmaskedFrameFromClient), 1002),
        ] {
            assert_eq!(code_of(axum::Error::new(error)), expected);
        }
    }

    #[test]
    fn a_text_that_is_no_message_is_refused_with_its_id() {
        for (text, code, id) in [
            ("{", -32700, json!(null)),
            ("[1]", -32600, json!(null)),
            (r#"{"id":1,"method":"ping"}"#, -32600, json!(1)),
            (r#"{"jsonrpc":"2.0","id":"a"}"#, -32600, json!("a")),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600, json!(null)),
        ] {
            let error = serde_json::from_str::<ClientJsonRpcMessage>(text).expect_err(text);
            let refusal = serde_json::to_value(refusal_of(text, &error)).unwrap();
            assert_eq!((&refusal["error"]["code"], &refusal["id"]), (&json!(code), &id), "{text}");
        }
    }
}
