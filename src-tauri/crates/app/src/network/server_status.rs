//! Which servers of this data folder are listening. Each holds a lock named by its port, so that a
//! window notices its start and its death without using the network. No heartbeat, no work while
//! idle.

use std::path::{Path, PathBuf};

use io::{FileLock, Io};

use crate::App;
use contract::Result;
use contract::types::ServerState;

/// Held for as long as a server listens.
#[derive(Debug)]
pub struct ServerLock {
    _lock: Option<FileLock>,
}

impl App {
    /// Says that a server of this process listens, until what is returned is dropped. One on another address of the same
    /// port that came before speaks for both.
    pub fn serving(&self, port: u16) -> Result<ServerLock> {
        if self.store().is_read_only() {
            return Ok(ServerLock { _lock: None });
        }
        let folder = folder(&self.dirs().data);
        self.ctx().io.create_dir_all(&folder)?;
        forget_dead(&self.dirs().data, &*self.ctx().io);
        let _lock = FileLock::try_acquire(&folder.join(format!("{port}.lock")))?;
        Ok(ServerLock { _lock })
    }

    pub fn server_state(&self) -> Result<ServerState> {
        let (mut alive, mut dead) = (Vec::new(), Vec::new());
        for (port, path) in marks(&self.dirs().data, &*self.ctx().io) {
            if FileLock::is_held(&path)? { alive.push(port) } else { dead.push((port, path)) }
        }
        alive.sort_unstable();
        // A server that ends well takes its mark away before it lets go of it: then this is no death.
        let died = dead.into_iter().find(|(_, path)| self.ctx().io.exists(path).unwrap_or(false));
        Ok(match died {
            _ if !alive.is_empty() => ServerState::Running { ports: alive },
            Some((port, _)) => ServerState::Failed { port },
            None => ServerState::Off,
        })
    }
}

/// What died before this program began is no news.
pub(crate) fn forget_dead(data: &Path, io: &dyn Io) {
    for (_, path) in marks(data, io) {
        // One that can't be looked at, or is gone by now, is left alone.
        if let Ok(false) = FileLock::is_held(&path) {
            let _ = io.remove_file(&path);
        }
    }
}

/// None where no server has ever listened.
fn marks(data: &Path, io: &dyn Io) -> Vec<(u16, PathBuf)> {
    let paths = io.list(&folder(data)).unwrap_or_default().into_iter();
    let port = |path: &Path| {
        let is_lock = path.extension().is_some_and(|ending| ending == "lock");
        path.file_stem().filter(|_| is_lock)?.to_str()?.parse().ok()
    };
    paths.filter_map(|path| Some((port(&path)?, path))).collect()
}

fn folder(data: &Path) -> PathBuf {
    data.join("serving")
}
