//! WebSocket: one client for each connection, one message per frame of text, with the subprotocol `mcp`.

use std::sync::Arc;
use std::time::Duration;

use app::App;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use server::base64;
use tokio::io::{AsyncWrite, WriteHalf};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::PATH;
use crate::connection::{MAX_WAITING, serve};
use crate::dispatcher::RequestDispatcher;
use crate::frames::{ClientFrame, CloseReason, FrameReader, write_close, write_ping, write_pong, write_text};

/// Clients at the same time.
const MAX_CLIENTS: usize = 64;

/// A silent client is asked at this interval whether it is still there, and leaves after twice as long.
const PING_INTERVAL: Duration = Duration::from_secs(30);

/// Time for a client to end its side after a close frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// What RFC 6455 adds to a client's key.
const ACCEPT_SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Bytes of a client's key.
const KEY_BYTES: usize = 16;

const SUBPROTOCOL: &str = "mcp";

#[derive(Clone)]
struct WebSocketState {
    dispatcher: RequestDispatcher,
    clients: Arc<Semaphore>,
}

/// The routes of the transport.
pub fn routes(app: App) -> Router {
    let clients = Arc::new(Semaphore::new(MAX_CLIENTS));
    let state = WebSocketState { dispatcher: RequestDispatcher::new(app), clients };
    Router::new().route(PATH, get(upgrade)).with_state(state)
}

async fn upgrade(State(state): State<WebSocketState>, mut request: Request) -> Response {
    let (answer, protocol) = match handshake(request.headers()) {
        Ok(agreed) => agreed,
        Err(cause) => {
            let version = [(header::SEC_WEBSOCKET_VERSION, "13")];
            return (StatusCode::UPGRADE_REQUIRED, version, cause).into_response();
        }
    };
    let Some(upgrading) = request.extensions_mut().remove::<OnUpgrade>() else {
        return (StatusCode::UPGRADE_REQUIRED, "This connection can't be upgraded.").into_response();
    };
    let Ok(permit) = Arc::clone(&state.clients).try_acquire_owned() else {
        let wait = [(header::RETRY_AFTER, "5")];
        return (StatusCode::SERVICE_UNAVAILABLE, wait, "Too many clients are connected.").into_response();
    };
    tokio::spawn(async move {
        match upgrading.await {
            Ok(upgraded) => talk(state.dispatcher, upgraded, permit).await,
            Err(error) => tracing::debug!("a WebSocket did not begin: {error}"),
        }
    });
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, answer);
    if let Some(protocol) = protocol {
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    response
}

/// What the server answers to the client's key, and the subprotocol. Error: what is wrong with the request.
fn handshake(headers: &HeaderMap) -> Result<(HeaderValue, Option<HeaderValue>), &'static str> {
    let has = |name: header::HeaderName, wanted: &str| {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|value| value.trim().eq_ignore_ascii_case(wanted))
    };
    if !has(header::UPGRADE, "websocket") || !has(header::CONNECTION, "upgrade") {
        return Err("This address takes WebSocket connections.");
    }
    if !has(header::SEC_WEBSOCKET_VERSION, "13") {
        return Err("Only version 13 of WebSocket is supported.");
    }
    let key = headers.get(header::SEC_WEBSOCKET_KEY).and_then(|key| key.to_str().ok()).unwrap_or_default();
    if base64::decode(key).is_none_or(|bytes| bytes.len() != KEY_BYTES) {
        return Err("Sec-WebSocket-Key is missing or wrong.");
    }
    let digest = ring::digest::digest(
        &ring::digest::SHA1_FOR_LEGACY_USE_ONLY,
        format!("{key}{ACCEPT_SUFFIX}").as_bytes(),
    );
    let answer = HeaderValue::from_str(&base64::encode(digest.as_ref()))
        .map_err(|_| "Sec-WebSocket-Key is missing or wrong.")?;
    let offers = has(header::SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL);
    Ok((answer, offers.then(|| HeaderValue::from_static(SUBPROTOCOL))))
}

