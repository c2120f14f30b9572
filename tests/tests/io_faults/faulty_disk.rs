//! The machine's disk, of which any operation can fail: refused, half done, or done but not flushed.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use io::{DiskSpace, FaultDuration, FillFn, Io, IoError, RandomFile, RealIo};

/// What an operation that fails reports, and what it did before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartialFault {
    /// It has no effect.
    Refusal(std::io::ErrorKind),
    /// Half of the bytes are written, then the disk is full. Operations that write no bytes succeed.
    ShortWrite,
    /// It has its effect, but the flush that makes it last fails. Operations that flush nothing succeed.
    FailedFlush,
}

/// What an operation that fails does first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FaultEffect {
    Half,
    Whole,
}

type FaultMoment = (u64, FaultDuration, PartialFault);

#[derive(Default)]
struct FaultCounter {
    count: AtomicU64,
    fails: Mutex<Option<FaultMoment>>,
}

fn injected_error(operation: &'static str, path: &Path, kind: std::io::ErrorKind) -> IoError {
    IoError::new(operation, path, std::io::Error::new(kind, "fault injected by a test"))
}

impl FaultCounter {
    /// Counts an operation; what it does before it fails, or its failure. `effects`: what it can do by halves.
    fn step(
        &self,
        operation: &'static str,
        path: &Path,
        effects: &[FaultEffect],
    ) -> Result<Option<FaultEffect>, IoError> {
        let index = self.count.fetch_add(1, Ordering::SeqCst);
        let effect = match *self.fails.lock().unwrap() {
            Some((at, FaultDuration::Once, fault)) if index == at => fault,
            Some((at, FaultDuration::Sticky, fault)) if index >= at => fault,
            _ => return Ok(None),
        };
        let effect = match effect {
            PartialFault::Refusal(kind) => return Err(injected_error(operation, path, kind)),
            PartialFault::ShortWrite => FaultEffect::Half,
            PartialFault::FailedFlush => FaultEffect::Whole,
        };
        Ok(Some(effect).filter(|effect| effects.contains(effect)))
    }
}

/// The result of an operation that had its effect.
fn finish(effect: Option<FaultEffect>, operation: &'static str, path: &Path) -> Result<(), IoError> {
    match effect {
        None => Ok(()),
        Some(FaultEffect::Half) => Err(injected_error(operation, path, std::io::ErrorKind::StorageFull)),
        Some(FaultEffect::Whole) => Err(injected_error(operation, path, std::io::ErrorKind::Other)),
    }
}

/// The machine's disk with faults.
#[derive(Default)]
pub struct FaultyDisk {
    counter: Arc<FaultCounter>,
}

impl FaultyDisk {
    /// Restarts the count: the operation with this index (from 0) fails.
    pub fn fail_at(&self, index: u64, duration: FaultDuration, fault: PartialFault) {
        *self.counter.fails.lock().unwrap() = Some((index, duration, fault));
        self.counter.count.store(0, Ordering::SeqCst);
    }

    /// Nothing fails any more.
    pub fn heal(&self) {
        *self.counter.fails.lock().unwrap() = None;
    }

    /// Operations since the last `fail_at`.
    pub fn count(&self) -> u64 {
        self.counter.count.load(Ordering::SeqCst)
    }

    /// An operation that reads or measures.
    fn look(&self, operation: &'static str, path: &Path) -> Result<RealIo, IoError> {
        self.counter.step(operation, path, &[]).map(|_| RealIo)
    }

    /// An operation on names.
    fn change(
        &self,
        operation: &'static str,
        path: &Path,
        change: impl FnOnce() -> Result<(), IoError>,
    ) -> Result<(), IoError> {
        let effect = self.counter.step(operation, path, &[FaultEffect::Whole])?;
        change()?;
        finish(effect, operation, path)
    }

    fn open(&self, inner: Box<dyn RandomFile>, path: &Path) -> Box<dyn RandomFile> {
        Box::new(FaultyFile { inner, counter: Arc::clone(&self.counter), path: path.to_owned() })
    }
}

/// An open file whose operations count with all others.
struct FaultyFile {
    inner: Box<dyn RandomFile>,
    counter: Arc<FaultCounter>,
    path: PathBuf,
}

