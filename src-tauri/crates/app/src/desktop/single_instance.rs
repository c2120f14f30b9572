//! One window per data folder. Terminal and server work alongside it, since the database serialises
//! access. A second window would only load every model twice: it hands its request to the first,
//! which comes to the front, and exits.

use std::path::{Path, PathBuf};

use io::{FileLock, Io, RealIo};

use crate::desktop::deep_links::DeepLink;
use contract::{Error, ErrorKind, Result};
use platform::DataDirs;

/// The right to show a window, until it is dropped or the process ends, however it ends.
pub struct SingleInstance {
    _lock: FileLock,
    bell: bell::InstanceSocket,
}

/// What became of asking for that right.
pub enum InstanceClaim {
    First(SingleInstance),
    /// Another process shows a window; it received the request and was asked to come to the front.
    Raised,
}

impl SingleInstance {
    /// `data_dir` as in `AppConfig`; `asked` is for the window that is there already. Error `app.open_already`: another
    /// process shows one, and can't be asked.
    pub fn take(data_dir: Option<PathBuf>, asked: &[DeepLink]) -> Result<InstanceClaim> {
        let folder = DataDirs::resolve(data_dir)?.data;
        RealIo.create_dir_all(&folder)?;
        let (lock, bell) = (folder.join("window.lock"), folder.join("window.bell"));
        if let Some(_lock) = FileLock::try_acquire(&lock)? {
            return Ok(InstanceClaim::First(Self { _lock, bell: bell::InstanceSocket::hang(&bell) }));
        }
        if bell::ring(&bell, asked) {
            return Ok(InstanceClaim::Raised);
        }
        Err(Error::new(
            ErrorKind::Conflict,
            "app.open_already",
            "Inglenook is already open.",
            "Switch to its window. To open a second one, give it a separate data folder with --data-dir.",
        ))
    }

    /// Has `raise` called, with what was asked, whenever a second window would have opened. Where the system can't tell
    /// of that, the second one says that there is a first.
    pub fn on_raise(&mut self, raise: impl Fn(Vec<DeepLink>) + Send + 'static) {
        self.bell.answer(raise);
    }
}

/// A socket in the data folder, which only those who may read that can reach.
#[cfg(unix)]
mod bell {
    use std::io::{Read, Write};
    use std::net::Shutdown;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread::JoinHandle;
    use std::time::Duration;

    use io::{Io, RealIo};

    use super::{DeepLink, Path, PathBuf};

    /// Either side waits so long for the other.
    const PATIENCE: Duration = Duration::from_secs(3);

    /// More than that is no list of files and links.
    const MAX_ASKED_BYTES: u64 = 1 << 20;

    const HEARD: u8 = b'!';

    pub struct InstanceSocket {
        path: PathBuf,
        /// None: there can be none here; a path may be too long for a socket.
        listener: Option<UnixListener>,
        answering: Option<JoinHandle<()>>,
        is_over: Arc<AtomicBool>,
    }

    impl InstanceSocket {
        /// The caller holds the lock: what lies there is left over.
        pub fn hang(path: &Path) -> Self {
            // there may be none
            let _ = RealIo.remove_file(path);
            let listener = UnixListener::bind(path);
            if let Err(error) = &listener {
                tracing::info!("a second window can't call this one: {error}");
            }
            Self { path: path.into(), listener: listener.ok(), answering: None, is_over: Arc::default() }
        }

        pub fn answer(&mut self, raise: impl Fn(Vec<DeepLink>) + Send + 'static) {
            let Some(listener) = self.listener.take() else { return };
            let is_over = Arc::clone(&self.is_over);
            let answer = move || {
                for caller in listener.incoming() {
                    if is_over.load(Ordering::SeqCst) {
                        return;
                    }
                    let Ok(mut caller) = caller else { continue };
                    raise(hear(&caller));
                    // a caller that has gone needs no answer
                    let _ = caller.write_all(&[HEARD]);
                }
            };
            self.answering = std::thread::Builder::new().name("inglenook-bell".into()).spawn(answer).ok();
        }
    }

    impl Drop for InstanceSocket {
        fn drop(&mut self) {
            self.is_over.store(true, Ordering::SeqCst);
            if let Some(answering) = self.answering.take()
                && UnixStream::connect(&self.path).is_ok()
            {
                // one that panicked answers no more
                let _ = answering.join();
            }
            // one that stays behind is taken away by the next window
            let _ = RealIo.remove_file(&self.path);
        }
    }

    /// A caller that sends nothing intelligible is taken to ask for the window alone.
    fn hear(caller: &UnixStream) -> Vec<DeepLink> {
        let mut text = String::new();
        let heard = caller
            .set_read_timeout(Some(PATIENCE))
            .and_then(|()| caller.take(MAX_ASKED_BYTES).read_to_string(&mut text));
        if let Err(error) = heard {
            tracing::warn!("what a second window was asked could not be read: {error}");
            return Vec::new();
        }
        serde_json::from_str(&text).unwrap_or_else(|error| {
            tracing::warn!("what a second window was asked could not be understood: {error}");
            Vec::new()
        })
    }

    /// Whether somebody heard.
    pub fn ring(path: &Path, asked: &[DeepLink]) -> bool {
        let ring = || -> std::io::Result<u8> {
            let mut called = UnixStream::connect(path)?;
            called.write_all(&serde_json::to_vec(asked)?)?;
            called.shutdown(Shutdown::Write)?;
            called.set_read_timeout(Some(PATIENCE))?;
            let mut answer = [0];
            called.read_exact(&mut answer)?;
            Ok(answer[0])
        };
        ring().is_ok_and(|answer| answer == HEARD)
    }
}

#[cfg(not(unix))]
mod bell {
    use super::{DeepLink, Path};

    pub struct InstanceSocket;

    impl InstanceSocket {
        pub fn hang(_path: &Path) -> Self {
            Self
        }

        pub fn answer(&mut self, _raise: impl Fn(Vec<DeepLink>) + Send + 'static) {}
    }

    pub fn ring(_path: &Path, _asked: &[DeepLink]) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn first(taken: InstanceClaim) -> SingleInstance {
        match taken {
            InstanceClaim::First(window) => window,
            InstanceClaim::Raised => panic!("nobody else is there"),
        }
    }

    #[test]
    fn a_second_window_raises_the_first_or_is_refused_until_that_is_gone() {
        let folder = std::env::temp_dir().join(format!("inglenook-window-{}", std::process::id()));
        let ask = |asked: &[DeepLink]| SingleInstance::take(Some(folder.clone()), asked);
        let take = || ask(&[]);
        let mut window = first(take().unwrap());
        let (send, raised) = mpsc::channel();
        window.on_raise(move |asked| send.send(asked).unwrap());
        if cfg!(unix) {
            let something =
                [DeepLink::NewChat { text: "\u{1f525}".into() }, DeepLink::Conversation { id: "1".into() }];
            for asked in [&[], &something[..]] {
                assert!(matches!(ask(asked), Ok(InstanceClaim::Raised)));
                assert_eq!(raised.recv().unwrap(), asked);
            }
            // somebody who only knocks
            drop(std::os::unix::net::UnixStream::connect(folder.join("window.bell")).unwrap());
            assert_eq!(raised.recv().unwrap(), []);
            std::fs::remove_file(folder.join("window.bell")).unwrap();
        }
        // one that can't be called
        let error = take().err().unwrap();
        assert_eq!((error.code(), error.kind), ("app.open_already", ErrorKind::Conflict));
        drop(window);
        let third = first(take().unwrap());
        drop(third);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
