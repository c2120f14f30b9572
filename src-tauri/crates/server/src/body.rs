//! A request's body: bounded in size and in time.

use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;

use crate::fault::refuse;

/// Largest body: a long conversation many times over.
pub const MAX_BODY_BYTES: usize = 32 << 20;

/// A client that sends slower than this is not waited for.
const READ_WITHIN: Duration = Duration::from_secs(30);

/// Before anything of it is read: whether it says itself that it is too large.
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
    match tokio::time::timeout(READ_WITHIN, to_bytes(body, MAX_BODY_BYTES)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        // Too large without having said so, or broken off: then nobody reads this.
        Ok(Err(_)) => Err(too_large()),
        Err(_) => {
            let message = format!("The body took longer than {} seconds.", READ_WITHIN.as_secs());
            Err(refuse(
                StatusCode::REQUEST_TIMEOUT,
                "server.body_too_slow",
                &message,
                "Send the whole body without pauses.",
            ))
        }
    }
}
