//! A machine whose power fails when it is told to: in the middle of the N-th change, and what was not flushed is gone
//! when it comes back. What a removed file leaves in its folder is flushed by the next write there.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::{Fill, Io, IoError, RandomFile, Space};

/// How far the change came that the power failed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Torn {
    /// Nothing of it can be seen under its name; of bytes, half lie somewhere.
    Before,
    /// It happened, and nobody was told so.
    After,
}

#[derive(Default)]
struct Power {
    /// Changes until it fails, and how; None: it doesn't.
    fails: Option<(u64, Torn)>,
    is_off: bool,
    /// Files that were removed from a folder that was not flushed since, with what they held.
    removed: Vec<(PathBuf, Vec<u8>)>,
}

/// Passes operations to another [`Io`] until the power fails; then none.
pub struct PowerIo<I> {
    inner: I,
    power: Arc<Mutex<Power>>,
}

/// What becomes of a change.
enum Change {
    Happens,
    Tears(Torn),
}

impl<I: Io> PowerIo<I> {
    /// The power stays until [`PowerIo::fail_at`].
    pub fn new(inner: I) -> Self {
        Self { inner, power: Arc::new(Mutex::new(Power::default())) }
    }

    /// In the change with this index from here on (from 0).
    pub fn fail_at(&self, index: u64, torn: Torn) {
        self.power().fails = Some((index, torn));
    }

    pub fn is_off(&self) -> bool {
        self.power().is_off
    }

    /// The power is back: what was not flushed is as it was before.
    pub fn come_back(&self) -> Result<(), IoError> {
        let mut power = self.power();
        (power.is_off, power.fails) = (false, None);
        for (path, bytes) in std::mem::take(&mut power.removed) {
            if !self.inner.exists(&path)? {
                self.inner.write_atomic(&path, &bytes)?;
            }
        }
        Ok(())
    }

    fn power(&self) -> MutexGuard<'_, Power> {
        self.power.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn on(&self, operation: &'static str, path: &Path) -> Result<&I, IoError> {
        match self.power().is_off {
            true => Err(off(operation, path)),
            false => Ok(&self.inner),
        }
    }

    fn change(&self, operation: &'static str, path: &Path) -> Result<Change, IoError> {
        change(&mut self.power(), operation, path)
    }

    /// What was removed from the folder of `path` is gone for good.
    fn flushed(&self, path: &Path) {
        self.power().removed.retain(|(removed, _)| removed.parent() != path.parent());
    }
}

fn change(power: &mut Power, operation: &'static str, path: &Path) -> Result<Change, IoError> {
    if power.is_off {
        return Err(off(operation, path));
    }
    match &mut power.fails {
        Some((0, torn)) => {
            let torn = *torn;
            power.is_off = true;
            Ok(Change::Tears(torn))
        }
        Some((n, _)) => {
            *n -= 1;
            Ok(Change::Happens)
        }
        None => Ok(Change::Happens),
    }
}

/// A file that is written anywhere in it: each write is a change. What was not flushed stays here, which is what its
/// owners must not count on: they read it again.
struct PowerFile {
    inner: Box<dyn RandomFile>,
    power: Arc<Mutex<Power>>,
    path: PathBuf,
}

impl PowerFile {
    fn power(&self) -> MutexGuard<'_, Power> {
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
            Change::Happens => work(&*self.inner),
            Change::Tears(Torn::After) => work(&*self.inner).and(Err(off(operation, &self.path))),
            Change::Tears(Torn::Before) => Err(off(operation, &self.path)),
        }
    }
}

