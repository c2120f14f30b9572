//! The machine's file system.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::private::{create_folders, folder_of, open_private};
use crate::random::RealFile;
use crate::{DiskSpace, FillFn, Io, IoError, RandomFile, SpecialFile, open_regular_file, read_regular_file};

/// [`Io`] on the machine's file system. Stateless.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealIo;

/// Distinguishes temporary files that one process writes at the same moment.
static NEXT_TEMP: AtomicU64 = AtomicU64::new(0);

impl Io for RealIo {
    fn read(&self, path: &Path) -> Result<Vec<u8>, IoError> {
        read_regular_file(path, u64::MAX)
    }

    fn read_within(&self, path: &Path, max_bytes: u64) -> Result<Vec<u8>, IoError> {
        read_regular_file(path, max_bytes)
    }

    fn read_start(&self, path: &Path, n: usize) -> Result<Vec<u8>, IoError> {
        let mut bytes = Vec::with_capacity(n);
        let read = open_regular_file(path)?.take(n as u64).read_to_end(&mut bytes);
        read.map_err(|e| IoError::new("read", path, e))?;
        Ok(bytes)
    }

    fn write_atomic(&self, path: &Path, bytes: &[u8]) -> Result<(), IoError> {
        self.write_stream(path, &mut |out| out.write_all(bytes))
    }

