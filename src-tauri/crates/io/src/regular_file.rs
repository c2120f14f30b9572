//! Opening files that somebody named: regular files only, without waiting, and read up to a limit.
//!
//! Never blocks on a pipe, never reads from a device. Every path from outside is opened here.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::Path;

use crate::{FileLimit, IoError, SpecialFile};

/// Opens a regular file to read it. Returns at once whatever lies at the path.
///
/// Errors: `io.not_a_file` for folders, pipes, sockets and devices.
pub fn open_regular_file(path: &Path) -> Result<File, IoError> {
    // Looked at before opening, as to open a device can be an act; and after, as the path may lead elsewhere by then.
    let open = || {
        SpecialFile::check(path)?;
        let file = without_waiting().open(path)?;
        match SpecialFile::of(file.metadata()?.file_type()) {
            None => Ok(file),
            Some(special) => Err(special.into()),
        }
    };
    open().map_err(|error| IoError::new("open", path, error))
}

/// Reads a regular file.
///
/// Errors: as [`open_regular_file`], and `io.too_large` for one that is longer than `max_bytes`. What the system says of
/// its length is not believed.
pub fn read_regular_file(path: &Path, max_bytes: u64) -> Result<Vec<u8>, IoError> {
    let file = open_regular_file(path)?;
    let read = || {
        let too_large = || std::io::Error::new(std::io::ErrorKind::FileTooLarge, FileLimit { max_bytes });
        let n_bytes = file.metadata()?.len();
        if n_bytes > max_bytes {
            return Err(too_large());
        }
        let mut bytes = Vec::new();
        // One more byte, for the end of the file.
        bytes.try_reserve_exact(usize::try_from(n_bytes).unwrap_or(usize::MAX).saturating_add(1))?;
        (&file).take(max_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > max_bytes { Err(too_large()) } else { Ok(bytes) }
    };
    read().map_err(|error| IoError::new("read", path, error))
}

/// `O_NONBLOCK`: a pipe without a writer opens at once. `O_NOCTTY`: a terminal does not become ours.
#[cfg(unix)]
fn without_waiting() -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    options
}

#[cfg(not(unix))]
fn without_waiting() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true);
    options
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn code(path: &Path) -> &'static str {
        read_regular_file(path, 10).map_or_else(|error| error.code(), |_| "read")
    }

    #[test]
    fn regular_files_are_read_up_to_the_limit() {
        let path = std::env::temp_dir().join(format!("inglenook-regular-{}", std::process::id()));
        for (n_bytes, expected) in [(0, "read"), (10, "read"), (11, "io.too_large")] {
            fs::write(&path, vec![b'x'; n_bytes]).unwrap();
            assert_eq!(code(&path), expected, "{n_bytes} bytes");
        }
        fs::remove_file(&path).unwrap();
        assert_eq!(code(&path), "io.not_found");
        assert_eq!(code(&std::env::temp_dir()), "io.not_a_file");
    }

    #[cfg(unix)]
    #[test]
    fn special_files_are_refused_at_once_by_what_they_are() {
        let folder = std::env::temp_dir().join(format!("inglenook-special-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (fifo, link, socket) = (folder.join("fifo"), folder.join("link"), folder.join("socket"));
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let cases = [
            (fifo.as_path(), "pipe"),
            (&link, "device"),
            (&socket, "socket"),
            (&folder, "folder"),
            (Path::new("/dev/null"), "device"),
            (Path::new("/dev/tty"), "device"),
        ];
        for (path, what) in cases {
            let error = read_regular_file(path, u64::MAX).unwrap_err();
            assert_eq!(error.code(), "io.not_a_file", "{error}");
            assert!(error.to_string().contains(what), "{error}");
            let written = crate::Io::write_atomic(&crate::RealIo, path, b"x").unwrap_err();
            assert_eq!(written.code(), "io.not_a_file", "{written}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    /// Files of the system have a length of 0 and content all the same.
    #[cfg(target_os = "linux")]
    #[test]
    fn stated_lengths_are_not_believed() {
        assert!(!read_regular_file(Path::new("/proc/self/status"), 1 << 20).unwrap().is_empty());
        assert_eq!(code(Path::new("/proc/self/status")), "io.too_large");
    }
}
