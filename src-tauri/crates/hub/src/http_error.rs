//! Failed requests: what a status or a broken connection means, and whether to retry.

use std::time::{Duration, UNIX_EPOCH};

use io::{Clock, RealClock};
use reqwest::header::HeaderMap;
use reqwest::{Response, StatusCode, Url};

use crate::address::Repository;
use crate::error::{HubError, error_chain};
use crate::retry::retry_after;
use crate::url::{HubUrl, host};

/// Longest `Retry-After` that is honoured.
const MAX_WAIT: Duration = Duration::from_secs(15 * 60);

/// A failed request.
#[derive(Debug, Clone)]
pub(crate) enum RequestError {
    /// No response. Retried as soon as there is a network.
    Network(HubError),
    /// The server is busy or broken. Retried after the given time, or with growing waits.
    Busy(HubError, Option<Duration>),
    /// Retrying does not help.
    Permanent(HubError),
}

impl RequestError {
    /// A request without a response: refused by the gate, or a network failure.
    pub fn from_unanswered(error: HubError) -> Self {
        if error.is_offline() { Self::Permanent(error) } else { Self::Network(error) }
    }

    pub fn into_error(self) -> HubError {
        match self {
            Self::Network(error) | Self::Busy(error, _) | Self::Permanent(error) => error,
        }
    }
}

/// A connection that failed. `proxy` is the one that stands between, if any.
pub(crate) fn network_error(host: &str, proxy: Option<&str>, error: &reqwest::Error) -> HubError {
    let cause = error_chain(&error.without_url_ref());
    let today = UNIX_EPOCH + Duration::from_millis(RealClock::new().now_utc_ms().try_into().unwrap_or(0));
    connection_error(host, proxy, &cause, &httpdate::fmt_http_date(today))
}

fn connection_error(host: &str, proxy: Option<&str>, cause: &str, today: &str) -> HubError {
    let lower = cause.to_lowercase();
    if lower.contains("certificate") || lower.contains("unknownissuer") {
        // A connection that can't be trusted tells no right date: the user compares.
        return HubError::new(
            "hub.certificate",
            format!(
                "The connection to {host} can't be trusted: {cause}. By this computer's clock it is {today}."
            ),
            "Correct the date if it is wrong. Otherwise a login page, a proxy or an antivirus program may intercept the \
             connection: log in to the network, or add that program's certificate to the system.",
        );
    }
    match proxy {
        None => HubError::new(
            "hub.unreachable",
            format!("{host} can't be reached: {cause}."),
            "Check your internet connection and try again. Downloads in progress resume automatically.",
        ),
        Some(proxy) => HubError::new(
            "hub.unreachable",
            format!("{host} can't be reached through the proxy {proxy}: {cause}."),
            "Check that the proxy runs and needs no password, or remove it from HTTPS_PROXY, HTTP_PROXY and ALL_PROXY.",
        ),
    }
}

/// A server that sent nothing for longer than `stall`.
pub(crate) fn stalled_error(url: &Url, stall: Duration) -> HubError {
    HubError::new(
        "hub.silent",
        format!("{} has sent nothing for {:.0} seconds.", host(url), stall.as_secs_f64()),
        "Inglenook retries automatically.",
    )
}

/// Removes the request URL from an error, since it may contain a secret signature.
trait WithoutUrl {
    fn without_url_ref(&self) -> ErrorText;
}

/// An error's cause, without the request's address.
#[derive(Debug)]
struct ErrorText(String);

impl std::fmt::Display for ErrorText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ErrorText {}

impl WithoutUrl for reqwest::Error {
    fn without_url_ref(&self) -> ErrorText {
        let cause = std::error::Error::source(self).map(error_chain);
        ErrorText(cause.unwrap_or_else(|| match self.is_timeout() {
            true => "it took too long".into(),
            false => "the connection broke".into(),
        }))
    }
}

/// Error for an unsuccessful status. `about` is the requested repository.
pub(crate) fn response_error(
    hub: &HubUrl,
    has_token: bool,
    about: Option<&Repository>,
    response: &Response,
) -> RequestError {
    let headers = response.headers();
    let said = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let page = about.map_or_else(|| hub.host(), |repository| hub.page(repository).to_string());
    let name = about.map_or_else(|| hub.host(), ToString::to_string);
    status_error(response.status(), headers, said("x-error-code"), has_token, &name, &page)
}

