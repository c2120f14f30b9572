//! Answers the requests of batches, a few at a time.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api_store::FileRecord;
use app::{ApiFile, ApiObject, App};
use axum::Router;
use axum::body::Body;
use axum::http::{Request, header};
use contract::{Error, Result};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tower_service::Service;

use super::KIND;
use super::input::{NamedRequest, requests};
use super::values::{BatchCounts, BatchStatus, BatchUsage};
use crate::RouteState;
use crate::batch_pace::AT_ONCE;
use crate::body::read_any;
use crate::openai::{new_id, now_ms};
use crate::running_turn::blocking;

/// A batch that runs.
#[derive(Debug, Default)]
struct RunningBatch {
    is_cancelled: AtomicBool,
    n_completed: AtomicU64,
    n_failed: AtomicU64,
}

impl RunningBatch {
    fn counts(&self) -> BatchCounts {
        let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
        BatchCounts { n_completed: count(&self.n_completed), n_failed: count(&self.n_failed) }
    }

    fn count(&self, end: ResultEnd) {
        let number = match end {
            ResultEnd::Output => &self.n_completed,
            ResultEnd::Error => &self.n_failed,
        };
        number.fetch_add(1, Ordering::Relaxed);
    }
}

/// Which of a batch's files a result goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResultEnd {
    Output,
    Error,
}

impl ResultEnd {
    const ALL: [Self; 2] = [Self::Output, Self::Error];

    /// Name of the growing content.
    fn content_id(self, batch: &str) -> String {
        match self {
            Self::Output => format!("{batch}.output"),
            Self::Error => format!("{batch}.error"),
        }
    }

    /// The field with the id of the file.
    fn file_field(self) -> &'static str {
        match self {
            Self::Output => "output_file_id",
            Self::Error => "error_file_id",
        }
    }
}

/// The batches that run, by id.
#[derive(Default)]
pub struct Batches {
    running: Mutex<HashMap<String, Arc<RunningBatch>>>,
}

impl Batches {
    fn running(&self) -> MutexGuard<'_, HashMap<String, Arc<RunningBatch>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counts of a batch that runs.
    pub fn counts(&self, id: &str) -> Option<BatchCounts> {
        self.running().get(id).map(|batch| batch.counts())
    }

    /// Begins no more requests of a batch.
    pub fn cancel(&self, id: &str) {
        if let Some(batch) = self.running().get(id) {
            batch.is_cancelled.store(true, Ordering::Relaxed);
        }
    }

    /// Answers what is left of a batch, unless it has ended or runs already.
    pub fn ensure_runs(self: &Arc<Self>, shared: &RouteState, batch: &ApiObject) {
        let status = BatchStatus::of(batch);
        let mut running = self.running();
        if !status.is_running() || running.contains_key(&batch.id) {
            return;
        }
        let state = Arc::new(RunningBatch::default());
        state.is_cancelled.store(status == BatchStatus::Cancelling, Ordering::Relaxed);
        running.insert(batch.id.clone(), Arc::clone(&state));
        drop(running);
        let (batches, shared, batch) = (Arc::clone(self), shared.clone(), batch.clone());
        tokio::spawn(async move {
            let id = batch.id.clone();
            let outcome = run(&shared, &batch, &state).await;
            if let Err(error) = end(&shared.app, batch, &state, outcome).await {
                tracing::warn!("the end of a batch could not be stored: {error}");
            }
            batches.running().remove(&id);
        });
    }
}

/// Answers every request that has no result yet.
async fn run(shared: &RouteState, batch: &ApiObject, state: &RunningBatch) -> Result<()> {
    let left = remaining(&shared.app, batch, state).await?;
    let routes = crate::answer_routes(shared.clone());
    let mut tasks = JoinSet::new();
    for request in left {
        while tasks.len() >= AT_ONCE {
            save_next(&shared.app, batch, state, &mut tasks).await?;
        }
        let ticket = shared.pace.begin(&shared.app).await;
        if state.is_cancelled.load(Ordering::Relaxed) {
            break;
        }
        let (routes, app) = (routes.clone(), shared.app.clone());
        tasks.spawn(async move {
            let result = answer(routes, &app, &request).await;
            drop(ticket);
            result
        });
    }
    while !tasks.is_empty() {
        save_next(&shared.app, batch, state, &mut tasks).await?;
    }
    Ok(())
}

/// The requests without a result. Counts the others.
async fn remaining(app: &App, batch: &ApiObject, state: &RunningBatch) -> Result<Vec<NamedRequest>> {
    let (app, batch) = (app.clone(), batch.clone());
    let text = |name: &str| batch.body[name].as_str().unwrap_or_default().to_owned();
    let (input, endpoint) = (text("input_file_id"), text("endpoint"));
    let (all, names) = blocking(move || {
        let content = app.api_file_content(&batch.owner, &input)?.1;
        let mut names = Vec::new();
        for end in ResultEnd::ALL {
            let earlier = whole_results(&app, &end.content_id(&batch.id))?;
            names.extend(earlier.iter().filter_map(|it| Some((it["custom_id"].as_str()?.to_owned(), end))));
        }
        Ok((requests(&content, &endpoint), names))
    })
    .await?;
    names.iter().for_each(|(_, end)| state.count(*end));
    let names: HashSet<&str> = names.iter().map(|(name, _)| name.as_str()).collect();
    Ok(all.into_iter().filter(|request| !names.contains(request.name.as_str())).collect())
}

