//! Access control: rejects other origins, DNS rebinding and requests without a key, and holds each key to its scopes
//! and limits.
//!
//! `source_check` decides on hosts and origins before a key is looked at.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use app::{Caller, Interface, KeyScope};
use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use io::{Clock, RealClock};

use crate::RouteState;
use crate::base64;
use crate::body::{is_too_large, too_large};
use crate::fault::Fault;
use crate::interface_paths::{ANTHROPIC_VERSION, OllamaCall, ollama_call};
use crate::refusal::{in_client_form, refuse};
use crate::running_turn::blocking;
use crate::source_check::{permit, preflight};
use crate::{key, pages, preview};

/// Number of events within `WINDOW` before further ones are too many: of wrong keys, and of entries in the audit log.
const MAX_EVENTS: usize = 10;
const WINDOW: Duration = Duration::from_secs(60);

/// Times of the last events of a kind.
pub struct RecentEvents {
    clock: RealClock,
    at: Mutex<Vec<Duration>>,
}

impl Default for RecentEvents {
    fn default() -> Self {
        Self { clock: RealClock::new(), at: Mutex::default() }
    }
}

impl RecentEvents {
    /// Counts an event. Returns whether there are too many.
    fn count(&self) -> bool {
        let now = self.clock.monotonic();
        let mut at = self.at.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        at.retain(|moment| now.saturating_sub(*moment) < WINDOW);
        if at.len() >= MAX_EVENTS {
            return true;
        }
        at.push(now);
        false
    }
}

/// Runs before every route.
pub async fn check(State(shared): State<RouteState>, request: Request, next: Next) -> Response {
    let (method, route) = (request.method().clone(), request.extensions().get::<MatchedPath>().cloned());
    let (requests, recent) = (Arc::clone(&shared.requests), Arc::clone(&shared.recent));
    let path = request.uri().path().to_owned();
    let from_anthropic = request.headers().contains_key(ANTHROPIC_VERSION);
    let id = recent.begin(&method, &path);
    let response = in_client_form(admit(shared, request, next).await, &path, from_anthropic);
    recent.end(id, response.status());
    requests.count(&method, route.as_ref(), response.status());
    response
}

async fn admit(shared: RouteState, request: Request, next: Next) -> Response {
    let origin = match shared.sources.check(request.headers()) {
        Ok(origin) => origin,
        Err((message, remedy)) => {
            record_foreign(&shared, request.headers(), message).await;
            return refuse(StatusCode::FORBIDDEN, "server.foreign", message, remedy);
        }
    };
    let asked = origin.as_ref().and_then(|_| preflight(request.method(), request.headers()));
    let mut response = match asked {
        Some(permission) => permission,
        None => admit_by_key(shared, request, next).await,
    };
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    if let Some(origin) = origin {
        permit(headers, origin);
    }
    response
}

/// Records a refused source in the audit log. A page that goes on asking fills no log: entries per minute are limited.
async fn record_foreign(shared: &RouteState, headers: &HeaderMap, message: &'static str) {
    const MAX_CHARS: usize = 120;
    if shared.foreign.count() {
        return;
    }
    let text = |name| String::from_utf8_lossy(headers.get(name).map_or(b"", HeaderValue::as_bytes));
    let (host, origin) = (text(header::HOST), text(header::ORIGIN));
    let source =
        if origin.is_empty() { format!("host {host}") } else { format!("host {host}, origin {origin}") };
    let subject: String = source.chars().take(MAX_CHARS).collect();
    let app = shared.app.clone();
    _ = blocking(move || {
        app.audit_foreign(&subject, message);
        Ok(())
    })
    .await;
}

