//! A disk that fails when it is told to: the N-th operation, once or from then on.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::{Fill, Io, IoError};

/// How long the fault lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Only the chosen operation fails.
    Once,
    /// The chosen operation and all after it fail.
    Sticky,
}

struct Plan {
    /// Operations seen so far.
    count: u64,
    /// Index (from 0) of the operation that fails, with the kind of error it fails with.
    fails: Option<(u64, Fault, std::io::ErrorKind)>,
}

/// Passes every operation to another [`Io`] until its turn to fail has come. An operation that fails here does
/// not reach the other: nothing of it happens.
pub struct FaultIo<I> {
    inner: I,
    plan: Mutex<Plan>,
}

impl<I: Io> FaultIo<I> {
    /// Fails nothing until [`FaultIo::fail_at`].
    pub fn new(inner: I) -> Self {
        Self { inner, plan: Mutex::new(Plan { count: 0, fails: None }) }
    }

    /// Counting starts anew: the operation with this index (from 0) fails.
    pub fn fail_at(&self, index: u64, fault: Fault, kind: std::io::ErrorKind) {
        *self.plan() = Plan { count: 0, fails: Some((index, fault, kind)) };
    }

    /// No more failures; counting goes on.
    pub fn heal(&self) {
        self.plan().fails = None;
    }

    /// Operations seen since the start or the last `fail_at`.
    pub fn count(&self) -> u64 {
        self.plan().count
    }

    fn plan(&self) -> std::sync::MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn step(&self, operation: &'static str, path: &Path) -> Result<&I, IoError> {
        let mut plan = self.plan();
        let index = plan.count;
        plan.count += 1;
        let kind = match plan.fails {
            Some((at, Fault::Once, kind)) if index == at => kind,
            Some((at, Fault::Sticky, kind)) if index >= at => kind,
            _ => return Ok(&self.inner),
        };
        Err(IoError::new(operation, path, std::io::Error::new(kind, "fault injected by a test")))
    }
}

impl<I: Io> Io for FaultIo<I> {
    fn read(&self, path: &Path) -> Result<Vec<u8>, IoError> {
        self.step("read", path)?.read(path)
    }

    fn read_start(&self, path: &Path, n: usize) -> Result<Vec<u8>, IoError> {
        self.step("read", path)?.read_start(path, n)
    }

    fn write_atomic(&self, path: &Path, bytes: &[u8]) -> Result<(), IoError> {
        self.step("write", path)?.write_atomic(path, bytes)
    }

    fn write_stream(&self, path: &Path, fill: &mut Fill<'_>) -> Result<(), IoError> {
        self.step("write", path)?.write_stream(path, fill)
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> Result<(), IoError> {
        self.step("append to", path)?.append(path, bytes)
    }

    fn create_dir_all(&self, path: &Path) -> Result<(), IoError> {
        self.step("create the folder", path)?.create_dir_all(path)
    }

    fn remove_file(&self, path: &Path) -> Result<(), IoError> {
        self.step("remove", path)?.remove_file(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), IoError> {
        self.step("rename", from)?.rename(from, to)
    }

    fn exists(&self, path: &Path) -> Result<bool, IoError> {
        self.step("look for", path)?.exists(path)
    }

    fn len(&self, path: &Path) -> Result<u64, IoError> {
        self.step("measure", path)?.len(path)
    }

    fn list(&self, path: &Path) -> Result<Vec<PathBuf>, IoError> {
        self.step("list", path)?.list(path)
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;
    use crate::RealIo;

    fn outcomes(fault: Fault) -> Vec<bool> {
        let io = FaultIo::new(RealIo);
        io.fail_at(1, fault, ErrorKind::StorageFull);
        (0..4).map(|_| io.exists(Path::new("/")).is_ok()).collect()
    }

    #[test]
    fn once_fails_one_operation_and_sticky_all_that_follow() {
        assert_eq!(outcomes(Fault::Once), [true, false, true, true]);
        assert_eq!(outcomes(Fault::Sticky), [true, false, false, false]);
    }

    #[test]
    fn a_full_disk_has_its_own_code_and_heals() {
        let io = FaultIo::new(RealIo);
        io.fail_at(0, Fault::Sticky, ErrorKind::StorageFull);
        assert_eq!(io.read(Path::new("/x")).unwrap_err().code(), "io.no_space");
        io.heal();
        assert!(io.exists(Path::new("/")).unwrap());
        assert_eq!(io.count(), 2);
    }
}
