//! Which processes are alive: each holds a lock file, so that an answer whose writer died is told from
//! one that another window or terminal is writing right now. No heartbeat, no work while idle.

use std::path::{Path, PathBuf};

use io::{FileLock, Io};

use crate::error::Result;

/// This process's lock. Dropped with the session.
pub struct Owner {
    pub id: String,
    folder: PathBuf,
    _lock: FileLock,
}

/// Files of other processes that were found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OtherProcesses {
    pub alive: bool,
    /// One ended without tidying up: by a crash, a kill, a power cut.
    pub died: bool,
}

impl Owner {
    /// `id` must be new.
    pub fn take(folder: &Path, id: String, io: &dyn Io) -> Result<Self> {
        io.create_dir_all(folder)?;
        let lock = FileLock::create(&file(folder, &id))?;
        Ok(Self { id, folder: folder.to_owned(), _lock: lock })
    }

    pub fn is_alive(&self, id: &str) -> Result<bool> {
        Ok(id == self.id || FileLock::is_held(&file(&self.folder, id))?)
    }

    /// Looks at all of them and removes the files of the dead.
    pub fn others(&self, io: &dyn Io) -> Result<OtherProcesses> {
        let mut others = OtherProcesses::default();
        let mine = file(&self.folder, &self.id);
        let locks = io.list(&self.folder)?;
        // One that was killed while it made its lock.
        for path in locks.iter().filter(|path| path.extension().is_some_and(|e| e == "new")) {
            if !FileLock::is_held(path)? {
                let _ = io.remove_file(path);
            }
        }
        for path in
            locks.iter().filter(|path| **path != mine && path.extension().is_some_and(|e| e == "lock"))
        {
            if FileLock::is_held(path)? {
                others.alive = true;
            } else {
                others.died = true;
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
