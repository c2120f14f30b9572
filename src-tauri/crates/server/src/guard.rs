//! Access control: rejects other origins, DNS rebinding and requests without the key.
//!
//! Accepts only host names that can't be rebound: loopback names and literal addresses. An `Origin` must be this
//! server. Never sends a CORS header.

use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use io::{Clock, RealClock};

use crate::RouteState;
use crate::body::{is_too_large, too_large};
use crate::fault::refuse;
use crate::key;

/// Number of wrong keys within `WINDOW` before further ones get 429.
const MAX_FAILURES: usize = 10;
const WINDOW: Duration = Duration::from_secs(60);

/// Times of the last wrong keys.
pub struct Failures {
    clock: RealClock,
    at: Mutex<Vec<Duration>>,
}

impl Default for Failures {
    fn default() -> Self {
        Self { clock: RealClock::new(), at: Mutex::default() }
    }
}

impl Failures {
    /// Counts a wrong key. Returns whether there are too many.
    fn count(&self) -> bool {
        let now = self.clock.monotonic();
        let mut at = self.at.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        at.retain(|moment| now.saturating_sub(*moment) < WINDOW);
        if at.len() >= MAX_FAILURES {
            return true;
        }
        at.push(now);
        false
    }
}

/// Runs before every route.
pub async fn check(State(shared): State<RouteState>, request: Request, next: Next) -> Response {
    if let Err(message) = check_source(request.headers()) {
        return refuse(
            StatusCode::FORBIDDEN,
            "server.foreign",
            message,
            "Open the address printed by `nook serve`. Web pages from other origins can't use this server.",
        );
    }
    let path = request.uri().path();
    let needs_key = path.starts_with("/v1/") || path.starts_with("/api/") || path == "/tokenize";
    if needs_key && !has_key(request.headers(), &shared.key) {
        let (status, code, message) = match shared.failures.count() {
            false => (StatusCode::UNAUTHORIZED, "invalid_api_key", "The API key is missing or wrong."),
            true => (
                StatusCode::TOO_MANY_REQUESTS,
                "too_many_wrong_keys",
                "Too many wrong API keys. Try again later.",
            ),
        };
        let remedy =
            "Send the header `Authorization: Bearer KEY`; the key is in keys/server.key in the data folder.";
        let mut response = refuse(status, code, message, remedy);
        let headers = response.headers_mut();
        match status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
            }
            _ => headers.insert(header::RETRY_AFTER, HeaderValue::from_static("60")),
        };
        return response;
    }
    if is_too_large(request.headers()) {
        return too_large();
    }
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    response
}

fn check_source(headers: &HeaderMap) -> Result<(), &'static str> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok()).unwrap_or_default();
    if hosts.next().is_some() || !is_unrebindable(host) {
        return Err("This server accepts requests only under its own address, not under this host name.");
    }
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let Some(origin) = origins.next() else { return Ok(()) };
    let authority = origin
        .to_str()
        .ok()
        .and_then(|origin| origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://")));
    if origins.next().is_some() || !authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host)) {
        return Err("The request comes from a web page of another origin.");
    }
    Ok(())
}

/// Whether the host is `localhost` or a literal address, which no DNS answer can redirect.
fn is_unrebindable(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, "")) => address,
            Some((address, port)) if is_port(port) => address,
            Some(_) | None => return false,
        },
        None => match host.split_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !port.is_empty() => name,
            Some(_) => return false,
            None => host,
        },
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

fn is_port(text: &str) -> bool {
    text.strip_prefix(':')
        .is_some_and(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
}

fn has_key(headers: &HeaderMap, kept: &str) -> bool {
    let given = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes).unwrap_or_default();
    let (scheme, given) = given.split_at(given.len().min("Bearer ".len()));
    let is_bearer = scheme.eq_ignore_ascii_case(b"Bearer ");
    key::is_equal(given, kept.as_bytes()) && is_bearer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_origins() {
        let local = [
            "127.0.0.1",
            "127.0.0.1:8642",
            "localhost",
            "LOCALHOST:1",
            "[::1]",
            "[::1]:8642",
            "192.168.1.5:80",
        ];
        let foreign = [
            "",
            "evil.com",
            "evil.com:8642",
            "localhost.evil.com",
            "127.0.0.1.nip.io",
            "localhost:",
            "localhost:80x",
            "[::1",
            "[::1]x",
            "[evil.com]:1",
            "127.0.0.1:8642@evil.com",
            "localhost:80:80",
            "0x7f.1",
            "foo.localhost",
        ];
        for (host, expected) in local.iter().map(|h| (h, true)).chain(foreign.iter().map(|h| (h, false))) {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            assert_eq!(check_source(&headers).is_ok(), expected, "{host}");
            let origins = [
                (format!("http://{host}"), expected),
                ("null".into(), false),
                ("http://evil.com".into(), false),
                ("https://evil.com:8642".into(), false),
                ("http://127.0.0.1:1234".into(), false),
                ("http://127.0.0.1.evil.com:8642".into(), false),
                (format!("ftp://{host}"), false),
                (format!("http://{host}.evil.com"), false),
                (String::new(), false),
                ("tauri://localhost".into(), false),
            ];
            for (origin, expected) in origins {
                headers.insert(header::ORIGIN, origin.parse().unwrap());
                assert_eq!(check_source(&headers).is_ok(), expected, "{host} {origin}");
            }
        }
        assert!(check_source(&HeaderMap::new()).is_err());
    }

    #[test]
    fn keys_in_headers() {
        let cases = [
            ("Bearer secret-key", true),
            ("bearer secret-key", true),
            ("secret-key", false),
            ("Basic secret-key", false),
            ("Bearer ", false),
            ("Bearer secret-key2", false),
        ];
        for (value, expected) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            assert_eq!(has_key(&headers, "secret-key"), expected, "{value}");
        }
        assert!(!has_key(&HeaderMap::new(), "secret-key"));
    }
}
