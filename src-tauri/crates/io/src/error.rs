//! A failed file operation: what was tried, on which path, and what the system reported.

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::{Fault, FileLimit, OperatingSystem, SpecialFile};

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

    /// What lies at the path, if it is no regular file.
    pub fn special_file(&self) -> Option<SpecialFile> {
        self.source.get_ref()?.downcast_ref().copied()
    }

    /// Kind of the system's error.
    pub fn io_kind(&self) -> std::io::ErrorKind {
        self.source.kind()
    }

    /// Whether another program has the file open in a way that excludes this operation. It may let go of it soon, as a
    /// virus scanner does.
    pub fn is_busy(&self) -> bool {
        use std::io::ErrorKind as K;
        let is_held = is_held_open(OperatingSystem::HERE, self.source.raw_os_error());
        is_held || matches!(self.io_kind(), K::ResourceBusy | K::ExecutableFileBusy)
    }

    /// Stable identifier, never translated.
    pub fn code(&self) -> &'static str {
        use std::io::ErrorKind as K;
        if self.special_file().is_some() {
            return "io.not_a_file";
        }
        if self.source.get_ref().is_some_and(|cause| cause.is::<FileLimit>()) {
            return "io.too_large";
        }
        match self.io_kind() {
            K::NotFound => "io.not_found",
            K::PermissionDenied | K::ReadOnlyFilesystem => "io.permission",
            K::StorageFull | K::QuotaExceeded => "io.no_space",
            _ if self.is_busy() => "io.busy",
            _ => "io.failed",
        }
    }

    /// What a person can do about it.
    pub fn remedy(&self) -> String {
        match self.code() {
            "io.not_found" => "Check that the path is right and the drive is connected.",
            "io.permission" => "Check the permissions of the folder, or choose another one in the settings.",
            "io.not_a_file" => {
                "Choose a regular file; save the data to one first if it comes from elsewhere."
            }
            "io.too_large" => "Choose a smaller file, or split it.",
            "io.no_space" => "Free some space on the drive, then try again.",
            "io.busy" => "Close the program that uses the file, such as a virus scanner, then try again.",
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

/// Whether a system reports by this code that another program has the file open.
fn is_held_open(system: OperatingSystem, code: Option<i32>) -> bool {
    match system {
        // Access denied, sharing violation, lock violation.
        OperatingSystem::Windows => matches!(code, Some(5 | 32 | 33)),
        OperatingSystem::Linux | OperatingSystem::MacOs => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_says_by_three_codes_that_a_file_is_open_elsewhere() {
        use OperatingSystem::*;
        for (system, code, expected) in [
            (Windows, Some(5), true),
            (Windows, Some(32), true),
            (Windows, Some(33), true),
            (Windows, Some(2), false),
            (Windows, None, false),
            // Input/output error, broken pipe, argument out of domain.
            (Linux, Some(5), false),
            (Linux, Some(32), false),
            (MacOs, Some(33), false),
        ] {
            assert_eq!(is_held_open(system, code), expected, "{system:?} {code:?}");
        }
    }
}
