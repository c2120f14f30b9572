//! The table of fine-tuning runs of this process.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use contract::types::{ErrorInfo, TuneStep};
use inference::supervisor::WorkerPlacement;
use inference::tune::process::TuneInterrupt;

/// How long a run may take to stop once asked: a thread finishes its step.
const STOP_WITHIN: Duration = Duration::from_secs(60);

/// Runs of this process.
#[derive(Default)]
pub(crate) struct Tunes {
    /// Program that a run is started in. Unset: runs are threads.
    pub(super) program: OnceLock<PathBuf>,
    table: Mutex<TuneTable>,
    /// A run ended.
    pub(super) ended: Condvar,
}

/// What is known of runs.
#[derive(Default)]
pub(super) struct TuneTable {
    pub live: HashMap<String, LiveTune>,
    /// What is known of those that were begun here.
    pub begun: HashMap<String, BegunTune>,
    pub failed: HashMap<String, ErrorInfo>,
    pub threads: Vec<JoinHandle<()>>,
    pub is_closed: bool,
}

/// A run that trains.
pub(super) struct LiveTune {
    pub interrupt: Arc<TuneInterrupt>,
    pub n_steps_here: u64,
    pub seconds_here: f64,
}

/// A run that was begun by this process.
#[derive(Clone, Copy)]
pub(super) struct BegunTune {
    pub n_steps: u64,
    pub before: Option<f64>,
    pub last: Option<TuneStep>,
}

impl Tunes {
    /// Runs are what the worker is: threads of this process, or processes.
    pub fn run_as(&self, placement: &WorkerPlacement) {
        match placement {
            WorkerPlacement::Thread => {}
            WorkerPlacement::Process(program) => _ = self.program.set(program.path.clone()),
        }
    }

    /// The table, for a moment.
    pub(super) fn lock(&self) -> MutexGuard<'_, TuneTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Interrupts a run and waits until it has stopped.
    pub(super) fn pause(&self, id: &str) {
        let table = self.lock();
        if let Some(live) = table.live.get(id) {
            live.interrupt.interrupt();
        }
        drop(self.ended.wait_timeout_while(table, STOP_WITHIN, |table| table.live.contains_key(id)));
    }

    pub(super) fn forget(&self, id: &str) {
        let mut table = self.lock();
        table.begun.remove(id);
        table.failed.remove(id);
    }

    /// Pauses all, and starts none any more.
    pub fn close(&self) {
        let mut table = self.lock();
        table.is_closed = true;
        table.live.values().for_each(|live| live.interrupt.interrupt());
        let threads = std::mem::take(&mut table.threads);
        drop(table);
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("the thread of a fine-tuning run ended by a panic");
            }
        }
    }
}
