//! The folder of checkpoint files: written atomically, found by name.
//!
//! A file is named after its contents, so that equal contents share one file. Guarantees that a name never leads outside
//! the folder. Knows nothing of what the bytes mean; the engine interprets them.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{Io, IoError};

/// Extension of checkpoint files.
const EXTENSION: &str = ".kv";

/// Longest name; two hashes with a hyphen fit.
const MAX_NAME_BYTES: usize = 96;

/// The folder of stored contexts.
#[derive(Clone)]
pub struct CheckpointDir {
    folder: PathBuf,
    io: Arc<dyn Io>,
}

impl CheckpointDir {
    /// A folder, which is created when the first file is written.
    pub fn new(folder: &Path, io: Arc<dyn Io>) -> Self {
        Self { folder: folder.to_owned(), io }
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Names of the files; empty if the folder does not exist.
    pub fn names(&self) -> Result<BTreeSet<String>, IoError> {
        Ok(self.entries()?.iter().filter_map(|path| name_of(path)).collect())
    }

    fn entries(&self) -> Result<Vec<PathBuf>, IoError> {
        match self.io.exists(&self.folder)? {
            true => self.io.list(&self.folder),
            false => Ok(Vec::new()),
        }
    }

    /// Whether a file of this name exists.
    pub fn has(&self, name: &str) -> bool {
        self.file(name).is_ok_and(|path| self.io.exists(&path).unwrap_or(false))
    }

    /// Reads the whole file.
    pub fn read(&self, name: &str) -> Result<Vec<u8>, IoError> {
        self.io.read(&self.file(name)?)
    }

    /// Reads the first `n` bytes, or the whole file if it is shorter.
    pub fn read_start(&self, name: &str, n: usize) -> Result<Vec<u8>, IoError> {
        self.io.read_start(&self.file(name)?, n)
    }

    /// Replaces the file atomically; it is on disk on return. After an error nothing of it remains.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), IoError> {
        let path = self.file(name)?;
        self.io.create_dir_all(&self.folder)?;
        self.io.write_atomic(&path, bytes)?;
        let n_written = self.io.len(&path)?;
        if n_written != bytes.len() as u64 {
            self.remove(name)?;
            let cause = format!("{n_written} of {} bytes arrived", bytes.len());
            return Err(IoError::new("write", &path, std::io::Error::other(cause)));
        }
        Ok(())
    }

    /// Removes a file. No error if it does not exist.
    pub fn remove(&self, name: &str) -> Result<(), IoError> {
        let path = self.file(name)?;
        match self.io.exists(&path)? {
            true => self.io.remove_file(&path),
            false => Ok(()),
        }
    }

    /// Removes leftovers of interrupted writes and files not in `known`, and returns their number.
    pub fn sweep(&self, known: &HashSet<String>) -> Result<usize, IoError> {
        let mut n_removed = 0;
        for path in self.entries()? {
            if name_of(&path).is_none_or(|name| !known.contains(&name)) {
                self.io.remove_file(&path)?;
                n_removed += 1;
            }
        }
        Ok(n_removed)
    }

    fn file(&self, name: &str) -> Result<PathBuf, IoError> {
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        match is_name && !name.is_empty() && name.len() <= MAX_NAME_BYTES {
            true => Ok(self.folder.join(format!("{name}{EXTENSION}"))),
            false => {
                let cause =
                    std::io::Error::new(std::io::ErrorKind::InvalidInput, "not the name of a checkpoint");
                Err(IoError::new("open", &self.folder.join(name), cause))
            }
        }
    }
}

fn name_of(path: &Path) -> Option<String> {
    path.file_name()?.to_str()?.strip_suffix(EXTENSION).filter(|name| !name.starts_with('.')).map(Into::into)
}
