//! `/v1/batches`: the requests of a stored file, answered while no client waits.
//!
//! A result is on disk before it counts. A batch that the server's end interrupted goes on when it is next asked for.

pub mod input;
mod runner;
mod values;

use app::{ApiObject, ApiObjectKind};
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::chat::metadata;
use super::fields::{Fields, Result, object};
use super::files::expiry;
use super::pages::{ListOrder, ListQuery, page};
use super::{answered, blocking, new_id, no_such, now_ms, ok};
use crate::RouteState;
use crate::fault::OpenAiFault;
use crate::guard::CallerState;
use crate::owner::ObjectOwner;
use crate::url_parts::{Path, Query};
use crate::whole_number;
use input::check_endpoint;
use input::line_faults;
pub use runner::Batches;
use values::{BatchStatus, batch_value};

const KIND: ApiObjectKind = ApiObjectKind::Batch;

/// Handles `POST /v1/batches`.
pub async fn create(CallerState(shared): CallerState, owner: ObjectOwner, body: Body) -> Response {
    answered(body, |body| async move {
        let request = BatchRequest::parse(&body)?;
        let (app, name) = (shared.app.clone(), owner.0.clone());
        let batch = blocking(move || request.checked(&app, &name)).await??;
        let (app, stored) = (shared.app.clone(), batch.clone());
        blocking(move || app.put_api_objects(vec![stored])).await?;
        shared.batches.ensure_runs(&shared, &batch);
        Ok(ok(&batch_value(&batch, shared.batches.counts(&batch.id))))
    })
    .await
}

/// What a client asks for.
struct BatchRequest {
    input_file: String,
    endpoint: String,
    metadata: Value,
    output_expires_s: Option<i64>,
}

impl BatchRequest {
    fn parse(body: &[u8]) -> Result<Self> {
        let object = object(body)?;
        let fields = Fields(&object);
        let needed = |name: &'static str| OpenAiFault::invalid(name, format!("`{name}` is needed."));
        let input_file = fields.text("input_file_id")?.ok_or_else(|| needed("input_file_id"))?;
        let endpoint = check_endpoint(fields.text("endpoint")?.ok_or_else(|| needed("endpoint"))?)?;
        match fields.text("completion_window")? {
            Some("24h") => {}
            _ => return Err(OpenAiFault::invalid("completion_window", "`completion_window` must be 24h.")),
        }
        let output_expires_s = match fields.object("output_expires_after")? {
            None => None,
            Some(after) => {
                Some(expiry(after.text("anchor")?, after.get("seconds").and_then(whole_number::signed))?)
            }
        };
        Ok(Self { input_file: input_file.into(), endpoint, metadata: metadata(fields)?, output_expires_s })
    }

    /// The batch, once its file has been looked at. One with a line that can't be answered has failed.
    fn checked(self, app: &app::App, owner: &str) -> contract::Result<Result<ApiObject>> {
        let (file, content) = app.api_file_content(owner, &self.input_file)?;
        if file.record.purpose != "batch" {
            let message = "`input_file_id` must name a file that was uploaded with the purpose batch.";
            return Ok(Err(OpenAiFault::invalid("input_file_id", message)));
        }
        let now_ms = now_ms();
        let (n_lines, faults) = line_faults(&content, &self.endpoint);
        let status = if faults.is_empty() { BatchStatus::InProgress } else { BatchStatus::Failed };
        let mut body = json!({
            "endpoint": self.endpoint, "input_file_id": self.input_file, "metadata": self.metadata,
            "output_expires_s": self.output_expires_s, "status": status.word(), "total": n_lines,
        });
        body[status.time_name()] = json!(now_ms);
        if !faults.is_empty() {
            body["errors"] = json!({ "object": "list", "data": faults });
        }
        let (id, owner) = (new_id("batch"), owner.to_owned());
        Ok(Ok(ApiObject { id, kind: KIND, owner, parent: None, body, created_ms: now_ms }))
    }
}

/// A stored batch. One that was interrupted goes on.
async fn stored(shared: &RouteState, owner: &ObjectOwner, id: &str) -> Result<ApiObject> {
    let (app, name, wanted) = (shared.app.clone(), owner.0.clone(), id.to_owned());
    let found = blocking(move || app.api_object(KIND, &name, &wanted)).await?;
    let batch = found.ok_or_else(|| no_such("batch", id))?;
    shared.batches.ensure_runs(shared, &batch);
    Ok(batch)
}

/// Handles `GET /v1/batches`: the newest first.
pub async fn list(
    CallerState(shared): CallerState,
    owner: ObjectOwner,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    let listed = async {
        let query = ListQuery::parse(&pairs)?;
        let app = shared.app.clone();
        let all = blocking(move || app.api_objects(KIND, &owner.0, None)).await?;
        let value = |batch: &ApiObject| batch_value(batch, shared.batches.counts(&batch.id));
        Ok(ok(&page(all.iter().map(value).collect(), &query, ListOrder::Desc)))
    };
    listed.await.unwrap_or_else(|fault: OpenAiFault| fault.into_response())
}

/// Handles `GET /v1/batches/{id}`.
pub async fn one(CallerState(shared): CallerState, owner: ObjectOwner, Path(id): Path<String>) -> Response {
    match stored(&shared, &owner, &id).await {
        Ok(batch) => ok(&batch_value(&batch, shared.batches.counts(&id))),
        Err(fault) => fault.into_response(),
    }
}

/// Handles `POST /v1/batches/{id}/cancel`: what runs comes to its end, the rest is not begun.
pub async fn cancel(
    CallerState(shared): CallerState,
    owner: ObjectOwner,
    Path(id): Path<String>,
) -> Response {
    let cancelled = async {
        let mut batch = stored(&shared, &owner, &id).await?;
        if BatchStatus::of(&batch) == BatchStatus::InProgress {
            batch.body["status"] = json!(BatchStatus::Cancelling.word());
            batch.body[BatchStatus::Cancelling.time_name()] = json!(now_ms());
            let (app, changed) = (shared.app.clone(), batch.clone());
            blocking(move || app.put_api_objects(vec![changed])).await?;
            shared.batches.cancel(&id);
        }
        Ok(ok(&batch_value(&batch, shared.batches.counts(&id))))
    };
    cancelled.await.unwrap_or_else(|fault: OpenAiFault| fault.into_response())
}