async fn admit_by_key(shared: RouteState, mut request: Request, next: Next) -> Response {
    if let Some(scope) = scope_of(request.method(), request.uri().path()) {
        let route = format!("{} {}", request.method(), request.uri().path());
        match authorize(&shared, request.headers(), route, scope).await {
            Ok(caller) => _ = request.extensions_mut().insert(caller),
            Err(refusal) => return refusal,
        }
    }
    if is_too_large(request.headers()) {
        return too_large();
    }
    next.run(request).await
}

/// Paths that need no key besides the files of the page.
const PUBLIC: &[&str] = &["/health", "/v1/health", "/openapi.json"];

/// Beginnings of paths that a key for answers may use.
const CHAT: &[&str] = &[
    "/v1/",
    "/chat/",
    "/completion",
    "/responses",
    "/conversations",
    "/files",
    "/batches",
    "/uploads",
    "/embedding",
    "/rerank",
    "/models",
    "/messages",
    "/infill",
    "/tokenize",
    "/detokenize",
    "/apply-template",
    "/props",
    "/slots",
];

/// What a key must permit for a request. None: no key is needed. What is not listed needs the most.
fn scope_of(method: &Method, path: &str) -> Option<KeyScope> {
    let is_reading = method == Method::GET || method == Method::HEAD;
    if is_reading && (PUBLIC.contains(&path) || pages::is_file(path) || preview::is_frame(path)) {
        return None;
    }
    if path.starts_with("/api/") {
        return Some(match ollama_call(path) {
            Some(OllamaCall::Answer) => KeyScope::Chat,
            Some(OllamaCall::Library) => KeyScope::Models,
            None => KeyScope::Admin,
        });
    }
    let is_library = path.starts_with("/v1/models/") || path.starts_with("/models/");
    if method == Method::DELETE && is_library {
        return Some(KeyScope::Models);
    }
    let is_chat = CHAT.iter().any(|beginning| path.starts_with(beginning));
    Some(if is_chat { KeyScope::Chat } else { KeyScope::Admin })
}

/// Who sends a request, if the key that it carries permits it.
async fn authorize(
    shared: &RouteState,
    headers: &HeaderMap,
    route: String,
    scope: KeyScope,
) -> Result<Caller, Response> {
    let Some(given) = given_key(headers) else { return Err(missing_key()) };
    if key::is_equal(&given, shared.key.as_bytes()) {
        return Ok(Caller { interface: Interface::Http, key: None, route: Some(route) });
    }
    let Ok(given) = std::str::from_utf8(&given).map(str::to_owned) else { return Err(wrong_key(shared)) };
    let app = shared.app.clone();
    let verified = blocking(move || app.api_key_verify(&given)).await;
    let Some(verified) = verified.map_err(|error| Fault(error).into_response())? else {
        return Err(wrong_key(shared));
    };
    if !verified.scopes.iter().any(|has| *has == scope || *has == KeyScope::Admin) {
        let message = format!("The key {} does not permit this route.", verified.caller.name);
        let remedy = "Use a key with the scope that docs/HTTP.md names for it.";
        return Err(refuse(StatusCode::FORBIDDEN, "insufficient_scope", &message, remedy));
    }
    if let Err((error, wait_s)) = shared.app.api_key_admit(&verified) {
        let status = StatusCode::TOO_MANY_REQUESTS;
        let mut response = refuse(status, error.code(), error.message(), error.remedy());
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(wait_s));
        return Err(response);
    }
    Ok(Caller { interface: Interface::Http, key: Some(verified.caller), route: Some(route) })
}

const KEY_REMEDY: &str = "Send the header `Authorization: Bearer KEY` or `x-api-key: KEY`. The key is in \
                          keys/server.key in the data folder; `nook keys add` makes others.";

/// A request without a key guesses nothing, so it is not counted.
fn missing_key() -> Response {
    unauthorized("The request has no API key.")
}

fn wrong_key(shared: &RouteState) -> Response {
    if !shared.failures.count() {
        return unauthorized("The API key is wrong.");
    }
    let message = "Too many wrong API keys. Try again later.";
    let mut response = refuse(StatusCode::TOO_MANY_REQUESTS, "too_many_wrong_keys", message, KEY_REMEDY);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("60"));
    response
}

