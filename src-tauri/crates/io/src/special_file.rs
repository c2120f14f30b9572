//! What is no regular file, and what is longer than its reader takes: causes of an `IoError`.

use std::fs::FileType;
use std::path::Path;

use thiserror::Error;

/// A thing at a path that is no regular file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SpecialFile {
    /// A directory.
    #[error("it is a folder, not a file")]
    Folder,
    /// A named pipe (FIFO), or one end of another pipe.
    #[error("it is a pipe, not a regular file")]
    Pipe,
    /// A socket of the file system.
    #[error("it is a socket, not a regular file")]
    Socket,
    /// A character or block device, such as `/dev/zero`.
    #[error("it is a device, not a regular file")]
    Device,
    /// Of a type that is not known here.
    #[error("it is not a regular file")]
    Other,
}

/// A file that is longer than its reader takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("it has more than {max_bytes} bytes, the maximum")]
pub struct FileLimit {
    /// Most bytes that are read.
    pub max_bytes: u64,
}

impl SpecialFile {
    /// Returns what the type is, or None for a regular file.
    pub fn of(kind: FileType) -> Option<Self> {
        match kind {
            kind if kind.is_file() => None,
            kind if kind.is_dir() => Some(Self::Folder),
            kind => Some(Self::of_system(kind)),
        }
    }

    #[cfg(unix)]
    fn of_system(kind: FileType) -> Self {
        use std::os::unix::fs::FileTypeExt;
        match kind {
            kind if kind.is_fifo() => Self::Pipe,
            kind if kind.is_socket() => Self::Socket,
            kind if kind.is_char_device() || kind.is_block_device() => Self::Device,
            _ => Self::Other,
        }
    }

    #[cfg(not(unix))]
    fn of_system(_: FileType) -> Self {
        Self::Other
    }

    /// Errors if something other than a regular file lies at the path. What is missing is no error.
    pub(crate) fn check(path: &Path) -> std::io::Result<()> {
        match std::fs::metadata(path) {
            Ok(metadata) => Self::of(metadata.file_type()).map_or(Ok(()), |special| Err(special.into())),
            Err(_) => Ok(()),
        }
    }
}

impl From<SpecialFile> for std::io::Error {
    fn from(special: SpecialFile) -> Self {
        let kind = match special {
            SpecialFile::Folder => std::io::ErrorKind::IsADirectory,
            _ => std::io::ErrorKind::InvalidInput,
        };
        Self::new(kind, special)
    }
}
