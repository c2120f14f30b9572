//! The seam to the outside: every file that is written and every clock that is read passes here, so that tests
//! can take the disk away at any operation and set the time. Knows nothing of what the bytes mean.

#![forbid(unsafe_code)]

mod checkpoint_dir;
mod clock;
mod error;
mod fault;
mod lock;
mod power;
mod random;
mod real;

use std::path::{Path, PathBuf};

pub use clock::{Clock, ManualClock, RealClock};
pub use checkpoint_dir::CheckpointDir;
pub use error::{Fault, IoError};
pub use fault::{FaultIo, InjectedFault};
pub use lock::FileLock;
pub use power::{PowerIo, Torn};
pub use random::RandomFile;
pub use real::RealIo;

/// Writes the contents of a file.
pub type Fill<'a> = dyn FnMut(&mut dyn std::io::Write) -> std::io::Result<()> + 'a;

/// Of a disk, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// What this user may still write.
    pub free: u64,
    pub total: u64,
}

/// The file operations that the application needs. All paths are absolute or relative to the working directory.
pub trait Io: Send + Sync {
    /// The whole file.
    fn read(&self, path: &Path) -> Result<Vec<u8>, IoError>;

    /// The first `n` bytes of a file; all of it where there are fewer.
    fn read_start(&self, path: &Path, n: usize) -> Result<Vec<u8>, IoError>;

    /// Replaces the file: after success the new content survives a power cut, after an error (or a crash in the
    /// middle) the old content is there unharmed. The folder must exist.
    fn write_atomic(&self, path: &Path, bytes: &[u8]) -> Result<(), IoError>;

    /// As `write_atomic`, for contents that do not fit into memory: `fill` writes them bit by bit. What it returns
    /// as an error is the error, and nothing is left behind.
    fn write_stream(&self, path: &Path, fill: &mut Fill<'_>) -> Result<(), IoError>;

    /// Adds to the end of the file, making it where there is none; on disk when it returns.
    fn append(&self, path: &Path, bytes: &[u8]) -> Result<(), IoError>;

    /// Makes a folder and those above it; no error if it is there.
    fn create_dir_all(&self, path: &Path) -> Result<(), IoError>;

    /// Removes a file. Errors if there is none.
    fn remove_file(&self, path: &Path) -> Result<(), IoError>;

    /// Moves a file within one file system, replacing the target.
    fn rename(&self, from: &Path, to: &Path) -> Result<(), IoError>;

    /// Removes a folder. Errors if something is in it.
    fn remove_folder(&self, path: &Path) -> Result<(), IoError>;

    /// A second name for a file on the same disk. Errors where the system knows no such names, or something has the name.
    fn link(&self, from: &Path, to: &Path) -> Result<(), IoError>;

    /// True if something lies at the path.
    fn exists(&self, path: &Path) -> Result<bool, IoError>;

    /// Length of a file in bytes.
    fn len(&self, path: &Path) -> Result<u64, IoError>;

    /// Paths of the entries of a folder, sorted.
    fn list(&self, path: &Path) -> Result<Vec<PathBuf>, IoError>;

    /// Opens a file to be written and read anywhere in it, making it where there is none.
    fn open_random(&self, path: &Path) -> Result<Box<dyn RandomFile>, IoError>;

    /// Opens a file that is only read; its writing operations fail.
    fn open_to_read(&self, path: &Path) -> Result<Box<dyn RandomFile>, IoError>;

    /// Makes `link` stand for `target`, which may be relative to the link's folder. What lay at `link` is replaced.
    /// Errors where the system knows no such links.
    fn symlink(&self, target: &Path, link: &Path) -> Result<(), IoError>;

    /// Bytes that may still be written to the disk that holds the folder, and the bytes it has in all.
    fn space(&self, folder: &Path) -> Result<Space, IoError>;
}
