//! Answers the requests of batches, a few at a time.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use app::{ApiObject, App};
use contract::Result;
use io::{Clock, RealClock};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::values::{BatchState, requests};
use super::{KIND, RESULT};
use crate::RouteState;
use crate::anthropic::fault::AnthropicFault;
use crate::anthropic::message;
use crate::batch_pace::{AT_ONCE, BatchTicket};
use crate::openai::new_id;
use crate::running_turn::blocking;

/// The batches that run.
#[derive(Default)]
pub struct MessageBatches {
    /// By id, whether they are cancelled.
    running: Mutex<HashMap<String, Arc<AtomicBool>>>,
}

impl MessageBatches {
    fn running(&self) -> MutexGuard<'_, HashMap<String, Arc<AtomicBool>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers what is left of a batch, unless it has ended or runs already.
    pub fn ensure_runs(self: &Arc<Self>, shared: &RouteState, batch: &ApiObject) {
        let state = BatchState::of(batch);
        if state == BatchState::Ended {
            return;
        }
        let mut running = self.running();
        if running.contains_key(&batch.id) {
            return;
        }
        let is_cancelled = Arc::new(AtomicBool::new(state == BatchState::Canceling));
        running.insert(batch.id.clone(), Arc::clone(&is_cancelled));
        drop(running);
        let (batches, shared, batch) = (Arc::clone(self), shared.clone(), batch.clone());
        tokio::spawn(async move {
            let id = batch.id.clone();
            if let Err(error) = run(&shared, batch, &is_cancelled).await {
                tracing::warn!("a message batch was interrupted: {error}");
            }
            batches.running().remove(&id);
        });
    }

    /// Begins no more requests of a batch.
    pub fn cancel(&self, id: &str) {
        if let Some(is_cancelled) = self.running().get(id) {
            is_cancelled.store(true, Ordering::Relaxed);
        }
    }
}

async fn run(shared: &RouteState, batch: ApiObject, is_cancelled: &AtomicBool) -> Result<()> {
    let app = &shared.app;
    let (store, owner, id) = (app.clone(), batch.owner.clone(), batch.id.clone());
    let earlier = blocking(move || store.api_objects(RESULT, &owner, Some(&id))).await?;
    let names: HashSet<&str> = earlier.iter().filter_map(|it| it.body["custom_id"].as_str()).collect();
    let left =
        requests(&batch).iter().filter(|it| !it["custom_id"].as_str().is_some_and(|it| names.contains(it)));
    let mut tasks = JoinSet::new();
    for request in left {
        while tasks.len() >= AT_ONCE {
            save_next(app, &batch, &mut tasks).await?;
        }
        let name = request["custom_id"].clone();
        match is_cancelled.load(Ordering::Relaxed) {
            true => save(app, &batch, name, json!({ "type": "canceled" })).await?,
            false => {
                let ticket = shared.pace.begin(app).await;
                tasks.spawn(result(app.clone(), name, request["params"].to_string(), ticket));
            }
        }
    }
    while !tasks.is_empty() {
        save_next(app, &batch, &mut tasks).await?;
    }
    end(app, batch).await
}

/// Waits for a result and stores it.
async fn save_next(app: &App, batch: &ApiObject, tasks: &mut JoinSet<(Value, Value)>) -> Result<()> {
    match tasks.join_next().await {
        Some(Ok((name, result))) => save(app, batch, name, result).await,
        Some(Err(panic)) => Err(contract::Error::bug(panic)),
        None => Ok(()),
    }
}

/// The name of a request, and what became of it.
async fn result(app: App, name: Value, params: String, ticket: BatchTicket) -> (Value, Value) {
    let result = match message(app, params.as_bytes()).await {
        Ok(message) => json!({ "type": "succeeded", "message": message }),
        Err(error) => json!({ "type": "errored", "error": AnthropicFault::from(error).body() }),
    };
    drop(ticket);
    (name, result)
}

async fn save(app: &App, batch: &ApiObject, name: Value, result: Value) -> Result<()> {
    let object = ApiObject {
        id: new_id("msgresult"),
        kind: RESULT,
        owner: batch.owner.clone(),
        parent: Some(batch.id.clone()),
        body: json!({ "custom_id": name, "result": result }),
        created_ms: RealClock::new().now_utc_ms(),
    };
    let app = app.clone();
    blocking(move || app.put_api_objects(vec![object])).await
}

/// Marks a batch as ended. It is read again: it may have been cancelled meanwhile.
async fn end(app: &App, batch: ApiObject) -> Result<()> {
    let app = app.clone();
    blocking(move || {
        let mut batch = app.api_object(KIND, &batch.owner, &batch.id)?.unwrap_or(batch);
        batch.body["state"] = json!(BatchState::Ended.word());
        batch.body["ended_ms"] = json!(RealClock::new().now_utc_ms());
        app.put_api_objects(vec![batch])
    })
    .await
}
