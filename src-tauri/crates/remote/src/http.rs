//! The HTTP client for model servers. Every request passes the gate of `connections.rs` and follows
//! no redirect. A failure says whether a retry may help.

use std::error::Error as _;
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode};
use serde_json::Value;

use super::address::Address;
use super::delta;
use contract::types::ConnectionPurpose;
use contract::{Error, ErrorKind, Result};
use net::{Connection, ConnectionGate};
use secrets::Secret;

/// A host that takes longer to be found and reached is not there.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Connections that are kept for the next request. Most servers close theirs after a minute.
const KEPT_IDLE: Duration = Duration::from_secs(20);

/// Longest answer that isn't streamed: lists of models have some kilobytes.
const MAX_BODY_BYTES: usize = 8 << 20;

/// Longest part of a server's own words that is shown.
const MAX_WORDS: usize = 300;

/// Clients for here and for elsewhere.
pub struct Http {
    elsewhere: Client,
    /// No proxy stands between two programs of one computer.
    here: Client,
}

/// Whether asking again may help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryAdvice {
    /// The question is at fault.
    Never,
    /// This server is at fault, and stays so.
    Elsewhere,
    /// This server too, after a while; it may say how long.
    Later(Option<Duration>),
}

#[derive(Debug, Clone)]
pub struct Fault {
    pub error: Error,
    pub again: RetryAdvice,
}

impl Fault {
    pub fn new(again: RetryAdvice, kind: ErrorKind, code: &str, message: String, remedy: &str) -> Self {
        Self { error: Error::new(kind, code, message, remedy), again }
    }
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
        // Another part of the program may have chosen the same already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = || {
            Client::builder()
                .user_agent(concat!("inglenook/", env!("CARGO_PKG_VERSION")))
                // A key is sent only to the server that it belongs to.
                .redirect(Policy::none())
                .connect_timeout(CONNECT_WITHIN)
                .pool_idle_timeout(KEPT_IDLE)
                .http1_only()
        };
        let failed = |error: reqwest::Error| {
            let message = format!("Other servers can't be reached: {}.", cause(&error));
            Error::input(
                "remote.client",
                message,
                "Check the proxy settings and the certificates of the system.",
            )
        };
        // A system without certificates still reaches what needs none.
        let elsewhere =
            builder().build().or_else(|_| builder().tls_certs_only([]).build()).map_err(failed)?;
        let here = builder().no_proxy();
        let here =
            here.build().or_else(|_| builder().no_proxy().tls_certs_only([]).build()).map_err(failed)?;
        Ok(Self { elsewhere, here })
    }

    /// A refusal by the server is a fault like any other; its words are read and translated.
    pub async fn ask(&self, gate: &ConnectionGate, call: HttpCall<'_>) -> Result<Answer, Fault> {
        let place = call.address.place();
        let connection =
            gate.connect(&place, call.purpose).map_err(|error| Fault { error, again: RetryAdvice::Never })?;
        let client = if call.address.is_here() { &self.here } else { &self.elsewhere };
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
        let said: Value = serde_json::from_slice(&body).unwrap_or_default();
        let words = if said.is_null() { String::new() } else { delta::words_of(&said) };
        let code = said.pointer("/error/code").or(said.get("code")).and_then(Value::as_str);
        Err(refused(
            &answer.place,
            answer.response.status(),
            answer.response.headers(),
            &words,
            code,
            call.key,
        ))
    }
}

