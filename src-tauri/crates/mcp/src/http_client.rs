//! The client of requests: the system's certificates, the user's proxy, and no redirects by itself.

use std::error::Error as _;
use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use reqwest::redirect::Policy;
use reqwest::{Client, NoProxy, Proxy, Response};

use contract::{Error, Result};
use net::ConnectionGate;

/// A host that takes longer to be found and reached is not there.
pub const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Builds a client. `is_here`: for servers of this computer, which no proxy stands before.
///
/// Errors: `tools.client`.
pub fn client(gate: &ConnectionGate, is_here: bool) -> Result<Client> {
    let unusable = |why: String| {
        let message = format!("No server can be reached: {why}.");
        Error::input("tools.client", message, "Check the proxy settings and the certificates of the system.")
    };
    let trust = tls::client_config().map_err(|error| unusable(error.to_string()))?;
    let builder = Client::builder()
        .tls_backend_preconfigured(trust)
        .user_agent(concat!("inglenook/", env!("CARGO_PKG_VERSION")))
        // A key is sent only to the server that it belongs to: see `redirect_within`.
        .redirect(Policy::none())
        .connect_timeout(CONNECT_WITHIN)
        .http1_only();
    let builder = match (is_here, gate.proxy()?) {
        (true, _) => builder.no_proxy(),
        (false, Some(proxy)) => {
            let proxy = Proxy::all(proxy.as_str()).map_err(|error| unusable(cause(&error)))?;
            builder.proxy(proxy.no_proxy(NoProxy::from_env()))
        }
        (false, None) => builder,
    };
    builder.build().map_err(|error| unusable(cause(&error)))
}

/// Whether a response is a stream of events.
pub fn is_event_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| kind.to_ascii_lowercase().starts_with("text/event-stream"))
}

/// The innermost reason. What lies around it repeats addresses.
pub fn cause(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    while let Some(inner) = cause.and_then(|it| it.source()) {
        cause = Some(inner);
    }
    cause.map_or_else(|| "the request failed".into(), ToString::to_string)
}
