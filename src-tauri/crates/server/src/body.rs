//! Reads request bodies, bounded in size and time.

use std::pin::Pin;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use futures_core::Stream;

use crate::refusal::refuse;

/// Largest body; far beyond any conversation.
pub const MAX_BODY_BYTES: usize = 32 << 20;

/// Time limit for reading a body.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// Whether `Content-Length` exceeds the limit; checked before reading.
pub fn is_too_large(headers: &HeaderMap) -> bool {
    let length =
        headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    length.is_some_and(|length| length > MAX_BODY_BYTES as u64)
}

pub fn too_large() -> Response {
    let message = format!("The body is larger than {MAX_BODY_BYTES} bytes.");
    refuse(
        StatusCode::PAYLOAD_TOO_LARGE,
        "server.body_too_large",
        &message,
        "Split it into smaller requests.",
    )
}

/// Reads a body of our own, of any size.
pub async fn read_any(body: Body) -> Result<Vec<u8>, axum::Error> {
    let mut chunks = body.into_data_stream();
    let mut bytes = Vec::new();
    while let Some(chunk) = std::future::poll_fn(|context| Pin::new(&mut chunks).poll_next(context)).await {
        bytes.extend_from_slice(&chunk?);
    }
    Ok(bytes)
}

async fn whole(body: Body) -> Result<Bytes, Response> {
    let mut chunks = body.into_data_stream();
    let mut bytes = Vec::new();
    while let Some(chunk) = std::future::poll_fn(|context| Pin::new(&mut chunks).poll_next(context)).await {
        // A client that has disconnected reads no answer.
        let chunk = chunk.map_err(|error| broken(&error))?;
        // without `Content-Length`
        if bytes.len() + chunk.len() > MAX_BODY_BYTES {
            return Err(too_large());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes.into())
}

fn broken(error: &axum::Error) -> Response {
    let message = format!("The body can't be read: {error}.");
    refuse(StatusCode::BAD_REQUEST, "server.body_broken", &message, "Check how the client writes its chunks.")
}

/// Reads a body.
///
/// Errors: the refusal of one that is too large, too slow or broken.
pub async fn read(body: Body) -> Result<Bytes, Response> {
    match tokio::time::timeout(READ_TIMEOUT, whole(body)).await {
        Ok(read) => read,
        Err(_) => {
            let message = format!("The body took longer than {} seconds.", READ_TIMEOUT.as_secs());
            Err(refuse(
                StatusCode::REQUEST_TIMEOUT,
                "server.body_too_slow",
                &message,
                "Send the whole body without pauses.",
            ))
        }
    }
}
