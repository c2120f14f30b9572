//! What every use case may touch: the store, the events, the backends, the settings, the disk and the clock.
//!
//! Cheap to clone. Lock order: the store first, then one service's own lock, then nothing. A service never takes the
//! store while it holds its own lock.

pub mod checkpoints;
pub mod compaction;
pub mod pending_replies;
pub mod summary_jobs;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use contract::protocol::WorkerRequest;
use contract::types::{AppEvent, ConversationSummary, ErrorInfo};
use contract::{Error, Result};
use inference::worker;
use io::{Clock, Io};
use net::ConnectionGate;
use platform::{DataDirs, EventLog, Watch};
use session::{ConversationRow, Session};

use crate::conversations::rows_to_types;
use crate::environment::Environment;
use crate::network::endpoints::Endpoints;
use crate::settings::Settings;
use pending_replies::Replies;

/// Events that a slow watcher of the application may fall behind before it has to list everything again.
const MAX_KEPT_EVENTS: usize = 1024;

/// What a use case may touch.
#[derive(Clone)]
pub(crate) struct Context {
    pub store: Store,
    pub events: Events,
    pub backends: Backends,
    pub settings: Settings,
    pub io: Arc<dyn Io>,
    pub clock: Arc<dyn Clock>,
    pub dirs: Arc<DataDirs>,
    pub keys: Arc<secrets::Keys>,
    pub gate: ConnectionGate,
    pub environment: Environment,
}

/// The database: one writer, behind one lock.
#[derive(Clone)]
pub(crate) struct Store {
    session: Arc<Mutex<Session>>,
}

impl Store {
    pub fn new(session: Session) -> Self {
        Self { session: Arc::new(Mutex::new(session)) }
    }

    /// The session, for as long as the guard lives. Take no other lock before it.
    pub fn lock(&self) -> MutexGuard<'_, Session> {
        // The truth is in the database, which is whole after every statement.
        self.session.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// A conversation as edges see it, with the turn that is answering it.
pub(crate) fn summary(session: &Session, row: ConversationRow) -> Result<ConversationSummary> {
    let active = session.active_turn(&row.id)?;
    Ok(rows_to_types::summary(row, active))
}

/// The application's events, beside those of turns.
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

/// Whoever answers: the worker of this machine, and other servers.
#[derive(Clone)]
pub(crate) struct Backends {
    pub worker: worker::Requests,
    pub endpoints: Arc<Endpoints>,
    pub replies: Arc<Replies>,
}

impl Backends {
    /// Sends a request to whoever has its model.
    pub fn ask(&self, request: WorkerRequest) -> Result<()> {
        if request.is_remote() {
            return self.endpoints.remote().ask(request);
        }
        if let WorkerRequest::Cancel { turn } = &request {
            self.endpoints.remote().cancel(turn);
        }
        self.worker.send(request).map_err(|_| Error::bug("the worker has ended"))
    }
}
