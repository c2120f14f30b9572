//! One client on one connection: messages in, messages out, requests beside each other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::mpsc::{Receiver, Sender};
use tokio::task::{AbortHandle, JoinSet};

use crate::client_state::ClientState;
use crate::dispatcher::RequestDispatcher;
use crate::lifecycle;
use crate::revision::Revision;
use crate::rpc::{INTERNAL_ERROR, RpcError, RpcMessage, RpcRequest, parse, response};
use crate::subscription::LISTEN;

/// Requests of one client that are answered at the same time.
const MAX_RUNNING: usize = 64;

/// Time that running requests get after a client has closed its end: a pipe of a script ends before its answers.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Messages that wait to be written or answered.
pub const MAX_WAITING: usize = 64;

/// Requests in progress, by id. Cancelled when dropped.
#[derive(Default)]
pub struct RunningRequests(Mutex<HashMap<String, AbortHandle>>);

impl RunningRequests {
    fn table(&self) -> MutexGuard<'_, HashMap<String, AbortHandle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a request. Errors: too many run.
    pub fn add(&self, id: &Value, start: impl FnOnce() -> AbortHandle) -> Result<(), RpcError> {
        let mut table = self.table();
        table.retain(|_, request| !request.is_finished());
        if table.len() >= MAX_RUNNING {
            let message = format!("{MAX_RUNNING} requests are running. Wait for an answer.");
            return Err(RpcError::new(INTERNAL_ERROR, message));
        }
        table.insert(id.to_string(), start());
        Ok(())
    }

    /// Cancels the request that a notification names. One that has ended is left alone.
    pub fn cancel(&self, params: &Map<String, Value>) {
        let id = params.get("requestId").map(Value::to_string).unwrap_or_default();
        if let Some(request) = self.table().remove(&id) {
            request.abort();
        }
    }

    /// Cancels every request.
    pub fn cancel_all(&self) {
        self.table().values().for_each(AbortHandle::abort);
    }
}

impl Drop for RunningRequests {
    fn drop(&mut self) {
        self.cancel_all();
    }
}

/// Serves a client until `inbox` ends. Every answer and notification goes to `outbox`.
pub async fn serve(dispatcher: RequestDispatcher, mut inbox: Receiver<Vec<u8>>, outbox: Sender<Value>) {
    let mut handshake = None;
    let running = Arc::<RunningRequests>::default();
    let client = Arc::<ClientState>::default();
    let mut pushes = JoinSet::new();
    let mut is_watching = false;
    let mut tasks = JoinSet::new();
    while let Some(bytes) = inbox.recv().await {
        while tasks.try_join_next().is_some() || pushes.try_join_next().is_some() {}
        let refusal = match parse(&bytes) {
            Ok(RpcMessage::Request(request)) if request.method == "initialize" => {
                let answered = lifecycle::initialize(&request).map(|(revision, result)| {
                    handshake = Some(revision);
                    result
                });
                Some(response(&request.id, answered))
            }
            Ok(RpcMessage::Request(request)) => {
                if request.method == "resources/subscribe" && !is_watching {
                    is_watching = true;
                    pushes.spawn(push_changes(dispatcher.clone(), Arc::clone(&client), outbox.clone()));
                }
                let at = (&outbox, &client);
                // A subscription ends with its client; it is no answer that others wait for.
                let tasks = if request.method == LISTEN { &mut pushes } else { &mut tasks };
                let start = start(&dispatcher, request.clone(), handshake, at, &running, tasks);
                start.err().map(|error| error.message(&request.id))
            }
            Ok(RpcMessage::Notification { method, params }) => {
                if method == "notifications/cancelled" {
                    running.cancel(&params);
                }
                None
            }
            Ok(RpcMessage::Response) => None,
            Err(malformed) => Some(malformed.error.message(&malformed.id)),
        };
        if let Some(message) = refusal
            && outbox.send(message).await.is_err()
        {
            return;
        }
    }
    let drained = tokio::time::timeout(DRAIN_TIMEOUT, async { while tasks.join_next().await.is_some() {} });
    if drained.await.is_err() {
        tracing::info!("the client left before its requests were answered");
    }
}

/// Tells the client of changes until it leaves.
async fn push_changes(dispatcher: RequestDispatcher, client: Arc<ClientState>, outbox: Sender<Value>) {
    dispatcher.push_changes(&client, &outbox).await;
}

/// Starts a request beside the others.
fn start(
    dispatcher: &RequestDispatcher,
    request: RpcRequest,
    handshake: Option<Revision>,
    (outbox, client): (&Sender<Value>, &Arc<ClientState>),
    running: &RunningRequests,
    tasks: &mut JoinSet<()>,
) -> Result<(), RpcError> {
    // A client may ask whether the server lives before it shakes hands.
    let handshake = handshake.or((request.method == "ping").then_some(Revision::NEWEST_WITH_HANDSHAKE));
    let revision = lifecycle::revision_of(&request, handshake)?;
    let (dispatcher, outbox, id) = (dispatcher.clone(), outbox.clone(), request.id.clone());
    let client = Arc::clone(client);
    running.add(&id, || {
        tasks.spawn(async move {
            let outcome = dispatcher.answer(&request, (revision, &client), &outbox).await;
            // The transport notices that a client left.
            let _ = outbox.send(response(&request.id, outcome)).await;
        })
    })
}
