//! What a server's refusal means: an error with code and remedy, and whether asking again may help.

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::HeaderMap;

use super::fault::{Fault, RetryAdvice};
use super::server_words::{RefusedRequest, ServerFailure, quote};
use contract::ErrorKind;
use secrets::Secret;

/// A status that is no success, with the server's own words.
struct Refusal<'a> {
    place: &'a str,
    status: StatusCode,
    said: &'a ServerFailure,
    has_key: bool,
    /// The words as they are shown, behind a colon.
    quoted: String,
    wait: Option<Duration>,
    /// The server says that asking again is of no use.
    is_final: bool,
}

/// What a refusal means.
pub fn refused(
    place: &str,
    status: StatusCode,
    headers: &HeaderMap,
    said: &ServerFailure,
    key: Option<&Secret>,
) -> Fault {
    let is_final = headers.get("x-should-retry").is_some_and(|value| value == "false");
    let (quoted, wait) = (quote(&said.words, key), hub::retry_after(headers));
    let refusal = Refusal { place, status, said, has_key: key.is_some(), quoted, wait, is_final };
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
            "Enter the new address of the server. If only its list of models moved, enter the name of a model instead.",
        ),
        _ => refusal.rejected(),
    }
}

impl Refusal<'_> {
    fn rejected(&self) -> Fault {
        let fault = Fault::new(
            RetryAdvice::Never,
            ErrorKind::Input,
            "remote.refused",
            format!("{} rejected the request with status {}{}", self.place, self.status, self.quoted),
            "Change the setting it mentions, or choose another model.",
        );
        let refused = RefusedRequest { words: self.said.words.clone(), field: self.said.field.clone() };
        Fault { refused: Some(Box::new(refused)), ..fault }
    }

    fn denied(&self) -> Fault {
        let give = "Add the key to the server (nook endpoints update ID --key-stdin, or --key-env NAME).";
        let (code, message, remedy) = match (self.status, self.has_key) {
            (StatusCode::UNAUTHORIZED, false) => {
                ("remote.key", format!("{} requires an API key{}", self.place, self.quoted), give)
            }
            (StatusCode::UNAUTHORIZED, true) => {
                ("remote.key", format!("{} rejected the API key{}", self.place, self.quoted), give)
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
        let is_model = self.said.code.as_deref() == Some("model_not_found")
            || self.said.words.to_lowercase().contains("model");
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
        let words = self.said.words.to_lowercase();
        let phrases =
            ["context length", "context size", "context window", "maximum context", "prompt is too long"];
        self.said.code.as_deref() == Some("context_length_exceeded")
            || phrases.iter().any(|phrase| words.contains(phrase))
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

/// A failure that a stream tells. Its status, if it names one, means what it means elsewhere.
pub fn failed_in_stream(place: &str, said: &ServerFailure, key: Option<&Secret>) -> Fault {
    let status = said.status.and_then(|status| StatusCode::from_u16(status).ok());
    let is_busy = status.is_some_and(|status| [408, 425, 429, 503, 529].contains(&status.as_u16()));
    let refusal = Refusal {
        place,
        status: status.unwrap_or(StatusCode::BAD_REQUEST),
        said,
        has_key: key.is_some(),
        quoted: quote(&said.words, key),
        wait: None,
        is_final: false,
    };
    match status {
        _ if refusal.is_too_long() => refusal.too_long(),
        Some(status) if status.is_client_error() => refused(place, status, &HeaderMap::new(), said, key),
        _ => Fault::new(
            // What is no error of the protocol is no passing one either.
            if said.is_marked || is_busy { RetryAdvice::Later(None) } else { RetryAdvice::Elsewhere },
            ErrorKind::Device,
            "remote.failing",
            format!("{place} failed while answering{}", refusal.quoted),
            "Try again. If it keeps happening, check the log of that server.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderValue, RETRY_AFTER};

    use super::*;

    fn check(status: u16, words: &str, code: Option<&str>, expected: (&str, RetryAdvice)) {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_static("7"));
        let key = Secret::new("sk-secret".into());
        let status = StatusCode::from_u16(status).unwrap();
        let said =
            ServerFailure { words: words.into(), code: code.map(Into::into), ..ServerFailure::default() };
        let fault = refused("lab:8000", status, &headers, &said, Some(&key));
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
    fn failures_in_a_stream_are_told_apart() {
        let check = |said: ServerFailure, expected: (&str, RetryAdvice)| {
            let fault = failed_in_stream("lab:8000", &said, None);
            assert_eq!((fault.error.code(), fault.again), expected, "{said:?}");
            let code = fault.error.code();
            assert!(
                code == "request.context_full" || fault.error.message().contains(&said.words),
                "{said:?}"
            );
        };
        let said = |words: &str, status: Option<u16>, is_marked: bool| ServerFailure {
            words: words.into(),
            status,
            is_marked,
            ..ServerFailure::default()
        };
        check(said("no memory", None, true), ("remote.failing", RetryAdvice::Later(None)));
        check(said("no memory", Some(500), false), ("remote.failing", RetryAdvice::Elsewhere));
        check(said("full", Some(503), false), ("remote.failing", RetryAdvice::Later(None)));
        check(said("slow down", Some(429), false), ("remote.busy", RetryAdvice::Later(None)));
        check(said("bad field", Some(400), true), ("remote.refused", RetryAdvice::Never));
        check(
            said("maximum context length is 9", Some(400), true),
            ("request.context_full", RetryAdvice::Never),
        );
        check(said("maximum context length is 9", None, true), ("request.context_full", RetryAdvice::Never));
    }
}
