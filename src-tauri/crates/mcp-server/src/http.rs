//! Streamable HTTP: `rmcp`'s service with our limits.
//!
//! The stateless revision has no sessions. Earlier ones have them from their handshake to a DELETE.

use std::sync::Arc;

use axum::Router;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use crate::content::Content;
use crate::handler::McpHandler;
use crate::sessions::BoundedSessions;
use crate::{MAX_MESSAGE_BYTES, PATH};

/// The routes of the transport.
pub fn routes(content: impl Content) -> Router {
    // `server` has checked Host and Origin against the address that it listens on.
    let mut config = StreamableHttpServerConfig::default().disable_allowed_hosts();
    config.max_request_body_bytes = MAX_MESSAGE_BYTES;
    // Of the stateless revision; an answer with notifications stays a stream of events.
    config.json_response = true;
    let handler = move || Ok(McpHandler::new(content.clone(), CancellationToken::new()));
    let service = StreamableHttpService::new(handler, Arc::<BoundedSessions>::default(), config);
    Router::new().route_service(PATH, service)
}
