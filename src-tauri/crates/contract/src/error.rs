//! What every failure becomes before it reaches an edge: a stable code, a sentence that names cause
//! and place, and a remedy that names the next step. Knows how severe it is, not how a door shows it.

pub use io::ErrorKind;
use io::Fault;
use serde::{Deserialize, Serialize};

use crate::types::{ErrorAction, ErrorInfo};

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure on its way to an edge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{}", .info.message)]
pub struct Error {
    pub kind: ErrorKind,
    pub info: ErrorInfo,
}

impl Error {
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

    pub fn input(code: impl Into<String>, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(ErrorKind::Input, code, message, remedy)
    }

    pub fn not_found(code: impl Into<String>, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, code, message, remedy)
    }

    /// With something that a door can offer to do.
    pub fn offering(mut self, action: ErrorAction) -> Self {
        self.info.action = Some(action);
        self
    }

    /// A fault of ours, caught at a boundary; everything else goes on.
    pub fn bug(what: impl std::fmt::Display) -> Self {
        Self::new(
            ErrorKind::Bug,
            "bug",
            format!("Something went wrong in Inglenook: {what}"),
            "Try again. If it keeps happening, see the log in the log folder.",
        )
    }

    pub fn code(&self) -> &str {
        &self.info.code
    }

    pub fn message(&self) -> &str {
        &self.info.message
    }

    pub fn remedy(&self) -> &str {
        &self.info.remedy
    }
}

/// An error that came over an edge: how severe it is follows from its code.
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
