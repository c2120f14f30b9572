//! Power-loss simulation for tests: the power fails during the N-th change, and what was not flushed is lost.
//!
//! A removal counts as flushed once the next write to the same folder has been flushed.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::{DiskSpace, FillFn, Io, IoError, RandomFile};

/// How far a change came before the power failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerCut {
    /// The change is not visible under its name; half of the bytes may lie in a temporary file.
    Before,
    /// The change happened, but the caller received an error.
    After,
}

#[derive(Default)]
struct PowerState {
    /// Changes until the power fails, and how; None if it does not.
    fails: Option<(u64, PowerCut)>,
    is_off: bool,
    /// Removed files, with their contents, whose folder has not been flushed since.
    removed: Vec<(PathBuf, Vec<u8>)>,
}

/// Forwards operations to another [`Io`] until the power fails; then every operation fails.
pub struct PowerLossIo<I> {
    inner: I,
    power: Arc<Mutex<PowerState>>,
}

/// Outcome of one change.
enum ChangeOutcome {
    Happens,
    Tears(PowerCut),
}

impl<I: Io> PowerLossIo<I> {
    /// Wraps `inner`. The power stays on until [`PowerLossIo::fail_at`].
    pub fn new(inner: I) -> Self {
        Self { inner, power: Arc::new(Mutex::new(PowerState::default())) }
    }

    /// Cuts the power during the change with this index, counted from now (from 0).
    pub fn fail_at(&self, index: u64, cut: PowerCut) {
        self.power().fails = Some((index, cut));
    }

    /// Whether the power has failed.
    pub fn is_off(&self) -> bool {
        self.power().is_off
    }

    /// Restores the power. What was not flushed is as it was before.
    pub fn restore_power(&self) -> Result<(), IoError> {
        let mut power = self.power();
        (power.is_off, power.fails) = (false, None);
        for (path, bytes) in std::mem::take(&mut power.removed) {
            if !self.inner.exists(&path)? {
                self.inner.write_atomic(&path, &bytes)?;
            }
        }
        Ok(())
    }

    fn power(&self) -> MutexGuard<'_, PowerState> {
        self.power.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn on(&self, operation: &'static str, path: &Path) -> Result<&I, IoError> {
        match self.power().is_off {
            true => Err(off(operation, path)),
            false => Ok(&self.inner),
        }
    }

    fn change(&self, operation: &'static str, path: &Path) -> Result<ChangeOutcome, IoError> {
        change(&mut self.power(), operation, path)
    }

    /// Makes removals in the folder of `path` permanent.
    fn mark_flushed(&self, path: &Path) {
        self.power().removed.retain(|(removed, _)| removed.parent() != path.parent());
    }
}

fn change(power: &mut PowerState, operation: &'static str, path: &Path) -> Result<ChangeOutcome, IoError> {
    if power.is_off {
        return Err(off(operation, path));
    }
    match &mut power.fails {
        Some((0, cut)) => {
            let cut = *cut;
            power.is_off = true;
            Ok(ChangeOutcome::Tears(cut))
        }
        Some((n, _)) => {
            *n -= 1;
            Ok(ChangeOutcome::Happens)
        }
        None => Ok(ChangeOutcome::Happens),
    }
}

/// An open file; each write is a change. Writes that were not flushed survive here, which callers must not rely on:
/// they read and verify the file again.
struct PowerLossFile {
    inner: Box<dyn RandomFile>,
    power: Arc<Mutex<PowerState>>,
    path: PathBuf,
}

impl PowerLossFile {
    fn power(&self) -> MutexGuard<'_, PowerState> {
        self.power.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn on(&self, operation: &'static str) -> Result<&dyn RandomFile, IoError> {
        if self.power().is_off { Err(off(operation, &self.path)) } else { Ok(&*self.inner) }
    }