fn unauthorized(message: &str) -> Response {
    let mut response = refuse(StatusCode::UNAUTHORIZED, "invalid_api_key", message, KEY_REMEDY);
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// State of the routes, whose application acts for the caller of the request.
pub struct CallerState(pub RouteState);

impl FromRequestParts<RouteState> for CallerState {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &RouteState) -> Result<Self, Self::Rejection> {
        let mut state = state.clone();
        if let Some(caller) = parts.extensions.get::<Caller>() {
            state.app = state.app.as_caller(caller.clone());
        }
        Ok(Self(state))
    }
}

/// The key of `Authorization: Bearer KEY`, of `x-api-key`, which Anthropic's clients send, or the password of basic
/// authentication, for clients that take nothing but an address (`ws://:KEY@127.0.0.1:8642/mcp`).
fn given_key(headers: &HeaderMap) -> Option<Cow<'_, [u8]>> {
    let value = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    let after = |scheme: &str| {
        let (given, rest) = value?.split_at_checked(scheme.len())?;
        given.eq_ignore_ascii_case(scheme.as_bytes()).then_some(rest)
    };
    let password = |pair: &[u8]| {
        let pair = base64::decode(std::str::from_utf8(pair).ok()?)?;
        let colon = pair.iter().position(|&byte| byte == b':')?;
        pair.get(colon + 1..).map(<[u8]>::to_vec)
    };
    after("Bearer ")
        .map(Cow::Borrowed)
        .or_else(|| after("Basic ").and_then(password).map(Cow::Owned))
        .or_else(|| headers.get("x-api-key").map(|key| Cow::Borrowed(key.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_in_headers() {
        let cases = [
            ("authorization", "Bearer secret-key", Some("secret-key")),
            ("authorization", "bearer secret-key", Some("secret-key")),
            ("authorization", "secret-key", None),
            ("authorization", "Basic secret-key", None),
            // `:secret-key`, `user:secret-key`, and `secret-key` without a colon
            ("authorization", "Basic OnNlY3JldC1rZXk=", Some("secret-key")),
            ("authorization", "basic dXNlcjpzZWNyZXQta2V5", Some("secret-key")),
            ("authorization", "Basic c2VjcmV0LWtleQ==", None),
            ("authorization", "Bearer ", Some("")),
            ("x-api-key", "secret-key", Some("secret-key")),
            ("x-other", "secret-key", None),
        ];
        for (name, value, expected) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            assert_eq!(given_key(&headers).as_deref(), expected.map(str::as_bytes), "{name}: {value}");
        }
        assert_eq!(given_key(&HeaderMap::new()), None);
    }

    #[test]
    fn routes_have_scopes() {
        let get = |path: &str| scope_of(&Method::GET, path);
        let post = |path: &str| scope_of(&Method::POST, path);
        assert_eq!([get("/"), get("/health"), get("/v1/health")], [None; 3]);
        for path in ["/v1/messages", "/api/chat", "/completion", "/tokenize", "/infill", "/chat/completions"]
        {
            assert_eq!(post(path), Some(KeyScope::Chat), "{path}");
        }
        assert_eq!(
            [
                post("/api/pull"),
                scope_of(&Method::DELETE, "/api/delete"),
                scope_of(&Method::DELETE, "/v1/models/x"),
                scope_of(&Method::DELETE, "/models/x"),
            ],
            [Some(KeyScope::Models); 4]
        );
        for path in ["/api/send", "/api/v1/send", "/api/events", "/metrics", "/mcp", "/health", "/unknown"] {
            assert_eq!(post(path), Some(KeyScope::Admin), "{path}");
        }
        assert_eq!(get("/api/turns/x/events"), Some(KeyScope::Admin), "turns belong to keys");
    }
}