/// The results of an earlier run. A line that was not written to its end is dropped.
fn whole_results(app: &App, content_id: &str) -> Result<Vec<Value>> {
    let contents = app.file_contents();
    let Some(bytes) = contents.get(content_id)? else { return Ok(Vec::new()) };
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    if end != bytes.len() {
        contents.put(content_id, &bytes[..end])?;
    }
    Ok(bytes[..end]
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect())
}

/// Waits for a result and stores it.
async fn save_next(
    app: &App,
    batch: &ApiObject,
    state: &RunningBatch,
    tasks: &mut JoinSet<(ResultEnd, Value)>,
) -> Result<()> {
    let (end, result) = match tasks.join_next().await {
        Some(Ok(result)) => result,
        Some(Err(panic)) => return Err(Error::bug(panic)),
        None => return Ok(()),
    };
    let (app, id) = (app.clone(), end.content_id(&batch.id));
    blocking(move || {
        let line = format!("{result}\n");
        app.make_room_for_file(app.file_contents().n_bytes(&id)? + line.len() as u64)?;
        app.file_contents().append(&id, line.as_bytes())
    })
    .await?;
    state.count(end);
    Ok(())
}

/// Sends a request through the routes that clients use, as the client of the batch.
async fn answer(mut routes: Router, app: &App, request: &NamedRequest) -> (ResultEnd, Value) {
    let sent = Request::post(&request.request.path)
        .header(header::CONTENT_TYPE, "application/json")
        .extension(app.caller().clone())
        .body(Body::from(request.request.body.to_string()));
    let (status, body) = match sent {
        Ok(sent) => {
            let Ok(response) = routes.call(sent).await;
            let status = response.status().as_u16();
            let bytes = read_any(response.into_body()).await.unwrap_or_default();
            (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
        }
        Err(error) => (400, json!({ "error": { "message": error.to_string() } })),
    };
    let end = if (200..300).contains(&status) { ResultEnd::Output } else { ResultEnd::Error };
    let result = json!({
        "id": new_id("batch_req"), "custom_id": request.name,
        "response": { "status_code": status, "request_id": body["id"], "body": body }, "error": null,
    });
    (end, result)
}

/// Marks a batch as ended; its results become files. It is read again: it may have been cancelled meanwhile.
async fn end(app: &App, batch: ApiObject, state: &RunningBatch, outcome: Result<()>) -> Result<()> {
    let (app, counts) = (app.clone(), state.counts());
    blocking(move || {
        let mut batch = app.api_object(KIND, &batch.owner, &batch.id)?.unwrap_or(batch);
        let status = match (&outcome, BatchStatus::of(&batch)) {
            (Err(_), _) => BatchStatus::Failed,
            (Ok(()), BatchStatus::Cancelling) => BatchStatus::Cancelled,
            (Ok(()), _) => BatchStatus::Completed,
        };
        if let Err(error) = outcome {
            let message = format!("{} {}", error.message(), error.remedy());
            let fault = json!({ "code": error.code(), "line": null, "message": message, "param": null });
            batch.body["errors"] = json!({ "object": "list", "data": [fault] });
        }
        batch.body["usage"] = usage(&app, &batch)?.value();
        for end in ResultEnd::ALL {
            if let Some(file) = results_file(&app, &batch, end)? {
                batch.body[end.file_field()] = json!(file);
            }
        }
        batch.body["status"] = json!(status.word());
        batch.body["completed"] = json!(counts.n_completed);
        batch.body["failed"] = json!(counts.n_failed);
        let now_ms = now_ms();
        batch.body["finalizing_at"] = json!(now_ms);
        batch.body[status.time_name()] = json!(now_ms);
        app.put_api_objects(vec![batch])
    })
    .await
}

/// The tokens of the answers.
fn usage(app: &App, batch: &ApiObject) -> Result<BatchUsage> {
    let mut usage = BatchUsage::default();
    for result in whole_results(app, &ResultEnd::Output.content_id(&batch.id))? {
        usage.add(&result["response"]["body"]["usage"]);
    }
    Ok(usage)
}

/// Lists the results as a file; its id. `None`: there are none.
fn results_file(app: &App, batch: &ApiObject, end: ResultEnd) -> Result<Option<String>> {
    let (contents, growing, created_ms) = (app.file_contents(), end.content_id(&batch.id), now_ms());
    let id = new_id("file");
    let n_bytes = contents.n_bytes(&growing)?;
    if !contents.rename(&growing, &id)? {
        return Ok(None);
    }
    let record = FileRecord {
        filename: format!("{growing}.jsonl"),
        purpose: "batch_output".into(),
        media_type: "application/jsonl".into(),
        n_bytes,
        expires_ms: batch.body["output_expires_s"].as_i64().map(|seconds| created_ms + 1000 * seconds),
    };
    app.list_api_file(&ApiFile { id: id.clone(), owner: batch.owner.clone(), record, created_ms })?;
    Ok(Some(id))
}