    fn change(
        &self,
        operation: &'static str,
        work: impl FnOnce(&dyn RandomFile) -> Result<(), IoError>,
    ) -> Result<(), IoError> {
        let change = change(&mut self.power(), operation, &self.path)?;
        match change {
            ChangeOutcome::Happens => work(&*self.inner),
            ChangeOutcome::Tears(PowerCut::After) => work(&*self.inner).and(Err(off(operation, &self.path))),
            ChangeOutcome::Tears(PowerCut::Before) => Err(off(operation, &self.path)),
        }
    }
}

impl RandomFile for PowerLossFile {
    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<(), IoError> {
        self.change("write", |file| file.write_at(at, bytes))
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize, IoError> {
        self.on("read")?.read_at(at, into)
    }

    fn reserve(&self, bytes: u64) -> Result<(), IoError> {
        self.change("reserve space for", |file| file.reserve(bytes))
    }

    fn truncate(&self, bytes: u64) -> Result<(), IoError> {
        self.change("shorten", |file| file.truncate(bytes))
    }

    fn len(&self) -> Result<u64, IoError> {
        self.on("measure")?.len()
    }

    fn sync(&self) -> Result<(), IoError> {
        self.on("flush")?.sync()
    }
}

fn off(operation: &'static str, path: &Path) -> IoError {
    IoError::new(operation, path, std::io::Error::other("the power has failed"))
}

impl<I: Io> Io for PowerLossIo<I> {
    fn read(&self, path: &Path) -> Result<Vec<u8>, IoError> {
        self.on("read", path)?.read(path)
    }

    fn read_within(&self, path: &Path, max_bytes: u64) -> Result<Vec<u8>, IoError> {
        self.on("read", path)?.read_within(path, max_bytes)
    }

    fn read_start(&self, path: &Path, n: usize) -> Result<Vec<u8>, IoError> {
        self.on("read", path)?.read_start(path, n)
    }

    fn write_atomic(&self, path: &Path, bytes: &[u8]) -> Result<(), IoError> {
        self.write_stream(path, &mut |out| out.write_all(bytes))
    }