impl Answer {
    /// It comes in events.
    pub fn is_stream(&self) -> bool {
        let kind = self.response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        kind.is_none_or(|kind| !kind.starts_with("application/json"))
    }

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
        serde_json::from_slice(&bytes).map_err(|error| malformed(&self.place, &error.to_string()))
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

fn silent(place: &str, silence: Duration) -> Fault {
    Fault::new(
        RetryAdvice::Later(None),
        ErrorKind::Device,
        "remote.silent",
        format!("{place} sent nothing for {} seconds.", silence.as_secs()),
        "It may be loading a model. Try again, or raise \"Server timeout\" in the settings.",
    )
}

/// The connection ended before the answer did.
pub fn broken(place: &str, why: &str) -> Fault {
    Fault::new(
        RetryAdvice::Later(None),
        ErrorKind::Device,
        "remote.broken",
        format!("The connection to {place} was lost: {why}."),
        "What arrived so far is saved. Choose Continue to get the rest.",
    )
}

pub fn malformed(place: &str, why: &str) -> Fault {
    Fault::new(
        RetryAdvice::Elsewhere,
        ErrorKind::Input,
        "remote.malformed",
        format!("{place} sent an invalid response: {why}."),
        "Check that the address belongs to an OpenAI-compatible server. Most end with /v1.",
    )
}

pub fn too_large(place: &str) -> Fault {
    Fault::new(
        RetryAdvice::Never,
        ErrorKind::Limit,
        "remote.too_large",
        format!("{place} sent too much data."),
        "Check the address, or set a shorter maximum answer length.",
    )
}

/// A status that is no success, with the server's own words.
struct Refusal<'a> {
    place: &'a str,
    status: StatusCode,
    words: &'a str,
    /// As OpenAI names failures.
    code: Option<&'a str>,
    has_key: bool,
    /// The words as they are shown, behind a colon.
    quoted: String,
    wait: Option<Duration>,
    /// The server says that asking again is of no use.
    is_final: bool,
}

/// What a refusal means.
fn refused(
    place: &str,
    status: StatusCode,
    headers: &HeaderMap,
    words: &str,
    code: Option<&str>,
    key: Option<&Secret>,
) -> Fault {
    let is_final = headers.get("x-should-retry").is_some_and(|value| value == "false");
    let (quoted, wait) = (quote(words, key), hub::retry_after(headers));
    let refusal = Refusal { place, status, words, code, has_key: key.is_some(), quoted, wait, is_final };
    match status.as_u16() {
        401 | 403 => refusal.denied(),
        404 | 405 => refusal.missing(),
        400 | 413 | 422 if refusal.is_too_long() => refusal.too_long(),
        408 | 425 | 429 | 500..=599 => refusal.overloaded(),
        300..=399 => Fault::new(
            RetryAdvice::Elsewhere,
            ErrorKind::Input,
            "remote.moved",
            format!("{place} redirects to another address ({status}). Redirects are not followed."),
            "Enter the new address of the server.",
        ),
        _ => Fault::new(
            RetryAdvice::Never,
            ErrorKind::Input,
            "remote.refused",
            format!("{place} rejected the request with status {status}{}", refusal.quoted),
            "Change the setting it mentions, or choose another model.",
        ),
    }
}

impl Refusal<'_> {
    fn denied(&self) -> Fault {
        let give = "Add the key to the server (nook endpoints update ID --key-stdin, or --key-env NAME).";
        let (code, message, remedy) = match (self.status, self.has_key) {
            (StatusCode::UNAUTHORIZED, false) => {
                ("remote.key", format!("{} requires an API key.", self.place), give)
            }
            (StatusCode::UNAUTHORIZED, true) => {
                ("remote.key", format!("{} rejected the API key.", self.place), give)
            }
            _ => (
                "remote.forbidden",
                format!("{} doesn't allow this{}", self.place, self.quoted),
                "Ask its operator what your key allows.",
            ),
        };
        Fault::new(RetryAdvice::Elsewhere, ErrorKind::Input, code, message, remedy)
    }

    fn missing(&self) -> Fault {
        let is_model = self.code == Some("model_not_found") || self.words.to_lowercase().contains("model");
        let (code, message, remedy) = match is_model {
            true => (
                "remote.model_gone",
                format!("{} doesn't have this model{}", self.place, self.quoted),
                "Choose another model. `nook endpoints test` lists its models.",
            ),
            false => (
                "remote.no_route",
                format!("{} has nothing at this address{}", self.place, self.quoted),
                "Check the address of the server. Most end with /v1.",
            ),
        };
        Fault::new(RetryAdvice::Elsewhere, ErrorKind::NotFound, code, message, remedy)
    }

    fn is_too_long(&self) -> bool {
        let words = self.words.to_lowercase();
        let said = ["context length", "context size", "context window", "maximum context"];
        self.code == Some("context_length_exceeded") || said.iter().any(|part| words.contains(part))
    }

    fn too_long(&self) -> Fault {
        Fault::new(
            RetryAdvice::Never,
            ErrorKind::Limit,
            "request.context_full",
            format!("This chat is longer than the context of the model at {}{}", self.place, self.quoted),
            "Compact the chat, shorten your message, or choose a model with a longer context.",
        )
    }

    fn overloaded(&self) -> Fault {
        let again = if self.is_final { RetryAdvice::Elsewhere } else { RetryAdvice::Later(self.wait) };
        let Self { place, status, quoted, .. } = self;
        if *status != StatusCode::TOO_MANY_REQUESTS {
            let message = format!("{place} failed with status {status}{quoted}");
            let remedy = "Try again. If it keeps happening, check the log of that server.";
            return Fault::new(again, ErrorKind::Device, "remote.failing", message, remedy);
        }
        let message = match self.wait {
            Some(wait) => format!("{place} accepts no more requests for {} seconds{quoted}", wait.as_secs()),
            None => format!("{place} accepts no more requests right now{quoted}"),
        };
        let remedy = "Try again later, or add another server with the same name.";
        Fault::new(again, ErrorKind::Limit, "remote.busy", message, remedy)
    }
}

