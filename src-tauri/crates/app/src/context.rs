//! What every use case may use: the store, the events, the backends, the settings, the disk and the
//! clock.
//!
//! Cheap to clone. Lock order: the store first, then one service's own lock, then nothing. A service never takes the
//! store while it holds its own lock.

pub mod checkpoint_files;
pub mod checkpoints;
pub mod compaction;
pub mod pending_replies;
pub mod stored_compactions;
pub mod summarize;
pub mod summary_jobs;

use std::sync::Arc;

use contract::protocol::WorkerRequest;
use contract::types::ConversationSummary;
use contract::{Error, Result};
use inference::worker;
use io::{Clock, Io};
use net::ConnectionGate;
use platform::DataDirs;
use session::{ConversationRow, Session};

use crate::environment::Environment;
use crate::events::Events;
use crate::network::callers::Caller;
use crate::network::endpoints::Endpoints;
use crate::settings::Settings;
use crate::store::Store;
use crate::turns::guide_responder::GuideResponder;
use pending_replies::Replies;
use records::conversations;

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
    /// On whose behalf the application itself goes on, such as after tool calls.
    pub caller: Arc<Caller>,
}

/// A conversation as edges see it, with the turn that is answering it.
pub(crate) fn summary(session: &Session, row: ConversationRow) -> Result<ConversationSummary> {
    let active = session.active_turn(&row.id)?;
    Ok(conversations::summary(row, active))
}

/// The backends that answer: the local worker, remote endpoints and the user guide.
#[derive(Clone)]
pub(crate) struct Backends {
    pub worker: worker::Requests,
    pub endpoints: Arc<Endpoints>,
    pub replies: Arc<Replies>,
    pub guide: Arc<GuideResponder>,
}

impl Backends {
    /// Sends a request to the backend that has its model.
    pub fn ask(&self, mut request: WorkerRequest) -> Result<()> {
        prompt::images::apply_detail(&mut request);
        if request.is_remote() {
            return self.endpoints.remote().ask(request);
        }
        if let WorkerRequest::Cancel { turn } = &request {
            self.endpoints.remote().cancel(turn);
        }
        self.worker.send(request).map_err(|_| Error::bug("the worker has ended"))
    }
}
