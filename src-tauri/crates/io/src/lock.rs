//! A file that says "this process lives": locked for as long as it runs, released by the system however it ends.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use crate::IoError;

/// The lock lies on the open file; dropping this removes the file.
#[derive(Debug)]
pub struct FileLock {
    file: File,
    path: PathBuf,
}

impl FileLock {
    /// Makes the file, locked from the moment it can be seen under its name.
    pub fn create(path: &Path) -> Result<Self, IoError> {
        let hidden = path.with_extension("new");
        let create = || {
            let file = OpenOptions::new().write(true).create_new(true).open(&hidden)?;
            file.lock()?;
            fs::rename(&hidden, path)?;
            Ok(file)
        };
        let file = create().map_err(|e| IoError::new("lock", path, e))?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Takes the lock unless another holder (of this process or another one) has it.
    pub fn try_take(path: &Path) -> Result<Option<Self>, IoError> {
        let failed = |e| IoError::new("lock", path, e);
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { file, path: path.to_owned() })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(e)) => Err(failed(e)),
        }
    }

    /// Whether another holder (of this process or another one) has it. False where there is no file.
    pub fn is_held(path: &Path) -> Result<bool, IoError> {
        match OpenOptions::new().write(true).open(path) {
            Ok(file) => match file.try_lock() {
                Ok(()) => Ok(false),
                Err(TryLockError::WouldBlock) => Ok(true),
                Err(TryLockError::Error(e)) => Err(IoError::new("lock", path, e)),
            },
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(IoError::new("lock", path, e)),
        }
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // A file that stays behind is unlocked and so says the right thing.
        let _ = fs::remove_file(&self.path);
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_until_it_is_dropped() {
        let folder = std::env::temp_dir().join(format!("inglenook-lock-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.lock");
        assert!(!FileLock::is_held(&path).unwrap());
        let lock = FileLock::create(&path).unwrap();
        assert!(FileLock::is_held(&path).unwrap());
        drop(lock);
        assert!(!FileLock::is_held(&path).unwrap());
        assert!(!path.exists());
        let taken = FileLock::try_take(&path).unwrap();
        assert!(taken.is_some() && FileLock::try_take(&path).unwrap().is_none());
        drop(taken);
        assert!(FileLock::try_take(&path).unwrap().is_some());
        fs::write(&path, b"").unwrap();
        assert!(!FileLock::is_held(&path).unwrap(), "a file left behind is not a lock");
        fs::remove_dir_all(&folder).unwrap();
    }
}
