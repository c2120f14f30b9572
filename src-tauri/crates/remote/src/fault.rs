//! What can go wrong between here and a server, and whether asking again may help.

use std::time::Duration;

use super::server_words::{RefusedRequest, quote, title_of};
use contract::{Error, ErrorKind};

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
    pub error: Box<Error>,
    pub again: RetryAdvice,
    /// What the server said against the request itself.
    pub refused: Option<Box<RefusedRequest>>,
}

impl Fault {
    pub fn new(again: RetryAdvice, kind: ErrorKind, code: &str, message: String, remedy: &str) -> Self {
        Self::from_error(again, Error::new(kind, code, message, remedy))
    }

    /// An error of ours.
    pub fn from_error(again: RetryAdvice, error: Error) -> Self {
        Self { error: Box::new(error), again, refused: None }
    }
}

/// It said nothing for too long.
pub fn silent(place: &str, silence: Duration) -> Fault {
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

/// A page for people, such as one to sign in, came instead of an answer.
pub fn web_page(place: &str, page: &str) -> Fault {
    let title = title_of(page).map_or_else(String::new, |title| quote(&title, None));
    Fault::new(
        RetryAdvice::Elsewhere,
        ErrorKind::Input,
        "remote.web_page",
        format!(
            "{place} sent a web page, not an API answer (HTML){}",
            if title.is_empty() { "." } else { &title }
        ),
        "Check the address (most end with /v1). The network or the server may want you to sign in first.",
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