fn status_error(
    status: StatusCode,
    headers: &HeaderMap,
    code: &str,
    has_token: bool,
    name: &str,
    page: &str,
) -> RequestError {
    let gated = code == "GatedRepo";
    match status.as_u16() {
        401 | 403 if !has_token && (gated || status == StatusCode::FORBIDDEN) => {
            RequestError::Permanent(no_token(name, page))
        }
        403 if gated => RequestError::Permanent(HubError::new(
            "hub.licence",
            format!("The owner of your access token has not accepted the license of {name}."),
            format!("Open {page}, accept the license, then try again. Some publishers take days to approve."),
        )),
        401 if has_token => RequestError::Permanent(HubError::new(
            "hub.denied",
            format!(
                "Your access token was rejected for {name}: it was revoked, has expired, or lacks read permission."
            ),
            "Create a new token with read permission and replace the old one. `nook models token` shows where it is.",
        )),
        403 => RequestError::Permanent(HubError::new(
            "hub.denied",
            format!("The owner of your access token has no access to {name}."),
            format!("Ask the publisher at {page}, or choose another model."),
        )),
        401 | 404 => RequestError::Permanent(missing(code, has_token, name)),
        429 => RequestError::Busy(
            HubError::new(
                "hub.busy",
                "Too many requests to Hugging Face.",
                "Wait a moment and try again. Downloads in progress resume automatically.",
            ),
            wait(headers),
        ),
        n if n >= 500 || n == 408 => RequestError::Busy(
            HubError::new(
                "hub.broken",
                format!("Hugging Face has a server error (status {n})."),
                "Try again later. Downloads in progress resume automatically.",
            ),
            wait(headers),
        ),
        n => RequestError::Permanent(HubError::bad_response(name, format!("status {n}"))),
    }
}

fn no_token(name: &str, page: &str) -> HubError {
    HubError::new(
        "hub.no_token",
        format!("{name} requires that you accept its license and sign in with an access token."),
        format!(
            "Accept the license at {page}, create a token in your account settings, and save it with `nook models token --stdin`, HF_TOKEN or `hf auth login`."
        ),
    )
}

fn missing(code: &str, has_token: bool, name: &str) -> HubError {
    match code {
        "EntryNotFound" => HubError::new(
            "hub.not_found",
            format!("{name} has no such file."),
            "List its files with `nook models search OWNER/NAME`.",
        ),
        "RevisionNotFound" => HubError::new(
            "hub.not_found",
            format!("{name} has no such revision."),
            "Omit the revision to use the newest.",
        ),
        _ if has_token => HubError::new(
            "hub.not_found",
            format!("{name} does not exist, or your access token has no access to it."),
            "Check the spelling.",
        ),
        _ => HubError::new(
            "hub.not_found",
            format!("{name} does not exist, or it is private."),
            "Check the spelling. For a private repository, set an access token with `nook models token --stdin` or HF_TOKEN.",
        ),
    }
}

fn wait(headers: &HeaderMap) -> Option<Duration> {
    retry_after(headers).map(|wait| wait.min(MAX_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_say_what_to_do() {
        let check = |status: u16, code: &str, has_token: bool, expected: &str, word: &str| {
            let status = StatusCode::from_u16(status).unwrap();
            let headers = HeaderMap::new();
            let page = "https://hub/a/b";
            let error = status_error(status, &headers, code, has_token, "a/b", page).into_error();
            assert_eq!(error.code(), expected, "{status} {code} {has_token}");
            assert!(format!("{error} {}", error.remedy()).contains(word), "{error} {}", error.remedy());
        };
        check(401, "GatedRepo", false, "hub.no_token", "https://hub/a/b");
        check(403, "GatedRepo", false, "hub.no_token", "HF_TOKEN");
        check(403, "GatedRepo", true, "hub.licence", "https://hub/a/b");
        check(401, "GatedRepo", true, "hub.denied", "expired");
        check(403, "", true, "hub.denied", "no access");
        check(401, "RepoNotFound", false, "hub.not_found", "private");
        check(404, "EntryNotFound", true, "hub.not_found", "no such file");
        check(404, "RevisionNotFound", true, "hub.not_found", "revision");
        check(429, "", true, "hub.busy", "Too many requests");
        check(503, "", true, "hub.broken", "503");
        check(418, "", true, "hub.answer", "418");
    }

    #[test]
    fn f31_a_certificate_that_is_not_trusted_is_named_with_the_date_of_this_computer() {
        let day = "Sun, 13 Sep 2020 12:26:40 GMT";
        let cause = "invalid peer certificate: certificate expired: verification time 1600000000 (UNIX)";
        let error = connection_error("hub.example", None, cause, day);
        assert_eq!(error.code(), "hub.certificate");
        let text = error.to_string();
        assert!(text.contains("hub.example") && text.contains("Sun, 13 Sep 2020"), "{text}");
        assert!(
            error.remedy().contains("date") && error.remedy().contains("login page"),
            "{}",
            error.remedy()
        );
        let plain = connection_error("hub.example", None, "connection refused", day);
        assert_eq!(plain.code(), "hub.unreachable");
        assert!(!plain.to_string().contains("2020"), "{plain}");
    }

    #[test]
    fn a_server_says_how_long_to_wait() {
        let of = |text: &str| {
            let headers = HeaderMap::from_iter([(reqwest::header::RETRY_AFTER, text.parse().unwrap())]);
            wait(&headers).map(|wait| wait.as_secs())
        };
        assert_eq!((of("7"), of("999999"), of("soon")), (Some(7), Some(900), None));
    }
}