impl RandomFile for FaultyFile {
    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<(), IoError> {
        let effect = self.counter.step("write", &self.path, &[FaultEffect::Half])?;
        let n = if effect.is_some() { bytes.len() / 2 } else { bytes.len() };
        self.inner.write_at(at, &bytes[..n])?;
        finish(effect, "write", &self.path)
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize, IoError> {
        self.counter.step("read", &self.path, &[])?;
        self.inner.read_at(at, into)
    }

    fn reserve(&self, bytes: u64) -> Result<(), IoError> {
        self.counter.step("reserve space for", &self.path, &[])?;
        self.inner.reserve(bytes)
    }

    fn truncate(&self, bytes: u64) -> Result<(), IoError> {
        self.counter.step("shorten", &self.path, &[])?;
        self.inner.truncate(bytes)
    }

    fn len(&self) -> Result<u64, IoError> {
        self.counter.step("measure", &self.path, &[])?;
        self.inner.len()
    }

    fn sync(&self) -> Result<(), IoError> {
        let effect = self.counter.step("flush", &self.path, &[FaultEffect::Whole])?;
        self.inner.sync()?;
        finish(effect, "flush", &self.path)
    }
}

impl Io for FaultyDisk {
    fn read(&self, path: &Path) -> Result<Vec<u8>, IoError> {
        self.look("read", path)?.read(path)
    }

    fn read_within(&self, path: &Path, max_bytes: u64) -> Result<Vec<u8>, IoError> {
        self.look("read", path)?.read_within(path, max_bytes)
    }

    fn read_start(&self, path: &Path, n: usize) -> Result<Vec<u8>, IoError> {
        self.look("read", path)?.read_start(path, n)
    }

    fn write_atomic(&self, path: &Path, bytes: &[u8]) -> Result<(), IoError> {
        self.write_stream(path, &mut |out| out.write_all(bytes))
    }

    fn write_stream(&self, path: &Path, fill: &mut FillFn<'_>) -> Result<(), IoError> {
        let effect = self.counter.step("write", path, &[FaultEffect::Half, FaultEffect::Whole])?;
        if effect != Some(FaultEffect::Half) {
            RealIo.write_stream(path, fill)?;
            return finish(effect, "write", path);
        }
        RealIo.write_stream(path, &mut |out| {
            let mut bytes = Vec::new();
            fill(&mut bytes)?;
            out.write_all(&bytes[..bytes.len() / 2])?;
            Err(std::io::ErrorKind::StorageFull.into())
        })
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> Result<(), IoError> {
        let effect = self.counter.step("append to", path, &[FaultEffect::Half, FaultEffect::Whole])?;
        let n = if effect == Some(FaultEffect::Half) { bytes.len() / 2 } else { bytes.len() };
        RealIo.append(path, &bytes[..n])?;
        finish(effect, "append to", path)
    }

    fn create_dir_all(&self, path: &Path) -> Result<(), IoError> {
        self.look("create the folder", path)?.create_dir_all(path)
    }

    fn remove_file(&self, path: &Path) -> Result<(), IoError> {
        self.look("remove", path)?.remove_file(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), IoError> {
        self.change("rename", from, || RealIo.rename(from, to))
    }

    fn remove_folder(&self, path: &Path) -> Result<(), IoError> {
        self.look("remove", path)?.remove_folder(path)
    }

    fn link(&self, from: &Path, to: &Path) -> Result<(), IoError> {
        self.change("link", from, || RealIo.link(from, to))
    }

    fn exists(&self, path: &Path) -> Result<bool, IoError> {
        self.look("look for", path)?.exists(path)
    }

    fn len(&self, path: &Path) -> Result<u64, IoError> {
        self.look("measure", path)?.len(path)
    }

    fn list(&self, path: &Path) -> Result<Vec<PathBuf>, IoError> {
        self.look("list", path)?.list(path)
    }

    fn open_random(&self, path: &Path) -> Result<Box<dyn RandomFile>, IoError> {
        Ok(self.open(self.look("open", path)?.open_random(path)?, path))
    }

    fn open_to_read(&self, path: &Path) -> Result<Box<dyn RandomFile>, IoError> {
        Ok(self.open(self.look("open", path)?.open_to_read(path)?, path))
    }

    fn symlink(&self, target: &Path, link: &Path) -> Result<(), IoError> {
        self.change("link", link, || RealIo.symlink(target, link))
    }

    fn disk_space(&self, folder: &Path) -> Result<DiskSpace, IoError> {
        self.look("measure the disk of", folder)?.disk_space(folder)
    }
}
