//! Server of the Model Context Protocol: models and saved chats as tools and resources for other programs.
//!
//! The protocol itself is `rmcp`. Over standard input and output, streamable HTTP, or WebSocket. Nothing but messages of
//! the protocol goes to stdout. Network transports stand behind the checks of `server`: source, key, connection limits.
#![forbid(unsafe_code)]

mod answer;
mod app_content;
mod arguments;
mod bounded_transport;
mod calls;
mod client_state;
mod content;
mod content_change;
mod handler;
mod http;
mod notifier;
mod prompts;
mod resources;
mod results;
mod sessions;
mod stdio;
mod subscription;
mod tools;
mod websocket;

use app::{App, Caller, Interface};
use contract::Result;
use server::{Options, RunningServer};

use app_content::AppContent;
pub use content::Content;
pub use content_change::{ContentChange, ContentChanges};
pub use notifier::{CallNotifiers, LogNotifier, ProgressNotifier};
pub use stdio::serve_stdio;

/// Path of the protocol on network transports.
pub const PATH: &str = "/mcp";

/// Largest message of a client.
const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// A transport that listens on a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkTransport {
    /// Streamable HTTP.
    Http,
    /// One client for each connection.
    WebSocket,
}

/// A server that listens. Stops when dropped.
pub struct ListeningMcp {
    /// Address for clients, such as `http://127.0.0.1:8642/mcp`.
    pub url: String,
    running: RunningServer,
}

/// Starts a network transport with the application's models and chats, and returns once it listens.
pub fn listen(app: App, transport: NetworkTransport, options: Options) -> Result<ListeningMcp> {
    let caller = Caller { interface: Interface::Http, route: Some(PATH.into()), ..Caller::default() };
    let content = AppContent(app.as_caller(caller));
    listen_with(app, content, transport, options)
}

/// Starts a network transport with any content, and returns once it listens. `app` keeps the key.
pub fn listen_with(
    app: App,
    content: impl Content,
    transport: NetworkTransport,
    options: Options,
) -> Result<ListeningMcp> {
    let routes = match transport {
        NetworkTransport::Http => http::routes(content),
        NetworkTransport::WebSocket => websocket::routes(content),
    };
    let running = server::serve_router(app, options, routes)?;
    let url = match transport {
        NetworkTransport::Http => format!("{}{PATH}", running.url),
        NetworkTransport::WebSocket => format!("{}{PATH}", running.url.replacen("http", "ws", 1)),
    };
    Ok(ListeningMcp { url, running })
}

impl ListeningMcp {
    /// Blocks until Ctrl+C or SIGTERM, then stops.
    pub fn run_until_signalled(self) {
        self.running.run_until_signalled();
    }
}
