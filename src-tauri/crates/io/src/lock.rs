//! A file that says "this process lives": locked for as long as it runs, released by the system however it ends.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use crate::IoError;

/// How often a file that was taken away under our hands is made anew. Each time somebody else let it go just then.
const MOST_TRIES: usize = 64;

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
        for _ in 0..MOST_TRIES {
            let open = OpenOptions::new().write(true).create(true).truncate(false).open(path);
            let file = open.map_err(failed)?;
            match file.try_lock() {
                // Whoever had it removes the file before it lets go: then this is the lock of a file that no one finds.
                Ok(()) if !is_named(&file, path) => {}
                Ok(()) => return Ok(Some(Self { file, path: path.to_owned() })),
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(e)) => return Err(failed(e)),
            }
        }
        Ok(None)
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

/// Whether the open file is the one that lies under that name.
#[cfg(unix)]
fn is_named(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let named =
        |open: fs::Metadata, named: fs::Metadata| (open.dev(), open.ino()) == (named.dev(), named.ino());
    file.metadata().ok().zip(fs::metadata(path).ok()).is_some_and(|(open, under)| named(open, under))
}

/// A file that somebody has open keeps its name there.
#[cfg(not(unix))]
fn is_named(_file: &File, _path: &Path) -> bool {
    true
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // In this order: once it is unlocked the next holder's file may lie there. One that stays behind is unlocked and
        // so says the right thing.
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

    #[test]
    #[cfg(unix)]
    fn a_file_that_was_taken_away_is_no_lock() {
        let folder = std::env::temp_dir().join(format!("inglenook-lock-named-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.lock");
        let first = FileLock::try_take(&path).unwrap().unwrap();
        // Somebody who opened it before it was let go locks what has no name any more.
        let late = OpenOptions::new().write(true).open(&path).unwrap();
        assert!(is_named(&late, &path));
        drop(first);
        late.try_lock().unwrap();
        assert!(!is_named(&late, &path));
        let next = FileLock::try_take(&path).unwrap().unwrap();
        assert!(is_named(&next.file, &path) && FileLock::try_take(&path).unwrap().is_none());
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
                        let Some(lock) = FileLock::try_take(&path).unwrap() else { continue };
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
