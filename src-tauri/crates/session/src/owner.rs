//! Which processes are alive: each holds a lock file.
//!
//! This distinguishes an answer whose writer died from one that another window or terminal is writing now. Needs no
//! heartbeat and no work while idle.

use std::path::{Path, PathBuf};

use io::{FileLock, Io};

use crate::error::Result;

/// This process's lock. Dropped with the session.
pub struct Owner {
    pub id: String,
    folder: PathBuf,
    /// None: the folder cannot be written.
    _lock: Option<FileLock>,
}

/// Lock files of other processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OtherProcesses {
    pub is_any_alive: bool,
    /// One ended without cleaning up: by a crash, a kill or a power cut.
    pub has_any_died: bool,
}

impl Owner {
    /// Takes the lock of a new process. `id` must be unique.
    pub fn take(folder: &Path, id: String, io: &dyn Io) -> Result<Self> {
        io.create_dir_all(folder)?;
        let lock = FileLock::create(&file(folder, &id))?;
        Ok(Self { id, folder: folder.to_owned(), _lock: Some(lock) })
    }

    /// A process that only reads, and holds no lock.
    pub fn without_lock(folder: &Path, id: String) -> Self {
        Self { id, folder: folder.to_owned(), _lock: None }
    }

    pub fn is_alive(&self, id: &str) -> Result<bool> {
        Ok(id == self.id || FileLock::is_held(&file(&self.folder, id))?)
    }

    /// Examines all lock files and removes those of dead processes.
    pub fn others(&self, io: &dyn Io) -> Result<OtherProcesses> {
        let mut others = OtherProcesses::default();
        let mine = file(&self.folder, &self.id);
        let locks = io.list(&self.folder)?;
        // A process may have been killed while it made its lock.
        for path in locks.iter().filter(|path| path.extension().is_some_and(|e| e == "new")) {
            if !FileLock::is_held(path)? {
                let _ = io.remove_file(path);
            }
        }
        for path in
            locks.iter().filter(|path| **path != mine && path.extension().is_some_and(|e| e == "lock"))
        {
            if FileLock::is_held(path)? {
                others.is_any_alive = true;
            } else {
                others.has_any_died = true;
                // Another process that starts now may have removed it first.
                let _ = io.remove_file(path);
            }
        }
        Ok(others)
    }
}

fn file(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.lock"))
}