    fn write_stream(&self, path: &Path, fill: &mut FillFn<'_>) -> Result<(), IoError> {
        match self.change("write", path)? {
            ChangeOutcome::Happens => {
                self.inner.write_stream(path, fill)?;
                self.mark_flushed(path);
                Ok(())
            }
            ChangeOutcome::Tears(PowerCut::After) => {
                self.inner.write_stream(path, fill)?;
                Err(off("write", path))
            }
            ChangeOutcome::Tears(PowerCut::Before) => {
                let mut bytes = Vec::new();
                fill(&mut bytes).map_err(|e| IoError::new("write", path, e))?;
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let half = path.with_file_name(format!(".{name}.0-0.tmp"));
                self.inner.append(&half, &bytes[..bytes.len() / 2])?;
                Err(off("write", path))
            }
        }
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> Result<(), IoError> {
        match self.change("append to", path)? {
            ChangeOutcome::Happens => self.inner.append(path, bytes),
            ChangeOutcome::Tears(cut) => {
                let n = if cut == PowerCut::After { bytes.len() } else { bytes.len() / 2 };
                self.inner.append(path, &bytes[..n])?;
                Err(off("append to", path))
            }
        }
    }

    fn create_dir_all(&self, path: &Path) -> Result<(), IoError> {
        match self.change("create the folder", path)? {
            ChangeOutcome::Happens => self.inner.create_dir_all(path),
            ChangeOutcome::Tears(PowerCut::Before) => Err(off("create the folder", path)),
            ChangeOutcome::Tears(PowerCut::After) => {
                self.inner.create_dir_all(path)?;
                Err(off("create the folder", path))
            }
        }
    }

    fn remove_file(&self, path: &Path) -> Result<(), IoError> {
        let change = self.change("remove", path)?;
        if let ChangeOutcome::Tears(PowerCut::Before) = change {
            return Err(off("remove", path));
        }
        let bytes = self.inner.read(path)?;
        self.inner.remove_file(path)?;
        match change {
            ChangeOutcome::Happens => {
                self.power().removed.push((path.to_owned(), bytes));
                Ok(())
            }
            ChangeOutcome::Tears(_) => Err(off("remove", path)),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), IoError> {
        match self.change("rename", from)? {
            ChangeOutcome::Happens => {
                self.inner.rename(from, to)?;
                self.mark_flushed(to);
                Ok(())
            }
            ChangeOutcome::Tears(PowerCut::Before) => Err(off("rename", from)),
            ChangeOutcome::Tears(PowerCut::After) => {
                self.inner.rename(from, to)?;
                Err(off("rename", from))
            }
        }
    }

    fn remove_folder(&self, path: &Path) -> Result<(), IoError> {
        match self.change("remove", path)? {
            ChangeOutcome::Happens => self.inner.remove_folder(path),
            ChangeOutcome::Tears(PowerCut::Before) => Err(off("remove", path)),
            ChangeOutcome::Tears(PowerCut::After) => {
                self.inner.remove_folder(path)?;
                Err(off("remove", path))
            }
        }
    }

    fn link(&self, from: &Path, to: &Path) -> Result<(), IoError> {
        match self.change("link", from)? {
            ChangeOutcome::Happens => {
                self.inner.link(from, to)?;
                self.mark_flushed(to);
                Ok(())
            }
            ChangeOutcome::Tears(PowerCut::Before) => Err(off("link", from)),
            ChangeOutcome::Tears(PowerCut::After) => {
                self.inner.link(from, to)?;
                Err(off("link", from))
            }
        }
    }

    fn exists(&self, path: &Path) -> Result<bool, IoError> {
        self.on("look for", path)?.exists(path)
    }

    fn len(&self, path: &Path) -> Result<u64, IoError> {
        self.on("measure", path)?.len(path)
    }

    fn list(&self, path: &Path) -> Result<Vec<PathBuf>, IoError> {
        self.on("list", path)?.list(path)
    }

    fn open_random(&self, path: &Path) -> Result<Box<dyn RandomFile>, IoError> {
        let inner = self.on("open", path)?.open_random(path)?;
        Ok(Box::new(PowerLossFile { inner, power: Arc::clone(&self.power), path: path.to_owned() }))
    }

    fn open_to_read(&self, path: &Path) -> Result<Box<dyn RandomFile>, IoError> {
        self.on("open", path)?.open_to_read(path)
    }

    fn symlink(&self, target: &Path, link: &Path) -> Result<(), IoError> {
        match self.change("link", link)? {
            ChangeOutcome::Happens => self.inner.symlink(target, link),
            ChangeOutcome::Tears(PowerCut::After) => {
                self.inner.symlink(target, link).and(Err(off("link", link)))
            }
            ChangeOutcome::Tears(PowerCut::Before) => Err(off("link", link)),
        }
    }

    fn disk_space(&self, folder: &Path) -> Result<DiskSpace, IoError> {
        self.on("measure the disk of", folder)?.disk_space(folder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RealIo;

    #[test]
    fn what_was_flushed_stays_and_the_rest_is_as_it_was() {
        let folder = std::env::temp_dir().join(format!("inglenook-power-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let [a, b, c] = ["a", "b", "c"].map(|name| folder.join(name));
        let io = PowerLossIo::new(RealIo);
        for path in [&a, &b] {
            io.write_atomic(path, b"old").unwrap();
        }
        io.remove_file(&a).unwrap();
        io.write_atomic(&c, b"flushes the folder").unwrap();
        io.remove_file(&b).unwrap();
        io.fail_at(0, PowerCut::Before);
        assert!(io.write_atomic(&c, b"new").is_err() && io.is_off());
        assert!(io.read(&c).is_err() && io.remove_file(&c).is_err());
        io.restore_power().unwrap();
        assert!(!io.exists(&a).unwrap(), "its removal was flushed");
        assert_eq!((io.read(&b).unwrap(), io.read(&c).unwrap().len()), (b"old".to_vec(), 18));
        assert_eq!(io.list(&folder).unwrap().len(), 3, "half a file lies somewhere");
        io.fail_at(0, PowerCut::After);
        assert!(io.rename(&b, &c).is_err());
        io.restore_power().unwrap();
        assert_eq!(io.read(&c).unwrap(), b"old", "it happened, though the caller got an error");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
