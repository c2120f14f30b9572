//! The folder of checkpoint files, and how much it may hold.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use io::{CheckpointDir, Io};
use platform::DataDirs;

/// Where the files lie, in the data folder.
const FOLDER: &str = "contexts";

/// The folder of checkpoint files, and how much it may hold.
pub(crate) struct CheckpointFiles {
    dir: CheckpointDir,
    limits: Mutex<CheckpointLimits>,
}

#[derive(Default)]
struct CheckpointLimits {
    /// Bytes that the files may take.
    disk_budget: u64,
    /// The last one could not be stored, and the user knows.
    has_failed: bool,
}

impl CheckpointFiles {
    pub fn new(dirs: &DataDirs, io: Arc<dyn Io>) -> Self {
        Self { dir: CheckpointDir::new(&dirs.data.join(FOLDER), io), limits: Mutex::default() }
    }

    pub fn dir(&self) -> &CheckpointDir {
        &self.dir
    }

    /// Bytes that the files may take.
    pub fn disk_budget(&self) -> u64 {
        self.limits().disk_budget
    }

    pub fn set_disk_budget(&self, bytes: u64) {
        self.limits().disk_budget = bytes;
    }

    /// A file was stored: the next failure is reported again.
    pub fn clear_failure(&self) {
        self.limits().has_failed = false;
    }

    /// A file could not be stored. True: the user does not know yet.
    pub fn is_first_failure(&self) -> bool {
        !std::mem::replace(&mut self.limits().has_failed, true)
    }

    fn limits(&self) -> MutexGuard<'_, CheckpointLimits> {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
