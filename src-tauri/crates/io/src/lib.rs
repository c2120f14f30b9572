//! The seam to the outside world: every file that is written and every clock that is read passes through here.
//!
//! Tests replace it to make the disk fail at any operation, to cut the power, and to set the time. Knows nothing of what
//! the bytes mean.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod checkpoint_dir;
mod clock;
mod damage;
mod error;
mod fault;
mod fault_injection;
mod lock;
mod operating_system;
mod power_loss;
mod private;
mod random;
mod real;
mod regular_file;
mod special_file;

use std::path::{Path, PathBuf};

pub use checkpoint_dir::CheckpointDir;
pub use clock::{Clock, ManualClock, RealClock};
pub use damage::{report_damage, take_damage_report};
pub use error::IoError;
pub use fault::{ErrorKind, Fault};
pub use fault_injection::{FaultDuration, FaultIo};
pub use lock::FileLock;
pub use operating_system::OperatingSystem;
pub use power_loss::{PowerCut, PowerLossIo};
pub use private::make_private;
pub use random::{RandomFile, SequentialReader};
pub use real::RealIo;
pub use regular_file::{open_regular_file, read_regular_file};
pub use special_file::{FileLimit, SpecialFile};

/// Callback that writes the contents of a file; see [`Io::write_stream`].
pub type FillFn<'a> = dyn FnMut(&mut dyn std::io::Write) -> std::io::Result<()> + 'a;

/// Space on a disk, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    /// Bytes that this user may still write.
    pub free: u64,
    /// Capacity of the disk.
    pub total: u64,
}

/// The file operations that the application needs. All paths are absolute or relative to the working directory.
pub trait Io: Send + Sync {
    /// Reads the whole file. Only for files of our own, whose lengths are known; see [`Io::read_within`].
    fn read(&self, path: &Path) -> Result<Vec<u8>, IoError>;

    /// Reads a whole file that somebody named. Errors if it is longer than `max_bytes` or no regular file.
    fn read_within(&self, path: &Path, max_bytes: u64) -> Result<Vec<u8>, IoError>;

    /// Reads the first `n` bytes, or the whole file if it is shorter.
    fn read_start(&self, path: &Path, n: usize) -> Result<Vec<u8>, IoError>;

    /// Replaces the file. After success the new content survives a power cut; after an error or a crash the old
    /// content is unharmed. The folder must exist.
    fn write_atomic(&self, path: &Path, bytes: &[u8]) -> Result<(), IoError>;

    /// As `write_atomic`, for contents that do not fit into memory: `fill` writes them piece by piece. If `fill`
    /// returns an error, that is the error, and nothing is left behind.
    fn write_stream(&self, path: &Path, fill: &mut FillFn<'_>) -> Result<(), IoError>;

    /// Appends to the file, which is made if it is missing. The bytes are on disk on return.
    fn append(&self, path: &Path, bytes: &[u8]) -> Result<(), IoError>;

    /// Makes a folder and its parents. No error if it exists.
    fn create_dir_all(&self, path: &Path) -> Result<(), IoError>;

    /// Removes a file. Errors if it does not exist.
    fn remove_file(&self, path: &Path) -> Result<(), IoError>;

    /// Moves a file within one file system, replacing the target.
    fn rename(&self, from: &Path, to: &Path) -> Result<(), IoError>;

    /// Removes a folder. Errors if it is not empty.
    fn remove_folder(&self, path: &Path) -> Result<(), IoError>;

    /// Makes a hard link. Errors if the file system has no hard links or `to` exists.
    fn link(&self, from: &Path, to: &Path) -> Result<(), IoError>;

    /// Whether something exists at the path.
    fn exists(&self, path: &Path) -> Result<bool, IoError>;

    /// Length of a file in bytes.
    fn len(&self, path: &Path) -> Result<u64, IoError>;

    /// Paths of a folder's entries, sorted.
    fn list(&self, path: &Path) -> Result<Vec<PathBuf>, IoError>;

    /// Opens a file for reading and writing at any offset; makes it if it is missing.
    fn open_random(&self, path: &Path) -> Result<Box<dyn RandomFile>, IoError>;

    /// Opens a file for reading only; its write operations fail.
    fn open_to_read(&self, path: &Path) -> Result<Box<dyn RandomFile>, IoError>;

    /// Makes `link` a symbolic link to `target`, which may be relative to the link's folder. Replaces what lies at
    /// `link`. Errors if the system has no symbolic links.
    fn symlink(&self, target: &Path, link: &Path) -> Result<(), IoError>;

    /// Free and total space of the disk that holds the folder.
    fn disk_space(&self, folder: &Path) -> Result<DiskSpace, IoError>;
}
