//! The HTTP client for model servers. Every request passes the gate of `connections.rs` and follows
//! no redirect. A failure says whether a retry may help.

use std::error::Error as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, NoProxy, Proxy, Response};
use serde_json::Value;

use super::address::Address;
use super::fault::{Fault, RetryAdvice, broken, malformed, silent, too_large, web_page};
use super::refusal::refused;
use super::server_words::{ServerFailure, is_web_page};
use contract::types::ConnectionPurpose;
use contract::{Error, ErrorKind, Result};
use net::{Connection, ConnectionGate, ProxyAddress};
use secrets::Secret;

/// A host that takes longer to be found and reached is not there.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Connections that are kept for the next request. Most servers close theirs after a minute.
const KEPT_IDLE: Duration = Duration::from_secs(20);

/// Longest answer that isn't streamed: lists of models have some kilobytes.
const MAX_BODY_BYTES: usize = 8 << 20;

/// Clients for here and for elsewhere.
pub struct Http {
    /// Made again when another proxy is chosen.
    elsewhere: Mutex<(Option<ProxyAddress>, Client)>,
    /// No proxy stands between two programs of one computer.
    here: Client,
}

fn unusable(why: &str) -> Error {
    let message = format!("Other servers can't be reached: {why}.");
    Error::input("remote.client", message, "Check the proxy settings and the certificates of the system.")
}

/// Completes a client with what all have in common.
fn client(builder: ClientBuilder) -> Result<Client> {
    let trust = tls::client_config().map_err(|error| unusable(&error.to_string()))?;
    let builder = builder
        .tls_backend_preconfigured(trust)
        .user_agent(concat!("inglenook/", env!("CARGO_PKG_VERSION")))
        // A key is sent only to the server that it belongs to.
        .redirect(Policy::none())
        .connect_timeout(CONNECT_WITHIN)
        .pool_idle_timeout(KEPT_IDLE)
        .http1_only();
    builder.build().map_err(|error| unusable(&cause(&error)))
}

/// A request.
pub struct HttpCall<'a> {
    pub address: &'a Address,
    pub url: String,
    pub key: Option<&'a Secret>,
    /// None: it is a GET.
    pub body: Option<Vec<u8>>,
    pub purpose: ConnectionPurpose,
    /// The longest that the server may say nothing.
    pub silence: Duration,
}

/// What a server says, from the end of its headers on.
pub struct Answer {
    response: Response,
    connection: Connection,
    place: String,
    silence: Duration,
}

impl Http {
    pub fn new() -> Result<Self> {
        let here = client(Client::builder().no_proxy())?;
        Ok(Self { elsewhere: Mutex::new((None, client(Client::builder())?)), here })
    }

    /// The client for servers elsewhere.
    fn elsewhere(&self, proxy: Option<ProxyAddress>) -> Result<Client> {
        let mut known = self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner);
        if known.0 != proxy {
            let builder = match &proxy {
                Some(proxy) => {
                    let made = Proxy::all(proxy.as_str()).map_err(|error| unusable(&cause(&error)))?;
                    Client::builder().proxy(made.no_proxy(NoProxy::from_env()))
                }
                None => Client::builder(),
            };
            *known = (proxy, client(builder)?);
        }
        Ok(known.1.clone())
    }

    /// A refusal by the server is a fault like any other; its words are read and translated.
    pub async fn ask(&self, gate: &ConnectionGate, call: HttpCall<'_>) -> Result<Answer, Fault> {
        let place = call.address.place();
        let connection = gate
            .connect(&place, call.purpose)
            .map_err(|error| Fault::from_error(RetryAdvice::Never, error))?;
        let client = match call.address.is_here() {
            true => Ok(self.here.clone()),
            false => gate.proxy().and_then(|proxy| self.elsewhere(proxy)),
        };
        let client = client.map_err(|error| Fault::from_error(RetryAdvice::Never, error))?;
        let request = match call.body {
            Some(body) => {
                connection.sent(body.len());
                client.post(call.url).header(CONTENT_TYPE, "application/json").body(body)
            }
            None => client.get(call.url),
        };
        let request = request.header(ACCEPT, "text/event-stream, application/json");
        let request = match call.key {
            Some(key) => request.header(AUTHORIZATION, bearer(key, &place)?),
            None => request,
        };
        let response = match tokio::time::timeout(call.silence, request.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(unreachable(&place, &error)),
            Err(_) => return Err(silent(&place, call.silence)),
        };
        let mut answer = Answer { response, connection, place, silence: call.silence };
        if answer.response.status().is_success() {
            return Ok(answer);
        }
        // What can't be read of a refusal leaves its status.
        let body = answer.whole().await.unwrap_or_default();
        let said = ServerFailure::of_bytes(&body);
        Err(refused(&answer.place, answer.response.status(), answer.response.headers(), &said, call.key))
    }
}

impl Answer {
    /// The next bytes; None: that was all.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, Fault> {
        match tokio::time::timeout(self.silence, self.response.chunk()).await {
            Ok(Ok(Some(bytes))) => {
                self.connection.received(bytes.len());
                Ok(Some(bytes.into()))
            }
            Ok(Ok(None)) => Ok(None),
            Ok(Err(error)) => Err(broken(&self.place, &cause(&error))),
            Err(_) => Err(silent(&self.place, self.silence)),
        }
    }

    /// All of it.
    pub async fn whole(&mut self) -> Result<Vec<u8>, Fault> {
        let mut whole = Vec::new();
        while let Some(bytes) = self.next().await? {
            whole.extend_from_slice(&bytes);
            if whole.len() > MAX_BODY_BYTES {
                return Err(too_large(&self.place));
            }
        }
        Ok(whole)
    }

    /// All of it, as JSON.
    pub async fn json(&mut self) -> Result<Value, Fault> {
        let bytes = self.whole().await?;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_start_matches('\u{feff}');
        if is_web_page(text) {
            return Err(web_page(&self.place, text));
        }
        serde_json::from_str(text).map_err(|error| malformed(&self.place, &error.to_string()))
    }
}

fn bearer(key: &Secret, place: &str) -> Result<HeaderValue, Fault> {
    let text = format!("Bearer {}", key.reveal());
    let mut value = HeaderValue::try_from(text).map_err(|_| {
        let message = format!("The API key for {place} contains invalid characters.");
        Fault::new(RetryAdvice::Elsewhere, ErrorKind::Input, "remote.key", message, "Enter the key again.")
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// The innermost reason. What lies around it repeats addresses.
fn cause(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    while let Some(inner) = cause.and_then(|it| it.source()) {
        cause = Some(inner);
    }
    cause.map_or_else(|| "the request failed".into(), ToString::to_string)
}

fn unreachable(place: &str, error: &reqwest::Error) -> Fault {
    let why = cause(error);
    if error.is_timeout() {
        return silent(place, CONNECT_WITHIN);
    }
    if !error.is_connect() {
        return broken(place, &why);
    }
    Fault::new(
        RetryAdvice::Later(None),
        ErrorKind::Device,
        "remote.unreachable",
        format!("{place} can't be reached: {why}."),
        "Check that the server is running and that its address is correct (nook endpoints test).",
    )
}