/// Serves a client until it leaves.
async fn talk(dispatcher: RequestDispatcher, upgraded: Upgraded, _permit: OwnedSemaphorePermit) {
    let (reader, writer) = tokio::io::split(TokioIo::new(upgraded));
    let (send, inbox) = channel(MAX_WAITING);
    let (outbox, outgoing) = channel(MAX_WAITING);
    let (control, controls) = channel(MAX_WAITING);
    let reading = read(FrameReader::new(reader), send, control);
    let writing = write(writer, outgoing, controls);
    // Dropped at the end: the requests of a client that left are cancelled.
    let mut serving = JoinSet::new();
    serving.spawn(serve(dispatcher, inbox, outbox));
    tokio::join!(reading, writing);
}

/// What goes to the client beside messages.
enum ControlReply {
    Ping,
    Pong(Vec<u8>),
    Close(CloseReason),
}

/// Until the client leaves or breaks the protocol.
async fn read(
    mut frames: FrameReader<impl tokio::io::AsyncRead + Unpin>,
    inbox: Sender<Vec<u8>>,
    control: Sender<ControlReply>,
) {
    let mut is_silent = false;
    let reason = loop {
        // A frame is read on after a ping: the future stays.
        let next = frames.next();
        tokio::pin!(next);
        let frame = loop {
            match tokio::time::timeout(PING_INTERVAL, &mut next).await {
                Ok(frame) => break Some(frame),
                Err(_) if is_silent => break None,
                Err(_) => {
                    is_silent = true;
                    if control.send(ControlReply::Ping).await.is_err() {
                        return;
                    }
                }
            }
        };
        is_silent = false;
        let passed_on = match frame {
            None => break CloseReason::Cut,
            Some(Err(reason)) => break reason,
            Some(Ok(ClientFrame::Close)) => break CloseReason::Normal,
            Some(Ok(ClientFrame::Pong)) => true,
            Some(Ok(ClientFrame::Ping(payload))) => control.send(ControlReply::Pong(payload)).await.is_ok(),
            Some(Ok(ClientFrame::Text(text))) => inbox.send(text).await.is_ok(),
        };
        if !passed_on {
            return;
        }
    };
    // The writer may have ended first.
    let _ = control.send(ControlReply::Close(reason)).await;
    // A connection that is dropped with unread bytes is reset, and the client never reads the close frame.
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, frames.skip_rest()).await;
}

/// Until the connection is closed or cut.
async fn write(
    mut writer: WriteHalf<impl AsyncWrite>,
    mut outgoing: Receiver<Value>,
    mut controls: Receiver<ControlReply>,
) {
    loop {
        let written = tokio::select! {
            Some(reply) = controls.recv() => match reply {
                ControlReply::Ping => write_ping(&mut writer).await,
                ControlReply::Pong(payload) => write_pong(&mut writer, &payload).await,
                ControlReply::Close(reason) => {
                    if let Some(code) = reason.code() {
                        // The client may have left.
                        let _ = write_close(&mut writer, code).await;
                    }
                    return;
                }
            },
            Some(message) = outgoing.recv() => write_text(&mut writer, &message.to_string()).await,
            else => return,
        };
        if written.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(changes: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        // The key is the example of RFC 6455, section 1.3.
        let all = [
            ("upgrade", "websocket"),
            ("connection", "keep-alive, Upgrade"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        for (name, value) in all.iter().chain(changes) {
            headers.insert(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn the_example_of_rfc_6455_is_answered() {
        let (answer, protocol) = handshake(&headers(&[])).unwrap();
        assert_eq!((answer.to_str().unwrap(), protocol), ("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", None));
        let (_, protocol) = handshake(&headers(&[("sec-websocket-protocol", "chat, mcp")])).unwrap();
        assert_eq!(protocol.unwrap(), "mcp");
        for change in [
            ("upgrade", "h2c"),
            ("connection", "close"),
            ("sec-websocket-version", "8"),
            ("sec-websocket-key", "short"),
            ("sec-websocket-key", "dGhlIHNhbXBsZQ=="),
        ] {
            assert!(handshake(&headers(&[change])).is_err(), "{change:?}");
        }
    }
}