    fn write_stream(&self, path: &Path, fill: &mut FillFn<'_>) -> Result<(), IoError> {
        // A rename would replace a device or a pipe by a file.
        SpecialFile::check(path).map_err(|e| IoError::new("write", path, e))?;
        let temp = temp_path(path);
        let written = write_new(&temp, fill).and_then(|()| fs::rename(&temp, path));
        if let Err(e) = written {
            // The write error is the one to report; a temporary file that stays behind does no harm.
            let _ = fs::remove_file(&temp);
            return Err(IoError::new("write", path, e));
        }
        sync_folder_of(path)
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> Result<(), IoError> {
        let append = || {
            let mut file = open_private(OpenOptions::new().append(true).create(true), path)?;
            file.write_all(bytes)?;
            file.sync_data()
        };
        append().map_err(|e| IoError::new("append to", path, e))
    }

    fn create_dir_all(&self, path: &Path) -> Result<(), IoError> {
        create_folders(path).map_err(|e| IoError::new("create the folder", path, e))
    }

    fn remove_file(&self, path: &Path) -> Result<(), IoError> {
        fs::remove_file(path).map_err(|e| IoError::new("remove", path, e))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), IoError> {
        fs::rename(from, to).map_err(|e| IoError::new("rename", from, e))?;
        sync_folder_of(to)
    }

    fn remove_folder(&self, path: &Path) -> Result<(), IoError> {
        fs::remove_dir(path).map_err(|e| IoError::new("remove", path, e))
    }

    fn link(&self, from: &Path, to: &Path) -> Result<(), IoError> {
        fs::hard_link(from, to).map_err(|e| IoError::new("link", from, e))?;
        sync_folder_of(to)
    }

    fn exists(&self, path: &Path) -> Result<bool, IoError> {
        path.try_exists().map_err(|e| IoError::new("look for", path, e))
    }

    fn len(&self, path: &Path) -> Result<u64, IoError> {
        fs::metadata(path).map(|m| m.len()).map_err(|e| IoError::new("measure", path, e))
    }

    fn list(&self, path: &Path) -> Result<Vec<PathBuf>, IoError> {
        let list = || fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>();
        let mut found = list().map_err(|e| IoError::new("list", path, e))?;
        found.sort();
        Ok(found)
    }

    fn open_random(&self, path: &Path) -> Result<Box<dyn RandomFile>, IoError> {
        Ok(Box::new(RealFile::open(path)?))
    }

    fn open_to_read(&self, path: &Path) -> Result<Box<dyn RandomFile>, IoError> {
        Ok(Box::new(RealFile::open_to_read(path)?))
    }

    fn symlink(&self, target: &Path, link: &Path) -> Result<(), IoError> {
        // Renamed into place, so that a link exists at every moment.
        let temp = temp_path(link);
        let made = symlink(target, &temp).and_then(|()| fs::rename(&temp, link));
        if made.is_err() {
            let _ = fs::remove_file(&temp);
        }
        made.map_err(|e| IoError::new("link", link, e))
    }

    fn disk_space(&self, folder: &Path) -> Result<DiskSpace, IoError> {
        let failed = |e| IoError::new("measure the disk of", folder, e);
        let stats = fs4::statvfs(folder).map_err(failed)?;
        Ok(DiskSpace { free: stats.available_space(), total: stats.total_space() })
    }
}

#[cfg(unix)]
fn symlink(target: &Path, link: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

/// Windows requires a privilege that few users have: callers work without links.
#[cfg(not(unix))]
fn symlink(_: &Path, _: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// A hidden name in the same folder, so that the rename stays within one file system.
fn temp_path(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}-{}.tmp", std::process::id(), NEXT_TEMP.fetch_add(1, Ordering::Relaxed)));
    path.with_file_name(name)
}

fn write_new(path: &Path, fill: &mut FillFn<'_>) -> std::io::Result<()> {
    let mut file = open_private(OpenOptions::new().write(true).create_new(true), path)?;
    fill(&mut file)?;
    file.sync_all()
}

/// Flushes the folder of `path`: a rename is durable only when its folder is.
fn sync_folder_of(path: &Path) -> Result<(), IoError> {
    if !cfg!(unix) {
        return Ok(()); // Windows cannot open folders; NTFS journals the rename
    }
    let folder = folder_of(path);
    File::open(folder).and_then(|f| f.sync_all()).map_err(|e| IoError::new("flush the folder", folder, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Temporary folder of one test, removed at its end.
    struct TempFolder(PathBuf);

    impl TempFolder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("inglenook-io-{}-{name}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for TempFolder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn write_replaces_and_leaves_nothing_behind() {
        let folder = TempFolder::new("write");
        let path = folder.0.join("a.txt");
        RealIo.write_atomic(&path, b"one").unwrap();
        RealIo.write_atomic(&path, b"two").unwrap();
        assert_eq!(RealIo.read(&path).unwrap(), b"two");
        assert_eq!(RealIo.list(&folder.0).unwrap(), std::slice::from_ref(&path));
        assert_eq!(RealIo.len(&path).unwrap(), 3);
        assert_eq!(RealIo.read_start(&path, 2).unwrap(), b"tw");
        assert_eq!(RealIo.read_start(&path, 99).unwrap(), b"two");
    }

    #[test]
    fn a_stream_that_fails_leaves_the_old_file_and_nothing_else() {
        let folder = TempFolder::new("stream");
        let path = folder.0.join("a.bin");
        RealIo.write_stream(&path, &mut |out| (0..3u8).try_for_each(|i| out.write_all(&[i]))).unwrap();
        let failed = RealIo.write_stream(&path, &mut |out| {
            out.write_all(b"half")?;
            Err(std::io::Error::other("no more"))
        });
        assert!(failed.unwrap_err().to_string().contains("no more"));
        assert_eq!(RealIo.read(&path).unwrap(), [0, 1, 2]);
        assert_eq!(RealIo.list(&folder.0).unwrap(), [path]);
    }

    #[test]
    fn append_makes_and_extends() {
        let folder = TempFolder::new("append");
        let path = folder.0.join("log");
        RealIo.append(&path, b"a").unwrap();
        RealIo.append(&path, b"b").unwrap();
        assert_eq!(RealIo.read(&path).unwrap(), b"ab");
    }

    #[test]
    fn rename_moves_and_remove_removes() {
        let folder = TempFolder::new("rename");
        let (a, b) = (folder.0.join("a"), folder.0.join("b"));
        RealIo.write_atomic(&a, b"x").unwrap();
        RealIo.rename(&a, &b).unwrap();
        assert!(!RealIo.exists(&a).unwrap() && RealIo.exists(&b).unwrap());
        RealIo.remove_file(&b).unwrap();
        assert_eq!(RealIo.remove_file(&b).unwrap_err().code(), "io.not_found");
    }

    #[test]
    fn a_link_is_the_same_file_and_only_empty_folders_go() {
        let folder = TempFolder::new("link");
        let (a, b) = (folder.0.join("a"), folder.0.join("inner").join("b"));
        RealIo.write_atomic(&a, b"x").unwrap();
        RealIo.create_dir_all(b.parent().unwrap()).unwrap();
        RealIo.link(&a, &b).unwrap();
        RealIo.remove_file(&a).unwrap();
        assert_eq!(RealIo.read(&b).unwrap(), b"x");
        assert!(RealIo.remove_folder(b.parent().unwrap()).is_err());
        RealIo.remove_file(&b).unwrap();
        RealIo.remove_folder(b.parent().unwrap()).unwrap();
        assert!(!RealIo.exists(b.parent().unwrap()).unwrap());
    }

    #[test]
    fn a_failed_write_names_its_target_and_leaves_no_temporary_file() {
        let folder = TempFolder::new("fail");
        let target = folder.0.join("is-a-folder");
        fs::create_dir(&target).unwrap();
        let error = RealIo.write_atomic(&target, b"x").unwrap_err();
        assert!(error.to_string().contains("is-a-folder"), "{error}");
        assert_eq!(RealIo.list(&folder.0).unwrap(), [target]);
    }
}
