//! The HTTP client of the updater: our TLS, the user's proxy, redirects that pass the gate, and no name or version of ours.

use std::time::Duration;

use app::UpdateAccess;
use contract::{Error, Result};
use reqwest::redirect::Policy;
use reqwest::{ClientBuilder, NoProxy, Proxy};
use tauri::Url;

use super::update_errors::{host, unencrypted};

/// Says what asks, but no version: the request tells nothing about this computer.
const USER_AGENT: &str = "inglenook";

/// Time for name resolution and connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest time without data before a download counts as failed.
const STALL_TIMEOUT: Duration = Duration::from_secs(60);

/// Release pages redirect once or twice; more is a loop.
const MAX_REDIRECTS: usize = 6;

/// Returns what prepares each client of the plugin.
///
/// Errors: `update.client` for a proxy or a TLS configuration that cannot be used.
pub fn configure(
    access: &UpdateAccess,
) -> Result<impl Fn(ClientBuilder) -> ClientBuilder + Send + Sync + 'static> {
    let trust = tls::client_config().map_err(|error| unusable(&error))?;
    let proxy = match access.proxy()? {
        Some(address) => Some(Proxy::all(address.as_str()).map_err(|error| unusable(&error))?),
        None => None,
    };
    let access = access.clone();
    Ok(move |builder: ClientBuilder| {
        let gate = access.clone();
        let redirects = Policy::custom(move |attempt| {
            let from = attempt.previous().last().map(|from| from.scheme().to_owned());
            match redirect_error(&gate, from.as_deref(), attempt.url(), attempt.previous().len()) {
                None => attempt.follow(),
                Some(error) => attempt.error(error),
            }
        });
        let builder = match &proxy {
            Some(proxy) => builder.proxy(proxy.clone().no_proxy(NoProxy::from_env())),
            None => builder,
        };
        builder
            .tls_backend_preconfigured(trust.clone())
            .user_agent(USER_AGENT)
            .redirect(redirects)
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(STALL_TIMEOUT)
    })
}

/// Why a redirect must not be followed. One that may be is recorded as a connection.
fn redirect_error(gate: &UpdateAccess, from: Option<&str>, to: &Url, n_before: usize) -> Option<Error> {
    if n_before > MAX_REDIRECTS {
        return Some(Error::input(
            "update.redirects",
            "The update server redirects too often.",
            "Check the network that you are in: it may want you to log in first.",
        ));
    }
    match to.scheme() {
        "https" => {}
        "http" if from != Some("https") => {}
        _ => return Some(unencrypted(to)),
    }
    gate.connect(&host(to)).err()
}

fn unusable(error: &dyn std::error::Error) -> Error {
    Error::input(
        "update.client",
        format!("Updates cannot be looked for: {error}."),
        "Check the proxy in the settings and the certificates of the system.",
    )
}
