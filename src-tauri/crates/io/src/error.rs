//! A failed file operation: what was tried, on which path, and what the system reported.

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::Fault;

/// A failed file operation.
#[derive(Debug, Error)]
#[error("cannot {operation} {}: {source}", path.display())]
pub struct IoError {
    /// A verb: "read", "write", "rename" …
    pub operation: &'static str,
    /// The file or folder.
    pub path: PathBuf,
    /// What the system reported.
    pub source: std::io::Error,
}

impl IoError {
    /// An error of `operation` (a verb) on `path`.
    pub fn new(operation: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self { operation, path: path.to_owned(), source }
    }

    /// Kind of the system's error.
    pub fn io_kind(&self) -> std::io::ErrorKind {
        self.source.kind()
    }

    /// Stable identifier, never translated.
    pub fn code(&self) -> &'static str {
        use std::io::ErrorKind as K;
        match self.io_kind() {
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

impl Fault for IoError {
    fn code(&self) -> &str {
        self.code()
    }

    fn remedy(&self) -> String {
        self.remedy()
    }
}
