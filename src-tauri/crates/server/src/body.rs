//! Reads request bodies, bounded in size and time.

use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;

use crate::fault::refuse;

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

pub async fn read(body: Body) -> Result<Bytes, Response> {
    match tokio::time::timeout(READ_TIMEOUT, to_bytes(body, MAX_BODY_BYTES)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        // Too large without `Content-Length`, or disconnected; then no client reads this.
        Ok(Err(_)) => Err(too_large()),
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
