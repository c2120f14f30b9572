//! Where requests may come from: host names that can't be rebound, this server's own pages, and what the user allows.
//!
//! Without allowed origins no CORS header is ever sent.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use contract::{Error, Result};

/// Methods and headers that web pages of allowed origins may use.
const CORS_METHODS: &str = "GET, POST, DELETE, HEAD";
const CORS_EXPOSED: &str = "retry-after, x-should-retry";
/// How long a browser may remember the answer to its question.
const CORS_MAX_AGE_S: &str = "600";

/// Host names and origins beside the server's own that requests may carry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedSources {
    /// Lower-case names without a port, such as `host.docker.internal`.
    hosts: Vec<String>,
    /// Lower-case origins, such as `http://localhost:3000`.
    origins: Vec<String>,
}

impl AllowedSources {
    /// Checks what the user allows.
    ///
    /// Errors: `server.allowed_host`, `server.allowed_origin`.
    pub fn new(hosts: &[String], origins: &[String]) -> Result<Self> {
        if let Some(host) = hosts.iter().find(|host| !is_host_name(host)) {
            let message = format!("`{host}` is not a host name.");
            let remedy = "Give the name alone, without scheme, port or path, such as host.docker.internal.";
            return Err(Error::input("server.allowed_host", message, remedy));
        }
        if let Some(origin) = origins.iter().find(|origin| !is_origin(origin)) {
            let message = format!("`{origin}` is not the origin of a web page.");
            let remedy =
                "Give scheme, host and port, such as http://localhost:3000; each origin must be named.";
            return Err(Error::input("server.allowed_origin", message, remedy));
        }
        let lower = |texts: &[String]| texts.iter().map(|text| text.to_ascii_lowercase()).collect();
        Ok(Self { hosts: lower(hosts), origins: lower(origins) })
    }

    /// Checks the headers `Host` and `Origin`. Returns the origin if it is an allowed one that is not the server's own.
    /// Error: a sentence, and what helps.
    pub fn check(
        &self,
        headers: &HeaderMap,
    ) -> std::result::Result<Option<HeaderValue>, (&'static str, &'static str)> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok()).unwrap_or_default();
        if hosts.next().is_some() || !self.has_host(host) {
            return Err((
                "This server accepts requests only under its own address, not under this host name.",
                "Use the address printed by `nook serve`, or start it with `--allow-host NAME`.",
            ));
        }
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let Some(origin) = origins.next() else { return Ok(None) };
        let is_only = origins.next().is_none();
        let text = origin.to_str().unwrap_or_default();
        let authority = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
        if is_only && authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host)) {
            return Ok(None);
        }
        match is_only && self.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(text)) {
            true => Ok(Some(origin.clone())),
            false => Err((
                "The request comes from a web page of another origin.",
                "Open the address printed by `nook serve`, or start it with `--allow-origin ORIGIN`.",
            )),
        }
    }

    fn has_host(&self, host: &str) -> bool {
        let Some(name) = host_name(host) else { return false };
        let is_unrebindable = name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok();
        is_unrebindable || self.hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(name))
    }
}

/// Answers a browser that asks what a page of an allowed origin may send. None: the request is no such question.
pub fn preflight(method: &Method, headers: &HeaderMap) -> Option<Response> {
    if method != Method::OPTIONS || !headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD) {
        return None;
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    let answer = response.headers_mut();
    answer.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(CORS_METHODS));
    answer.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(CORS_MAX_AGE_S));
    // The key is what admits a request; its other headers are free.
    if let Some(asked) = headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        answer.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, asked.clone());
    }
    Some(response)
}

/// Lets the page of an allowed origin read a response.
pub fn permit(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(CORS_EXPOSED));
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("cross-origin"));
}

/// The name or literal address in a `Host` header. None: it is malformed.
fn host_name(host: &str) -> Option<&str> {
    match host.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']')?;
            (port.is_empty() || port.strip_prefix(':').is_some_and(is_port)).then_some(address)
        }
        None => match host.split_once(':') {
            Some((name, port)) => is_port(port).then_some(name),
            None => Some(host),
        },
    }
}

fn is_port(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_host_name(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    !text.is_empty() && text.len() <= 253 && text.bytes().all(is_allowed)
}

fn is_origin(text: &str) -> bool {
    let Some((scheme, authority)) = text.split_once("://") else { return false };
    let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let is_authority =
        |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b'*' | b'@' | b'?' | b'#');
    !scheme.is_empty()
        && !authority.is_empty()
        && scheme.bytes().all(is_scheme)
        && authority.bytes().all(is_authority)
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
            assert_eq!(AllowedSources::default().check(&headers).is_ok(), expected, "{host}");
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
                assert_eq!(AllowedSources::default().check(&headers).is_ok(), expected, "{host} {origin}");
            }
        }
        assert!(AllowedSources::default().check(&HeaderMap::new()).is_err());
    }

    fn sources(hosts: &[&str], origins: &[&str]) -> Result<AllowedSources> {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        AllowedSources::new(&owned(hosts), &owned(origins))
    }

    #[test]
    fn what_the_user_allows_is_accepted_and_nothing_else() {
        let allowed =
            sources(&["Host.docker.internal"], &["http://localhost:3000", "app://obsidian.md"]).unwrap();
        for (host, origin, expected) in [
            ("host.docker.internal:8642", None, Ok(None)),
            ("other.docker.internal:8642", None, Err(())),
            ("127.0.0.1:8642", Some("http://LOCALHOST:3000"), Ok(Some("http://LOCALHOST:3000"))),
            ("127.0.0.1:8642", Some("app://obsidian.md"), Ok(Some("app://obsidian.md"))),
            ("127.0.0.1:8642", Some("http://localhost:3001"), Err(())),
            ("127.0.0.1:8642", Some("https://localhost:3000"), Err(())),
            ("host.docker.internal:8642", Some("http://host.docker.internal:8642"), Ok(None)),
            ("evil.com", Some("http://localhost:3000"), Err(())),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().unwrap());
            }
            let checked = allowed.check(&headers).map_err(|_| ());
            let expected = expected.map(|origin: Option<&str>| origin.map(|it| it.parse().unwrap()));
            assert_eq!(checked, expected, "{host} {origin:?}");
        }
    }

    #[test]
    fn what_names_no_single_source_is_refused() {
        for host in ["", "*", "a:80", "http://a", "a/b", "a b"] {
            assert_eq!(sources(&[host], &[]).unwrap_err().code(), "server.allowed_host", "{host}");
        }
        for origin in ["", "*", "http://*", "localhost:3000", "http://a/", "http://u@a", "://a", "http://"] {
            assert_eq!(sources(&[], &[origin]).unwrap_err().code(), "server.allowed_origin", "{origin}");
        }
    }

    #[test]
    fn browsers_are_told_what_pages_may_send() {
        let mut headers = HeaderMap::new();
        assert!(preflight(&Method::OPTIONS, &headers).is_none());
        headers.insert(header::ACCESS_CONTROL_REQUEST_METHOD, "POST".parse().unwrap());
        headers.insert(header::ACCESS_CONTROL_REQUEST_HEADERS, "authorization".parse().unwrap());
        assert!(preflight(&Method::POST, &headers).is_none());
        let mut response = preflight(&Method::OPTIONS, &headers).unwrap();
        permit(response.headers_mut(), "http://a".parse().unwrap());
        assert_eq!(response.headers()["access-control-allow-headers"], "authorization");
        assert_eq!(response.headers()["access-control-allow-origin"], "http://a");
    }
}
