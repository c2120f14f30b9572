//! Application-wide events, apart from those of turns.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use contract::types::{AppEvent, ErrorInfo};
use platform::{EventLog, Watch};

/// Events that a slow watcher of the application may fall behind before it has to list everything again.
const MAX_KEPT_EVENTS: usize = 1024;

/// Application-wide events, apart from those of turns.
#[derive(Clone)]
pub(crate) struct Events {
    log: Arc<EventLog<AppEvent>>,
    is_watched: Arc<AtomicBool>,
}

impl Events {
    pub fn new() -> Self {
        Self { log: EventLog::new(MAX_KEPT_EVENTS), is_watched: Arc::default() }
    }

    pub fn publish(&self, event: AppEvent) {
        self.log.push(|_| event);
    }

    /// Something the user should know though nothing failed.
    pub fn notice(&self, error: ErrorInfo) {
        tracing::warn!(code = error.code, "{}", error.message);
        self.publish(AppEvent::Notice { error });
    }

    /// Follows from now on. The first watcher also gets what came before it: the notices of the opening.
    pub fn watch(&self) -> Watch<AppEvent> {
        let is_first = !self.is_watched.swap(true, Ordering::Relaxed);
        Watch::new(&self.log, if is_first { 0 } else { self.log.count() })
    }

    /// No more events: watchers end when they have read all.
    pub fn close(&self) {
        self.log.close();
    }
}
