//! Live progress of a download.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::HubError;

/// Current phase of a download.
#[derive(Debug, Clone, PartialEq)]
pub enum Phase {
    /// Resolving files and checking disk space.
    Preparing,
    /// Receiving data.
    Fetching,
    /// All connections wait after this error; it resumes automatically.
    Waiting(HubError),
    /// Hashing a file.
    Verifying,
}

struct ProgressState {
    is_fetching: bool,
    is_verifying: bool,
    connections: u32,
    waiting: u32,
    last_error: Option<HubError>,
    notice: Option<HubError>,
}

/// Counters of a running download, shared with observers.
pub struct DownloadProgress {
    /// Bytes of all files on disk.
    have: AtomicU64,
    total: AtomicU64,
    /// Bytes received over the network since the download started or resumed.
    fetched: AtomicU64,
    /// Bytes hashed so far of the file being verified.
    verified: AtomicU64,
    to_verify: AtomicU64,
    state: Mutex<ProgressState>,
}

impl DownloadProgress {
    /// Progress of a download of `total` bytes.
    pub fn new(total: u64) -> Self {
        let state = ProgressState {
            is_fetching: false,
            is_verifying: false,
            connections: 0,
            waiting: 0,
            last_error: None,
            notice: None,
        };
        Self {
            have: AtomicU64::new(0),
            total: AtomicU64::new(total),
            fetched: AtomicU64::new(0),
            verified: AtomicU64::new(0),
            to_verify: AtomicU64::new(0),
            state: Mutex::new(state),
        }
    }

    fn lock(&self) -> MutexGuard<'_, ProgressState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of all files on disk.
    pub fn have(&self) -> u64 {
        self.have.load(Relaxed)
    }

    /// Bytes of all files.
    pub fn total(&self) -> u64 {
        self.total.load(Relaxed)
    }

    /// Bytes received over the network since the download started or resumed.
    pub fn fetched(&self) -> u64 {
        self.fetched.load(Relaxed)
    }

    /// Verified fraction of the current file, from 0 to 1.
    pub fn verified(&self) -> f32 {
        let all = self.to_verify.load(Relaxed).max(1);
        (self.verified.load(Relaxed) as f64 / all as f64) as f32
    }

    /// Current phase.
    pub fn phase(&self) -> Phase {
        let state = self.lock();
        let is_stuck = state.waiting > 0 && state.waiting >= state.connections;
        match &state.last_error {
            _ if state.is_verifying => Phase::Verifying,
            Some(error) if is_stuck => Phase::Waiting(error.clone()),
            _ if state.is_fetching => Phase::Fetching,
            Some(_) | None => Phase::Preparing,
        }
    }

    /// A message for the user although nothing failed.
    pub fn notice(&self) -> Option<HubError> {
        self.lock().notice.clone()
    }

    pub(crate) fn set_notice(&self, notice: HubError) {
        self.lock().notice = Some(notice);
    }

    pub(crate) fn set_have(&self, bytes: u64) {
        self.have.store(bytes, Relaxed);
    }

    pub(crate) fn set_total(&self, bytes: u64) {
        self.total.store(bytes, Relaxed);
    }

    pub(crate) fn add_fetched(&self, bytes: u64) {
        self.fetched.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn verifying(&self, done: u64, of: u64) {
        self.verified.store(done, Relaxed);
        self.to_verify.store(of, Relaxed);
        self.lock().is_verifying = true;
    }

    /// Enters the fetching phase with this many connections.
    pub(crate) fn fetching(&self, connections: u32) {
        let mut state = self.lock();
        (state.is_fetching, state.is_verifying) = (true, false);
        (state.connections, state.waiting) = (connections, 0);
    }

    pub(crate) fn preparing(&self) {
        let mut state = self.lock();
        (state.is_fetching, state.is_verifying, state.waiting) = (false, false, 0);
        state.connections = 1;
    }

    pub(crate) fn connection_ended(&self) {
        let mut state = self.lock();
        state.connections = state.connections.saturating_sub(1);
    }

    /// Marks one connection as waiting until the guard is dropped.
    pub(crate) fn begin_wait(&self, error: HubError) -> WaitGuard<'_> {
        let mut state = self.lock();
        state.waiting += 1;
        state.last_error = Some(error);
        WaitGuard(self)
    }
}

pub(crate) struct WaitGuard<'a>(&'a DownloadProgress);

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.waiting = state.waiting.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_waits_when_all_connections_do() {
        let progress = DownloadProgress::new(10);
        assert_eq!(progress.phase(), Phase::Preparing);
        progress.fetching(2);
        let error = HubError::new("hub.unreachable", "x", "y");
        let one = progress.begin_wait(error.clone());
        assert_eq!(progress.phase(), Phase::Fetching);
        let two = progress.begin_wait(error.clone());
        assert_eq!(progress.phase(), Phase::Waiting(error.clone()));
        drop(two);
        assert_eq!(progress.phase(), Phase::Fetching);
        progress.connection_ended();
        assert_eq!(progress.phase(), Phase::Waiting(error));
        drop(one);
        progress.verifying(1, 4);
        assert_eq!((progress.phase(), progress.verified()), (Phase::Verifying, 0.25));
    }
}
