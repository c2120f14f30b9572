//! Fault injection for tests: the N-th file operation fails, once or from then on.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::{DiskSpace, FillFn, Io, IoError, RandomFile};

/// How long an injected fault lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultDuration {
    /// Only the chosen operation fails.
    Once,
    /// The chosen operation and all after it fail.
    Sticky,
}

struct FaultPlan {
    /// Operations seen so far.
    count: u64,
    /// Index (from 0) of the operation that fails, with the kind of error it fails with.
    fails: Option<(u64, FaultDuration, std::io::ErrorKind)>,
    /// An operation that fails by its name, how often it still does, and with what.
    named: Option<(&'static str, u64, std::io::ErrorKind)>,
}

impl FaultPlan {
    /// Counts an operation and returns its error if it is the one that fails.
    fn step(plan: &Mutex<Self>, operation: &'static str, path: &Path) -> Result<(), IoError> {
        let mut plan = lock(plan);
        let index = plan.count;
        plan.count += 1;
        if let Some((name, n_left, kind)) = &mut plan.named
            && *name == operation
            && *n_left > 0
        {
            *n_left -= 1;
            let kind = *kind;
            return Err(IoError::new(operation, path, std::io::Error::new(kind, "fault injected by a test")));
        }
        let kind = match plan.fails {
            Some((at, FaultDuration::Once, kind)) if index == at => kind,
            Some((at, FaultDuration::Sticky, kind)) if index >= at => kind,
            _ => return Ok(()),
        };
        Err(IoError::new(operation, path, std::io::Error::new(kind, "fault injected by a test")))
    }
}

fn lock(plan: &Mutex<FaultPlan>) -> MutexGuard<'_, FaultPlan> {
    plan.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Forwards every operation to another [`Io`] except those that a test makes fail. A failed operation has no effect.
pub struct FaultIo<I> {
    inner: I,
    plan: Arc<Mutex<FaultPlan>>,
}

impl<I: Io> FaultIo<I> {
    /// Wraps `inner`. Nothing fails until [`FaultIo::fail_at`].
    pub fn new(inner: I) -> Self {
        Self { inner, plan: Arc::new(Mutex::new(FaultPlan { count: 0, fails: None, named: None })) }
    }

    /// Restarts the count: the operation with this index (from 0) fails with an error of `kind`.
    pub fn fail_at(&self, index: u64, duration: FaultDuration, kind: std::io::ErrorKind) {
        *self.plan() = FaultPlan { count: 0, fails: Some((index, duration, kind)), named: None };
    }

    /// The next `n_times` operations of this name, such as "rename", fail with an error of `kind`.
    pub fn fail_named(&self, operation: &'static str, n_times: u64, kind: std::io::ErrorKind) {
        self.plan().named = Some((operation, n_times, kind));
    }

    /// Stops failing; counting continues.
    pub fn heal(&self) {
        let mut plan = self.plan();
        (plan.fails, plan.named) = (None, None);
    }

    /// Number of operations since the start or the last `fail_at`.
    pub fn count(&self) -> u64 {
        self.plan().count
    }

    fn plan(&self) -> MutexGuard<'_, FaultPlan> {
        lock(&self.plan)
    }

    fn step(&self, operation: &'static str, path: &Path) -> Result<&I, IoError> {
        FaultPlan::step(&self.plan, operation, path).map(|()| &self.inner)
    }
}

/// An open file whose operations count with all others.
struct FaultFile {
    inner: Box<dyn RandomFile>,
    plan: Arc<Mutex<FaultPlan>>,
    path: PathBuf,
}

impl FaultFile {
    fn step(&self, operation: &'static str) -> Result<&dyn RandomFile, IoError> {
        FaultPlan::step(&self.plan, operation, &self.path).map(|()| &*self.inner)
    }
}

impl RandomFile for FaultFile {
    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<(), IoError> {
        self.step("write")?.write_at(at, bytes)
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize, IoError> {
        self.step("read")?.read_at(at, into)
    }

    fn reserve(&self, bytes: u64) -> Result<(), IoError> {
        self.step("reserve space for")?.reserve(bytes)
    }

    fn truncate(&self, bytes: u64) -> Result<(), IoError> {
        self.step("shorten")?.truncate(bytes)
    }

    fn len(&self) -> Result<u64, IoError> {
        self.step("measure")?.len()
    }

    fn sync(&self) -> Result<(), IoError> {
        self.step("flush")?.sync()
    }
}

impl<I: Io> Io for FaultIo<I> {
    fn read(&self, path: &Path) -> Result<Vec<u8>, IoError> {
        self.step("read", path)?.read(path)
    }

    fn read_within(&self, path: &Path, max_bytes: u64) -> Result<Vec<u8>, IoError> {
        self.step("read", path)?.read_within(path, max_bytes)
    }

    fn read_start(&self, path: &Path, n: usize) -> Result<Vec<u8>, IoError> {
        self.step("read", path)?.read_start(path, n)
    }

    fn write_atomic(&self, path: &Path, bytes: &[u8]) -> Result<(), IoError> {
        self.step("write", path)?.write_atomic(path, bytes)
    }

    fn write_stream(&self, path: &Path, fill: &mut FillFn<'_>) -> Result<(), IoError> {
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

    fn remove_folder(&self, path: &Path) -> Result<(), IoError> {
        self.step("remove", path)?.remove_folder(path)
    }

    fn link(&self, from: &Path, to: &Path) -> Result<(), IoError> {
        self.step("link", from)?.link(from, to)
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

    fn open_random(&self, path: &Path) -> Result<Box<dyn RandomFile>, IoError> {
        let inner = self.step("open", path)?.open_random(path)?;
        Ok(Box::new(FaultFile { inner, plan: Arc::clone(&self.plan), path: path.to_owned() }))
    }

    fn open_to_read(&self, path: &Path) -> Result<Box<dyn RandomFile>, IoError> {
        let inner = self.step("open", path)?.open_to_read(path)?;
        Ok(Box::new(FaultFile { inner, plan: Arc::clone(&self.plan), path: path.to_owned() }))
    }

    fn symlink(&self, target: &Path, link: &Path) -> Result<(), IoError> {
        self.step("link", link)?.symlink(target, link)
    }

    fn disk_space(&self, folder: &Path) -> Result<DiskSpace, IoError> {
        self.step("measure the disk of", folder)?.disk_space(folder)
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;
    use crate::RealIo;

    fn outcomes(duration: FaultDuration) -> Vec<bool> {
        let io = FaultIo::new(RealIo);
        io.fail_at(1, duration, ErrorKind::StorageFull);
        (0..4).map(|_| io.exists(Path::new("/")).is_ok()).collect()
    }

    #[test]
    fn once_fails_one_operation_and_sticky_all_that_follow() {
        assert_eq!(outcomes(FaultDuration::Once), [true, false, true, true]);
        assert_eq!(outcomes(FaultDuration::Sticky), [true, false, false, false]);
    }

    #[test]
    fn a_full_disk_has_its_own_code_and_heals() {
        let io = FaultIo::new(RealIo);
        io.fail_at(0, FaultDuration::Sticky, ErrorKind::StorageFull);
        assert_eq!(io.read(Path::new("/x")).unwrap_err().code(), "io.no_space");
        io.heal();
        assert!(io.exists(Path::new("/")).unwrap());
        assert_eq!(io.count(), 2);
    }
}
