//! One window on one data folder. Terminal and server work beside it, since the database takes turns; a second window
//! would load every model twice and show nothing more.

use std::path::PathBuf;

use io::{FileLock, Io, RealIo};

use crate::dirs::Dirs;
use crate::error::{Error, ErrorKind, Result};

/// The right to show a window, until it is dropped or the process ends, however it ends.
pub struct OneWindow {
    _lock: FileLock,
}

impl OneWindow {
    /// `data_dir` as in `AppConfig`. Error `app.open_already`: another process shows one.
    pub fn take(data_dir: Option<PathBuf>) -> Result<Self> {
        let folder = Dirs::resolve(data_dir)?.data;
        RealIo.create_dir_all(&folder)?;
        let path = folder.join("window.lock");
        if FileLock::is_held(&path)? {
            return Err(Error::new(
                ErrorKind::Conflict,
                "app.open_already",
                "Inglenook is open already.",
                "Its window is there: look for it among the open ones. To have a second one, give it a folder of its own with --data-dir.",
            ));
        }
        Ok(Self { _lock: FileLock::create(&path)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_window_is_refused_until_the_first_is_gone() {
        let folder = std::env::temp_dir().join(format!("inglenook-window-{}", std::process::id()));
        let take = || OneWindow::take(Some(folder.clone()));
        let first = take().unwrap();
        let error = take().err().unwrap();
        assert_eq!((error.code(), error.kind), ("app.open_already", ErrorKind::Conflict));
        drop(first);
        let third = take().unwrap();
        drop(third);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
