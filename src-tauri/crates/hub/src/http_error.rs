//! Failed requests: what a status or a broken connection means, and whether to retry.

use std::time::Duration;

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

/// A connection that failed.
pub(crate) fn network_error(host: &str, error: &reqwest::Error) -> HubError {
    let cause = error_chain(&error.without_url_ref());
    let lower = cause.to_lowercase();
    if lower.contains("certificate") || lower.contains("unknownissuer") {
        return HubError::new(
            "hub.certificate",
            format!("The connection to {host} can't be trusted: {cause}."),
            "A proxy or a virus scanner may intercept it: add its certificate to the system's. Also check this computer's date.",
        );
    }
    HubError::new(
        "hub.unreachable",
        format!("{host} can't be reached: {cause}."),
        "Check the connection. It resumes automatically once the network is back.",
    )
}

/// A server that sent nothing for longer than `stall`.
pub(crate) fn stalled_error(url: &Url, stall: Duration) -> HubError {
    HubError::new(
        "hub.silent",
        format!("{} has sent nothing for {:.0} seconds.", host(url), stall.as_secs_f64()),
        "It is tried again automatically.",
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
            format!("The licence of {name} has not been accepted by the owner of your token."),
            format!("Open {page}, accept its conditions, then try again. Some publishers answer after days."),
        )),
        401 if has_token => RequestError::Permanent(HubError::new(
            "hub.denied",
            format!(
                "Your token was refused for {name}: it has been withdrawn, has expired, or may not read it."
            ),
            "Make a new token with read access and replace the old one: `nook models token` says where it is.",
        )),
        403 => RequestError::Permanent(HubError::new(
            "hub.denied",
            format!("Access to {name} is denied for the owner of your token."),
            format!("Ask the publisher at {page}, or choose another model."),
        )),
        401 | 404 => RequestError::Permanent(missing(code, has_token, name)),
        429 => RequestError::Busy(
            HubError::new(
                "hub.busy",
                "The hub asks us to wait: too many requests.",
                "It continues automatically.",
            ),
            wait(headers),
        ),
        n if n >= 500 || n == 408 => RequestError::Busy(
            HubError::new(
                "hub.broken",
                format!("The hub reports an internal error (status {n})."),
                "It is tried again automatically.",
            ),
            wait(headers),
        ),
        n => RequestError::Permanent(HubError::bad_response(name, format!("status {n}"))),
    }
}

fn no_token(name: &str, page: &str) -> HubError {
    HubError::new(
        "hub.no_token",
        format!("{name} requires accepting its licence, and there is no token that identifies you."),
        format!(
            "Accept it at {page}, make a token under your account's settings, and give it: `nook models token --stdin`, HF_TOKEN or `hf auth login`."
        ),
    )
}

fn missing(code: &str, has_token: bool, name: &str) -> HubError {
    match code {
        "EntryNotFound" => HubError::new(
            "hub.not_found",
            format!("{name} has no such file."),
            "Look at its files: `nook models search OWNER/NAME`.",
        ),
        "RevisionNotFound" => HubError::new(
            "hub.not_found",
            format!("{name} has no such revision."),
            "Leave it out for the newest.",
        ),
        _ if has_token => HubError::new(
            "hub.not_found",
            format!("There is no {name}, or your token may not see it."),
            "Check the spelling.",
        ),
        _ => HubError::new(
            "hub.not_found",
            format!("There is no {name}, or it is private."),
            "Check the spelling. Private repositories need a token: `nook models token --stdin`, or HF_TOKEN.",
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
        check(403, "", true, "hub.denied", "denied");
        check(401, "RepoNotFound", false, "hub.not_found", "private");
        check(404, "EntryNotFound", true, "hub.not_found", "no such file");
        check(404, "RevisionNotFound", true, "hub.not_found", "revision");
        check(429, "", true, "hub.busy", "wait");
        check(503, "", true, "hub.broken", "503");
        check(418, "", true, "hub.answer", "418");
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
