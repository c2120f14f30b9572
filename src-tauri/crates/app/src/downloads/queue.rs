//! The downloads of this process: which run, and which it was asked for.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use contract::types::ErrorInfo;
use hub::{DownloadProgress, HubError};
use tokio::sync::watch;

/// How long a download may take to stop once asked.
const STOP_WITHIN: Duration = Duration::from_secs(10);

/// Those that run in this process.
#[derive(Default)]
pub(crate) struct Downloads {
    table: Mutex<DownloadTable>,
    /// Something ended.
    pub(super) ended: Condvar,
}

#[derive(Default)]
pub(super) struct DownloadTable {
    pub(super) live: HashMap<String, LiveDownload>,
    /// What is to be known of those that ran.
    pub(super) notices: HashMap<String, HubError>,
    /// Those that this process was asked for.
    pub(super) mine: HashSet<String>,
    /// This process works off everything in the queue.
    pub(super) takes_all: bool,
    pub(super) is_closed: bool,
}

/// One that runs.
pub(super) struct LiveDownload {
    pub(super) meter: Arc<DownloadProgress>,
    pub(super) stop: watch::Sender<bool>,
    /// Bytes per second.
    pub(super) speed: f64,
    /// Over the network before this run.
    pub(super) fetched_before: u64,
    /// It waits for something that passes, such as room on the disk.
    pub(super) waits_for: Option<ErrorInfo>,
}

impl Downloads {
    pub(super) fn lock(&self) -> MutexGuard<'_, DownloadTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells all to stop, and waits for what they have to write.
    pub fn close(&self) {
        let mut table = self.lock();
        table.is_closed = true;
        table.live.values().for_each(|live| {
            live.stop.send_replace(true);
        });
        drop(self.ended.wait_timeout_while(table, STOP_WITHIN, |table| !table.live.is_empty()));
    }

    /// Stops one and waits until it has.
    pub(super) fn stop(&self, id: &str) {
        let mut table = self.lock();
        table.mine.remove(id);
        if let Some(live) = table.live.get(id) {
            live.stop.send_replace(true);
        }
        drop(self.ended.wait_timeout_while(table, STOP_WITHIN, |table| table.live.contains_key(id)));
    }
}