/// The server's words on one line, without the key that it may repeat.
pub fn quote(words: &str, key: Option<&Secret>) -> String {
    let hidden = match key {
        Some(key) if !key.reveal().is_empty() => words.replace(key.reveal(), "…"),
        Some(_) | None => words.to_owned(),
    };
    let line: String = hidden.split_whitespace().collect::<Vec<_>>().join(" ");
    let short: String = line.chars().take(MAX_WORDS).collect();
    match short.is_empty() {
        true => ".".into(),
        false => format!(": \"{short}\""),
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::RETRY_AFTER;

    use super::*;

    fn check(status: u16, words: &str, code: Option<&str>, expected: (&str, RetryAdvice)) {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_static("7"));
        let key = Secret::new("sk-secret".into());
        let status = StatusCode::from_u16(status).unwrap();
        let fault = refused("lab:8000", status, &headers, words, code, Some(&key));
        assert_eq!((fault.error.code(), fault.again), expected, "{status} {words}");
        assert!(!fault.error.message().contains("secret"), "{}", fault.error.message());
        assert!(fault.error.message().contains("lab:8000") && !fault.error.remedy().is_empty());
    }

    #[test]
    fn refusals_are_told_apart() {
        let later = RetryAdvice::Later(Some(Duration::from_secs(7)));
        check(401, "bad key sk-secret", None, ("remote.key", RetryAdvice::Elsewhere));
        check(403, "", None, ("remote.forbidden", RetryAdvice::Elsewhere));
        check(404, "The model `x` does not exist", None, ("remote.model_gone", RetryAdvice::Elsewhere));
        check(404, "Not Found", None, ("remote.no_route", RetryAdvice::Elsewhere));
        check(
            400,
            "This model's maximum context length is 9",
            None,
            ("request.context_full", RetryAdvice::Never),
        );
        check(400, "x", Some("context_length_exceeded"), ("request.context_full", RetryAdvice::Never));
        check(400, "top_k is unknown, sk-secret", None, ("remote.refused", RetryAdvice::Never));
        check(413, "", None, ("remote.refused", RetryAdvice::Never));
        check(429, "slow down", None, ("remote.busy", later));
        check(500, "", None, ("remote.failing", later));
        check(502, "<html>", None, ("remote.failing", later));
        check(503, "loading model", None, ("remote.failing", later));
        check(307, "", None, ("remote.moved", RetryAdvice::Elsewhere));
    }

    #[test]
    fn words_are_short_and_on_one_line() {
        assert_eq!(quote(" a\n\n b\t", None), ": \"a b\"");
        assert_eq!(quote("", None), ".");
        assert!(quote(&"x".repeat(9000), None).len() < 310);
    }
}
