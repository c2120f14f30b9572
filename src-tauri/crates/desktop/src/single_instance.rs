//! One window per data folder. Terminal and server work alongside it, since the database serialises
//! access. A second window would only load every model twice: it hands its request to the first,
//! which comes to the front, and exits.

#[cfg(unix)]
mod instance_socket;

use std::path::{Path, PathBuf};

use io::{FileLock, Io, RealIo};

use crate::deep_links::DeepLink;
use contract::{Error, ErrorKind, Result};
use platform::DataDirs;

/// The right to show a window, until it is dropped or the process ends, however it ends.
pub struct SingleInstance {
    /// None where the folder can't be written.
    _lock: Option<FileLock>,
    #[cfg(unix)]
    socket: instance_socket::InstanceSocket,
}

/// The result of claiming that right.
pub enum InstanceClaim {
    /// This process may show the window.
    First(SingleInstance),
    /// Another process shows a window; it received the request and was asked to come to the front.
    Raised,
}

impl SingleInstance {
    /// Claims the data folder of `data_dir`, as in `AppConfig`. A window that is there already gets `links`.
    ///
    /// Error `app.open_already`: another process shows one and can't be reached.
    pub fn take(data_dir: Option<PathBuf>, links: &[DeepLink]) -> Result<InstanceClaim> {
        let folder = DataDirs::resolve(data_dir)?.data;
        RealIo.create_dir_all(&folder)?;
        let socket = folder.join("window.bell");
        let lock = FileLock::try_acquire(&folder.join("window.lock"));
        if !matches!(lock, Ok(Some(_))) && raise_running_window(&socket, links) {
            return Ok(InstanceClaim::Raised);
        }
        // On a full disk, or where the folder can't be written, the history is shown all the same.
        let is_unwritable = lock.is_err();
        let _lock = lock.unwrap_or(None);
        if _lock.is_some() || is_unwritable {
            return Ok(InstanceClaim::First(Self {
                _lock,
                #[cfg(unix)]
                socket: instance_socket::InstanceSocket::bind(&socket),
            }));
        }
        Err(Error::new(
            ErrorKind::Conflict,
            "app.open_already",
            "Inglenook is already open.",
            "Switch to its window. To open a second one, give it a separate data folder with --data-dir.",
        ))
    }

    /// Calls `raise` with the links of each later process that would have opened a window.
    ///
    /// Systems without such sockets never call it: there the later process says that a window is open.
    #[cfg_attr(not(unix), expect(unused_variables, reason = "there is no socket to listen on"))]
    pub fn on_raise(&mut self, raise: impl Fn(Vec<DeepLink>) + Send + 'static) {
        #[cfg(unix)]
        self.socket.serve(raise);
    }
}

/// Asks the process that shows a window to come to the front and open `links`; false: it can't be reached.
#[cfg(unix)]
fn raise_running_window(socket: &Path, links: &[DeepLink]) -> bool {
    instance_socket::request_raise(socket, links)
}

#[cfg(not(unix))]
fn raise_running_window(_socket: &Path, _links: &[DeepLink]) -> bool {
    false
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
    fn f39_a_second_window_raises_the_first_or_is_refused_until_that_is_gone() {
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
