//! A folder that lives as long as a test.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A folder in the system's temporary one, removed when it is dropped.
pub struct TempDir(PathBuf);

impl TempDir {
    /// A new, empty folder. Panics where it can't be made: the test can't run.
    #[expect(clippy::new_without_default, reason = "it touches the disk")]
    pub fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("inglenook-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        if let Err(error) = std::fs::create_dir_all(&path) {
            panic!("{}: {error}", path.display());
        }
        Self(path)
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
