//! Lock files that show which processes are alive: locked while a process runs, released by the system however it ends.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use crate::IoError;
use crate::private::open_private;

/// Attempts to lock a file that another holder removes at that moment; each attempt opens a new file.
const MAX_ATTEMPTS: usize = 64;

/// An exclusive lock on an open file. Dropping it removes the file and releases the lock.
#[derive(Debug)]
pub struct FileLock {
    file: File,
    path: PathBuf,
}

impl FileLock {
    /// Makes the file. It is locked from the moment it appears under its name.
    pub fn create(path: &Path) -> Result<Self, IoError> {
        let hidden = path.with_extension("new");
        let create = || {
            let file = open_private(OpenOptions::new().write(true).create_new(true), &hidden)?;
            file.lock()?;
            fs::rename(&hidden, path)?;
            Ok(file)
        };
        let file = create().map_err(|e| IoError::new("lock", path, e))?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Takes the lock; None if another holder, in this process or another one, has it.
    pub fn try_acquire(path: &Path) -> Result<Option<Self>, IoError> {
        let failed = |e| IoError::new("lock", path, e);
        for _ in 0..MAX_ATTEMPTS {
            let mut options = OpenOptions::new();
            let options = options.write(true).create(true).truncate(false);
            let file = open_private(options, path).map_err(failed)?;
            match file.try_lock() {
                // The previous holder removes the file before unlocking: this is a lock on a nameless file.
                Ok(()) if !is_named(&file, path) => {}
                Ok(()) => return Ok(Some(Self { file, path: path.to_owned() })),
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(e)) => return Err(failed(e)),
            }
        }
        Ok(None)
    }

    /// Whether a holder, in this process or another one, has the lock. False if the file does not exist.
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

/// Whether the open file is the one at `path`.
#[cfg(unix)]
fn is_named(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let named =
        |open: fs::Metadata, named: fs::Metadata| (open.dev(), open.ino()) == (named.dev(), named.ino());
    file.metadata().ok().zip(fs::metadata(path).ok()).is_some_and(|(open, under)| named(open, under))
}

/// Windows does not unlink open files, so the name still refers to this one.
#[cfg(not(unix))]
fn is_named(_file: &File, _path: &Path) -> bool {
    true
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Remove before unlocking: afterwards the next holder's file may be there. If removal fails, the file that stays is
        // unlocked, which still reports the truth.
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
        let taken = FileLock::try_acquire(&path).unwrap();
        assert!(taken.is_some() && FileLock::try_acquire(&path).unwrap().is_none());
        drop(taken);
        assert!(FileLock::try_acquire(&path).unwrap().is_some());
        fs::write(&path, b"").unwrap();
        assert!(!FileLock::is_held(&path).unwrap(), "a file left behind is not a lock");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    #[cfg(unix)]
    fn a_file_that_was_taken_away_is_no_lock() {
        let folder = std::env::temp_dir().join(format!("inglenook-lock-named-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.lock");
        let first = FileLock::try_acquire(&path).unwrap().unwrap();
        // A process that opened the file before its removal locks a file without a name.
        let late = OpenOptions::new().write(true).open(&path).unwrap();
        assert!(is_named(&late, &path));
        drop(first);
        late.try_lock().unwrap();
        assert!(!is_named(&late, &path));
        let next = FileLock::try_acquire(&path).unwrap().unwrap();
        assert!(is_named(&next.file, &path) && FileLock::try_acquire(&path).unwrap().is_none());
        drop(next);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn one_of_many_holds_it_at_a_time() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        let folder = std::env::temp_dir().join(format!("inglenook-lock-many-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (path, n_inside) = (folder.join("a.lock"), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let Some(lock) = FileLock::try_acquire(&path).unwrap() else { continue };
                        assert_eq!(n_inside.fetch_add(1, Ordering::SeqCst), 0);
                        n_inside.fetch_sub(1, Ordering::SeqCst);
                        drop(lock);
                    }
                });
            }
        });
        fs::remove_dir_all(&folder).unwrap();
    }
}
