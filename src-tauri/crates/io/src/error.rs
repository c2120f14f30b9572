//! A failed file operation: what was tried, on which path, and what the system said.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// What every crate's error can say, so that one conversion serves the edges.
///
/// How severe an error is follows from its code alone (`contract::ErrorKind`), so that an error that crossed a process
/// boundary is as severe as it was before.
pub trait Fault: std::error::Error {
    /// Stable identifier such as `weights.truncated`, never translated.
    fn code(&self) -> &str;

    /// The next step, as a sentence.
    fn remedy(&self) -> String;
}

impl Fault for IoError {
    fn code(&self) -> &str {
        Self::code(self)
    }

    fn remedy(&self) -> String {
        Self::remedy(self)
    }
}

/// One failed operation.
#[derive(Debug, Error)]
#[error("cannot {operation} {}: {source}", path.display())]
pub struct IoError {
    /// A verb: "read", "write", "rename" …
    pub operation: &'static str,
    pub path: PathBuf,
    pub source: std::io::Error,
}

impl IoError {
    pub fn new(operation: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self { operation, path: path.to_owned(), source }
    }

    pub fn kind(&self) -> std::io::ErrorKind {
        self.source.kind()
    }

    /// Stable identifier, never translated.
    pub fn code(&self) -> &'static str {
        use std::io::ErrorKind as K;
        match self.kind() {
            K::NotFound => "io.not_found",
            K::PermissionDenied | K::ReadOnlyFilesystem => "io.permission",
            K::StorageFull | K::QuotaExceeded => "io.no_space",
            _ => "io.failed",
        }
    }

    /// What a person can do about it.
    pub fn remedy(&self) -> String {
        match self.code() {
            "io.not_found" => "Check that the path is right and the drive is connected.",
            "io.permission" => "Check the permissions of the folder, or choose another one in the settings.",
            "io.no_space" => "Free some space on the drive, then try again.",
            _ => "Check the drive that holds the file, then try again.",
        }
        .to_owned()
    }
}
