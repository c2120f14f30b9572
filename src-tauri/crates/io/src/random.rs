//! Files that several threads read and write at any offset.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::IoError;
use crate::private::open_private;

/// An open file with positioned reads and writes. Offsets are bytes from the start. Dropping it flushes nothing: call
/// [`RandomFile::sync`] for data that must last.
pub trait RandomFile: Send + Sync {
    /// Writes all of `bytes` at offset `at`; the file grows as needed.
    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<(), IoError>;

    /// Fills `into` from offset `at` and returns the number of bytes read. It is less than the length of `into` only at
    /// the end of the file.
    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize, IoError>;

    /// Sets the file's length to `bytes` and allocates them on disk if the file system can.
    fn reserve(&self, bytes: u64) -> Result<(), IoError>;

    /// Sets the length to `bytes`, discarding what lies beyond.
    fn truncate(&self, bytes: u64) -> Result<(), IoError>;

    /// Length in bytes.
    fn len(&self) -> Result<u64, IoError>;

    /// Whether the length is 0.
    fn is_empty(&self) -> Result<bool, IoError> {
        Ok(self.len()? == 0)
    }

    /// Flushes: what was written before survives a power cut.
    fn sync(&self) -> Result<(), IoError>;
}

/// Reads a [`RandomFile`] from front to back, with jumps.
pub struct SequentialReader {
    file: Box<dyn RandomFile>,
    at: u64,
}

impl SequentialReader {
    /// Begins at the first byte.
    pub fn new(file: Box<dyn RandomFile>) -> Self {
        Self { file, at: 0 }
    }
}

impl Read for SequentialReader {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let n_read = self.file.read_at(self.at, into).map_err(|error| error.source)?;
        self.at += n_read as u64;
        Ok(n_read)
    }
}

impl Seek for SequentialReader {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => {
                let n_bytes = self.file.len().map_err(|error| error.source)?;
                n_bytes.checked_add_signed(by)
            }
        };
        self.at = at.ok_or(std::io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// [`RandomFile`] of the machine's file system.
pub(crate) struct RealFile {
    file: File,
    path: PathBuf,
}

impl RealFile {
    pub fn open(path: &Path) -> Result<Self, IoError> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let file = open_private(options, path);
        let file = file.map_err(|e| IoError::new("open", path, e))?;
        Ok(Self { file, path: path.to_owned() })
    }

    pub fn open_to_read(path: &Path) -> Result<Self, IoError> {
        let file = crate::open_regular_file(path)?;
        Ok(Self { file, path: path.to_owned() })
    }

    fn failed(&self, operation: &'static str) -> impl FnOnce(std::io::Error) -> IoError + '_ {
        move |error| IoError::new(operation, &self.path, error)
    }
}

#[cfg(unix)]
fn write_all_at(file: &File, bytes: &[u8], at: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, at)
}

#[cfg(unix)]
fn read_some_at(file: &File, into: &mut [u8], at: u64) -> std::io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, into, at)
}

#[cfg(windows)]
fn write_all_at(file: &File, mut bytes: &[u8], mut at: u64) -> std::io::Result<()> {
    while !bytes.is_empty() {
        let n = std::os::windows::fs::FileExt::seek_write(file, bytes, at)?;
        if n == 0 {
            return Err(std::io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[n..];
        at += n as u64;
    }
    Ok(())
}

#[cfg(windows)]
fn read_some_at(file: &File, into: &mut [u8], at: u64) -> std::io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, into, at)
}

impl RandomFile for RealFile {
    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<(), IoError> {
        write_all_at(&self.file, bytes, at).map_err(self.failed("write"))
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize, IoError> {
        let mut n_read = 0;
        while n_read < into.len() {
            match read_some_at(&self.file, &mut into[n_read..], at + n_read as u64) {
                Ok(0) => break,
                Ok(n) => n_read += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.failed("read")(e)),
            }
        }
        Ok(n_read)
    }

    fn reserve(&self, bytes: u64) -> Result<(), IoError> {
        use std::io::ErrorKind as K;
        match fs4::FileExt::allocate(&self.file, bytes) {
            Ok(()) => {}
            Err(e) if matches!(e.kind(), K::StorageFull | K::QuotaExceeded | K::FileTooLarge) => {
                return Err(self.failed("reserve space for")(e));
            }
            // Not every file system can allocate ahead; a full disk then shows when the file is written.
            Err(_) => {}
        }
        self.file.set_len(bytes).map_err(self.failed("reserve space for"))
    }

    fn truncate(&self, bytes: u64) -> Result<(), IoError> {
        self.file.set_len(bytes).map_err(self.failed("shorten"))
    }

    fn len(&self) -> Result<u64, IoError> {
        self.file.metadata().map(|m| m.len()).map_err(self.failed("measure"))
    }

    fn sync(&self) -> Result<(), IoError> {
        self.file.sync_data().map_err(self.failed("flush"))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Io, RealIo};

    #[test]
    fn offsets_are_written_and_read_in_any_order() {
        let path = std::env::temp_dir().join(format!("inglenook-random-{}", std::process::id()));
        let file = RealIo.open_random(&path).unwrap();
        file.reserve(10).unwrap();
        assert_eq!(file.len().unwrap(), 10);
        file.write_at(6, b"world").unwrap();
        file.write_at(0, b"hello").unwrap();
        file.sync().unwrap();
        let mut read = [1; 20];
        assert_eq!(file.read_at(0, &mut read).unwrap(), 11);
        assert_eq!(&read[..11], b"hello\0world");
        assert_eq!(file.read_at(99, &mut read).unwrap(), 0);
        file.truncate(5).unwrap();
        assert_eq!(RealIo.open_random(&path).unwrap().len().unwrap(), 5, "opening empties nothing");
        RealIo.remove_file(&path).unwrap();
        let space = RealIo.disk_space(&std::env::temp_dir()).unwrap();
        assert!(space.free <= space.total && space.total > 0);
    }
}
