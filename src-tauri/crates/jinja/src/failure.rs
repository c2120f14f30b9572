//! Why a template could not be read or rendered.

use std::fmt;

/// Result of reading or rendering.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a rendering ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The template called `raise_exception`.
    Raised(String),
    /// An operation is impossible, as it is in Python.
    Invalid(String),
    /// It took too long.
    TooSlow,
    /// It needed too much memory.
    TooLarge,
    /// The result is not wanted any more.
    Cancelled,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Raised(message) | Self::Invalid(message) => f.write_str(message),
            Self::TooSlow => f.write_str("it takes too long"),
            Self::TooLarge => f.write_str("it needs too much memory"),
            Self::Cancelled => f.write_str("it was cancelled"),
        }
    }
}

impl std::error::Error for Failure {}

/// Makes the error of an impossible operation.
pub fn invalid<T>(message: impl Into<String>) -> Result<T> {
    Err(Failure::Invalid(message.into()))
}

/// A failure and the line of the template at which it happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderError {
    /// What happened.
    pub failure: Failure,
    /// From 1.
    pub line: u32,
}

/// A template that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// What is wrong.
    pub message: String,
    /// From 1.
    pub line: u32,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (line {})", self.message, self.line)
    }
}

impl std::error::Error for SyntaxError {}
