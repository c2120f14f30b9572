//! The form of every failure at an edge: a stable code, a message with cause and location, and a
//! remedy with the next step. Knows the severity, not how an interface shows it.

pub use io::ErrorKind;
use io::Fault;
use serde::{Deserialize, Serialize};

use crate::types::{ErrorAction, ErrorInfo};

/// The result of everything that may fail at an edge.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure on its way to an edge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{}", .info.message)]
pub struct Error {
    /// Kind of failure; interfaces map it to exit codes and HTTP statuses.
    pub kind: ErrorKind,
    /// Code, message and remedy.
    pub info: ErrorInfo,
}

impl Error {
    /// An error from its parts, without an action.
    pub fn new(
        kind: ErrorKind,
        code: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let info =
            ErrorInfo { code: code.into(), message: message.into(), remedy: remedy.into(), action: None };
        Self { kind, info }
    }

    /// An error in the caller's input.
    pub fn input(code: impl Into<String>, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(ErrorKind::Input, code, message, remedy)
    }

    /// An error for something that doesn't exist.
    pub fn not_found(code: impl Into<String>, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, code, message, remedy)
    }

    /// Adds an action that an interface can offer.
    pub fn offering(mut self, action: ErrorAction) -> Self {
        self.info.action = Some(action);
        self
    }

    /// A bug of ours, caught at a boundary; everything else continues.
    pub fn bug(what: impl std::fmt::Display) -> Self {
        Self::new(
            ErrorKind::Bug,
            "bug",
            format!("Something went wrong in Inglenook: {what}"),
            "Try again. If it keeps happening, see the log in the log folder.",
        )
    }

    /// Stable code, such as `limit.turns`.
    pub fn code(&self) -> &str {
        &self.info.code
    }

    /// A sentence that names cause and place.
    pub fn message(&self) -> &str {
        &self.info.message
    }

    /// A sentence that names the next step.
    pub fn remedy(&self) -> &str {
        &self.info.remedy
    }
}

/// An error received over an edge: its kind follows from its code.
impl From<ErrorInfo> for Error {
    fn from(info: ErrorInfo) -> Self {
        Self { kind: ErrorKind::of_code(&info.code), info }
    }
}

/// An error of a lower crate.
impl<F: Fault> From<F> for Error {
    fn from(fault: F) -> Self {
        Self::new(fault.kind(), fault.code(), fault.message(), fault.remedy())
    }
}
