//! Errors of this crate: what went wrong with getting a model, and what a person can do.

use io::Fault;

/// Result with a [`HubError`].
pub type Result<T, E = HubError> = std::result::Result<T, E>;

/// A failed request or download. `Display` writes the message: cause and place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct HubError {
    code: &'static str,
    message: String,
    remedy: String,
}

impl HubError {
    /// An error with a stable code, a sentence, and a remedy (which may be empty).
    pub fn new(code: &'static str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { code, message: message.into(), remedy: remedy.into() }
    }

    /// Stable identifier, never translated.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// What a person can do about it.
    pub fn remedy(&self) -> String {
        self.remedy.clone()
    }

    /// A response that violates the protocol.
    pub(crate) fn bad_response(host: &str, cause: impl std::fmt::Display) -> Self {
        Self::new(
            "hub.answer",
            format!("{host} sent an unusable response: {cause}."),
            "Try again later. If it persists, the address of the hub may be wrong.",
        )
    }

    /// Whether the user has switched off connections.
    pub fn is_offline(&self) -> bool {
        self.code == "network.offline"
    }

    /// Whether another program has the file open, and may let go of it soon.
    pub(crate) fn is_busy(&self) -> bool {
        self.code == "io.busy"
    }

    /// Whether the disk is full.
    pub fn is_no_space(&self) -> bool {
        matches!(self.code, "download.no_space" | "io.no_space")
    }
}

impl Fault for HubError {
    fn code(&self) -> &str {
        self.code()
    }

    fn remedy(&self) -> String {
        self.remedy()
    }
}

impl From<io::IoError> for HubError {
    fn from(error: io::IoError) -> Self {
        Self::new(error.code(), format!("The download can't be saved: {error}."), error.remedy())
    }
}

/// A size in bytes for people, such as "1.5 GB".
pub(crate) fn human(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KB", "MB", "GB", "TB"];
    let mut value = bytes as f64 / 1000.0;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// An error's message, followed by those of its causes.
pub(crate) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}