impl RandomFile for PowerFile {
    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<(), IoError> {
        self.change("write", |file| file.write_at(at, bytes))
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize, IoError> {
        self.on("read")?.read_at(at, into)
    }

    fn reserve(&self, bytes: u64) -> Result<(), IoError> {
        self.change("reserve room for", |file| file.reserve(bytes))
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

impl<I: Io> Io for PowerIo<I> {
    fn read(&self, path: &Path) -> Result<Vec<u8>, IoError> {
        self.on("read", path)?.read(path)
    }

    fn read_start(&self, path: &Path, n: usize) -> Result<Vec<u8>, IoError> {
        self.on("read", path)?.read_start(path, n)
    }

    fn write_atomic(&self, path: &Path, bytes: &[u8]) -> Result<(), IoError> {
        self.write_stream(path, &mut |out| out.write_all(bytes))
    }

    fn write_stream(&self, path: &Path, fill: &mut Fill<'_>) -> Result<(), IoError> {
        match self.change("write", path)? {
            Change::Happens => {
                self.inner.write_stream(path, fill)?;
                self.flushed(path);
                Ok(())
            }
            Change::Tears(Torn::After) => {
                self.inner.write_stream(path, fill)?;
                Err(off("write", path))
            }
            Change::Tears(Torn::Before) => {
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
            Change::Happens => self.inner.append(path, bytes),
            Change::Tears(torn) => {
                let n = if torn == Torn::After { bytes.len() } else { bytes.len() / 2 };
                self.inner.append(path, &bytes[..n])?;
                Err(off("append to", path))
            }
        }
    }

    fn create_dir_all(&self, path: &Path) -> Result<(), IoError> {
        match self.change("create the folder", path)? {
            Change::Happens => self.inner.create_dir_all(path),
            Change::Tears(Torn::Before) => Err(off("create the folder", path)),
            Change::Tears(Torn::After) => {
                self.inner.create_dir_all(path)?;
                Err(off("create the folder", path))
            }
        }
    }

    fn remove_file(&self, path: &Path) -> Result<(), IoError> {
        let change = self.change("remove", path)?;
        if let Change::Tears(Torn::Before) = change {
            return Err(off("remove", path));
        }
        let bytes = self.inner.read(path)?;
        self.inner.remove_file(path)?;
        match change {
            Change::Happens => {
                self.power().removed.push((path.to_owned(), bytes));
                Ok(())
            }
            Change::Tears(_) => Err(off("remove", path)),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), IoError> {
        match self.change("rename", from)? {
            Change::Happens => {
                self.inner.rename(from, to)?;
                self.flushed(to);
                Ok(())
            }
            Change::Tears(Torn::Before) => Err(off("rename", from)),
            Change::Tears(Torn::After) => {
                self.inner.rename(from, to)?;
                Err(off("rename", from))
            }
        }
    }

    fn remove_folder(&self, path: &Path) -> Result<(), IoError> {
        match self.change("remove", path)? {
            Change::Happens => self.inner.remove_folder(path),
            Change::Tears(Torn::Before) => Err(off("remove", path)),
            Change::Tears(Torn::After) => {
                self.inner.remove_folder(path)?;
                Err(off("remove", path))
            }
        }
    }

    fn link(&self, from: &Path, to: &Path) -> Result<(), IoError> {
        match self.change("link", from)? {
            Change::Happens => {
                self.inner.link(from, to)?;
                self.flushed(to);
                Ok(())
            }
            Change::Tears(Torn::Before) => Err(off("link", from)),
            Change::Tears(Torn::After) => {
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
        Ok(Box::new(PowerFile { inner, power: Arc::clone(&self.power), path: path.to_owned() }))
    }

    fn open_to_read(&self, path: &Path) -> Result<Box<dyn RandomFile>, IoError> {
        self.on("open", path)?.open_to_read(path)
    }

    fn symlink(&self, target: &Path, link: &Path) -> Result<(), IoError> {
        match self.change("link", link)? {
            Change::Happens => self.inner.symlink(target, link),
            Change::Tears(Torn::After) => self.inner.symlink(target, link).and(Err(off("link", link))),
            Change::Tears(Torn::Before) => Err(off("link", link)),
        }
    }

    fn space(&self, folder: &Path) -> Result<Space, IoError> {
        self.on("measure the disk of", folder)?.space(folder)
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
        let io = PowerIo::new(RealIo);
        for path in [&a, &b] {
            io.write_atomic(path, b"old").unwrap();
        }
        io.remove_file(&a).unwrap();
        io.write_atomic(&c, b"flushes the folder").unwrap();
        io.remove_file(&b).unwrap();
        io.fail_at(0, Torn::Before);
        assert!(io.write_atomic(&c, b"new").is_err() && io.is_off());
        assert!(io.read(&c).is_err() && io.remove_file(&c).is_err());
        io.come_back().unwrap();
        assert!(!io.exists(&a).unwrap(), "its removal was flushed");
        assert_eq!((io.read(&b).unwrap(), io.read(&c).unwrap().len()), (b"old".to_vec(), 18));
        assert_eq!(io.list(&folder).unwrap().len(), 3, "half a file lies somewhere");
        io.fail_at(0, Torn::After);
        assert!(io.rename(&b, &c).is_err());
        io.come_back().unwrap();
        assert_eq!(io.read(&c).unwrap(), b"old", "it happened, and nobody was told so");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
