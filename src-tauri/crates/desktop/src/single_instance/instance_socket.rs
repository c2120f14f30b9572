//! The socket through which a second process raises the window of the first. It lies in the data folder, so only who
//! may read that can reach it.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use io::{Io, RealIo};

use crate::deep_links::DeepLink;

/// How long either side waits for the other: a process that hangs must not block the next start.
const PEER_TIMEOUT: Duration = Duration::from_secs(3);

/// A longer request is no list of files and links.
const MAX_REQUEST_BYTES: u64 = 1 << 20;

/// The byte that confirms a request.
const ACKNOWLEDGED: u8 = b'!';

/// The listening side, in the process that shows the window.
pub struct InstanceSocket {
    path: PathBuf,
    /// None: there can be none here; a path may be too long for a socket.
    listener: Option<UnixListener>,
    thread: Option<JoinHandle<()>>,
    is_closed: Arc<AtomicBool>,
}

impl InstanceSocket {
    /// Binds the socket. The caller holds the lock, so a file that lies there is left over.
    pub fn bind(path: &Path) -> Self {
        // there may be none
        let _ = RealIo.remove_file(path);
        let listener = UnixListener::bind(path);
        if let Err(error) = &listener {
            tracing::info!("a second window can't call this one: {error}");
        }
        Self { path: path.into(), listener: listener.ok(), thread: None, is_closed: Arc::default() }
    }

    /// Calls `raise` with the links of each request, on a separate thread.
    pub fn serve(&mut self, raise: impl Fn(Vec<DeepLink>) + Send + 'static) {
        let Some(listener) = self.listener.take() else { return };
        let is_closed = Arc::clone(&self.is_closed);
        let serve = move || {
            for caller in listener.incoming() {
                if is_closed.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(mut caller) = caller else { continue };
                raise(read_links(&caller));
                // a caller that has gone needs no acknowledgement
                let _ = caller.write_all(&[ACKNOWLEDGED]);
            }
        };
        self.thread = std::thread::Builder::new().name("inglenook-raise".into()).spawn(serve).ok();
    }
}

impl Drop for InstanceSocket {
    fn drop(&mut self) {
        self.is_closed.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take()
            && UnixStream::connect(&self.path).is_ok()
        {
            // one that panicked serves no more
            let _ = thread.join();
        }
        // one that stays behind is removed by the next window
        let _ = RealIo.remove_file(&self.path);
    }
}

/// The links of a request. A caller that sends nothing intelligible gets the window alone.
fn read_links(caller: &UnixStream) -> Vec<DeepLink> {
    let mut text = String::new();
    let read = caller
        .set_read_timeout(Some(PEER_TIMEOUT))
        .and_then(|()| caller.take(MAX_REQUEST_BYTES).read_to_string(&mut text));
    if let Err(error) = read {
        tracing::warn!("the request of a second window could not be read: {error}");
        return Vec::new();
    }
    serde_json::from_str(&text).unwrap_or_else(|error| {
        tracing::warn!("the request of a second window could not be understood: {error}");
        Vec::new()
    })
}

/// Sends `links` to the process that listens at `path`. True: it has taken them.
pub fn request_raise(path: &Path, links: &[DeepLink]) -> bool {
    let request = || -> std::io::Result<u8> {
        let mut stream = UnixStream::connect(path)?;
        stream.write_all(&serde_json::to_vec(links)?)?;
        stream.shutdown(Shutdown::Write)?;
        stream.set_read_timeout(Some(PEER_TIMEOUT))?;
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        Ok(byte[0])
    };
    request().is_ok_and(|byte| byte == ACKNOWLEDGED)
}
