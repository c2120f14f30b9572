//! `/v1/messages/batches`: requests that are answered one after the other while no client waits.
//!
//! A result is stored before it counts. A batch that the server's end interrupted goes on when it is next asked for.

mod runner;
mod values;

use std::collections::{BTreeMap, HashSet};

use app::{ApiObject, ApiObjectKind};
use axum::Router;
use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use contract::{Error, ErrorKind, Result};
use io::{Clock, RealClock};
use serde_json::{Map, Value, json};

use super::fault::AnthropicFault;
use super::models::PageQuery;
use crate::RouteState;
use crate::body::read;
use crate::fault::json_response;
use crate::guard::CallerState;
use crate::openai::new_id;
use crate::owner::ObjectOwner;
use crate::request_fields::{RequestFields, invalid, object};
use crate::running_turn::blocking;
use crate::url_parts::{Path, Query};
pub use runner::MessageBatches;
use values::{BatchState, batch_value};

const KIND: ApiObjectKind = ApiObjectKind::MessageBatch;
const RESULT: ApiObjectKind = ApiObjectKind::MessageBatchResult;

/// Most requests of a batch. More than a computer answers in a day.
const MAX_REQUESTS: usize = 10_000;

/// Most characters of the name of a request, as in Anthropic's API.
const MAX_NAME_CHARS: usize = 64;

pub fn routes() -> Router<RouteState> {
    Router::new()
        .route("/v1/messages/batches", post(create).get(list))
        .route("/v1/messages/batches/{id}", get(one).delete(delete))
        .route("/v1/messages/batches/{id}/cancel", post(cancel))
        .route("/v1/messages/batches/{id}/results", get(results))
}

fn respond(outcome: Result<Value>) -> Response {
    match outcome {
        Ok(value) => json_response(StatusCode::OK, &value),
        Err(error) => AnthropicFault::from(error).into_response(),
    }
}

fn no_such(id: &str) -> Error {
    Error::not_found("batch.unknown", format!("There is no message batch {id}."), "List the batches.")
}

/// Handles `POST /v1/messages/batches`.
async fn create(CallerState(shared): CallerState, owner: ObjectOwner, body: Body) -> Response {
    let body = match read(body).await {
        Ok(body) => body,
        Err(refusal) => return refusal,
    };
    let created = async {
        let requests = requests(&body)?;
        let now_ms = RealClock::new().now_utc_ms();
        let batch = ApiObject {
            id: new_id("msgbatch"),
            kind: KIND,
            owner: owner.0.to_string(),
            parent: None,
            body: json!({ "requests": requests, "state": BatchState::InProgress.word(), "created_ms": now_ms }),
            created_ms: now_ms,
        };
        let (app, stored) = (shared.app.clone(), batch.clone());
        blocking(move || app.put_api_objects(vec![stored])).await?;
        shared.message_batches.ensure_runs(&shared, &batch);
        described(&shared, batch).await
    };
    respond(created.await)
}

/// The requests of a batch. Their names are unique.
pub fn requests(body: &[u8]) -> Result<Vec<Value>> {
    let object = object(body)?;
    let list = RequestFields(&object).list("requests")?.map(Vec::as_slice).unwrap_or_default();
    if list.is_empty() || list.len() > MAX_REQUESTS {
        return Err(invalid(format!("`requests` must be a list of 1 to {MAX_REQUESTS} requests.")));
    }
    let mut names = HashSet::new();
    let request = |(index, value): (usize, &Value)| {
        let (name, params) =
            request_parts(value).map_err(|what| invalid(format!("requests.{index}.{what}")))?;
        if !names.insert(name.to_owned()) {
            return Err(invalid(format!("requests.{index}.custom_id: another request has the name {name}.")));
        }
        Ok(json!({ "custom_id": name, "params": params }))
    };
    list.iter().enumerate().map(request).collect()
}

fn request_parts(value: &Value) -> std::result::Result<(&str, &Map<String, Value>), String> {
    let name = value["custom_id"].as_str().unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > MAX_NAME_CHARS || !name.chars().all(is_plain) {
        return Err(format!(
            "custom_id: 1 to {MAX_NAME_CHARS} letters, digits, hyphens and underscores are needed."
        ));
    }
    match value["params"].as_object() {
        Some(params) => Ok((name, params)),
        None => Err("params: an object is needed.".into()),
    }
}

async fn stored(shared: &RouteState, owner: &ObjectOwner, id: &str) -> Result<ApiObject> {
    let (app, name, wanted) = (shared.app.clone(), owner.0.clone(), id.to_owned());
    let found = blocking(move || app.api_object(KIND, &name, &wanted)).await?;
    let batch = found.ok_or_else(|| no_such(id))?;
    shared.message_batches.ensure_runs(shared, &batch);
    Ok(batch)
}

async fn stored_results(shared: &RouteState, batch: &ApiObject) -> Result<Vec<ApiObject>> {
    let (app, owner, id) = (shared.app.clone(), batch.owner.clone(), batch.id.clone());
    blocking(move || app.api_objects(RESULT, &owner, Some(&id))).await
}

/// A batch as its client sees it.
async fn described(shared: &RouteState, batch: ApiObject) -> Result<Value> {
    let results = stored_results(shared, &batch).await?;
    Ok(batch_value(&batch, &results))
}

/// Handles `GET /v1/messages/batches`: the newest first.
async fn list(
    CallerState(shared): CallerState,
    owner: ObjectOwner,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    let listed = async {
        let page = PageQuery::parse(&query)?;
        let (app, name) = (shared.app.clone(), owner.0.clone());
        let values = blocking(move || {
            let mut batches = app.api_objects(KIND, &name, None)?;
            batches.reverse();
            let value = |batch: &ApiObject| {
                let results = app.api_objects(RESULT, &name, Some(&batch.id))?;
                Ok(batch_value(batch, &results))
            };
            batches.iter().map(value).collect::<Result<Vec<Value>>>()
        });
        Ok(page.of(&values.await?, |batch| batch["id"].as_str().unwrap_or_default(), Value::clone))
    };
    respond(listed.await)
}

/// Handles `GET /v1/messages/batches/{id}`.
async fn one(CallerState(shared): CallerState, owner: ObjectOwner, Path(id): Path<String>) -> Response {
    let read = async { described(&shared, stored(&shared, &owner, &id).await?).await };
    respond(read.await)
}

/// Handles `POST /v1/messages/batches/{id}/cancel`: what runs comes to its end, the rest is not begun.
async fn cancel(CallerState(shared): CallerState, owner: ObjectOwner, Path(id): Path<String>) -> Response {
    let cancelled = async {
        let mut batch = stored(&shared, &owner, &id).await?;
        if BatchState::of(&batch) == BatchState::InProgress {
            batch.body["state"] = json!(BatchState::Canceling.word());
            batch.body["cancel_ms"] = json!(RealClock::new().now_utc_ms());
            let (app, changed) = (shared.app.clone(), batch.clone());
            blocking(move || app.put_api_objects(vec![changed])).await?;
            shared.message_batches.cancel(&id);
        }
        described(&shared, batch).await
    };
    respond(cancelled.await)
}

/// Handles `DELETE /v1/messages/batches/{id}`.
async fn delete(CallerState(shared): CallerState, owner: ObjectOwner, Path(id): Path<String>) -> Response {
    let removed = async {
        let batch = stored(&shared, &owner, &id).await?;
        if BatchState::of(&batch) != BatchState::Ended {
            let (message, remedy) =
                ("The message batch has not ended.", "Cancel it, and delete it when it has ended.");
            return Err(Error::new(ErrorKind::Conflict, "batch.running", message, remedy));
        }
        let (app, name, wanted) = (shared.app.clone(), owner.0.clone(), id.clone());
        match blocking(move || app.remove_api_object(KIND, &name, &wanted)).await? {
            true => Ok(json!({ "id": id, "type": "message_batch_deleted" })),
            false => Err(no_such(&id)),
        }
    };
    respond(removed.await)
}

/// Handles `GET /v1/messages/batches/{id}/results`: a result on each line, as they came.
async fn results(CallerState(shared): CallerState, owner: ObjectOwner, Path(id): Path<String>) -> Response {
    let read = async {
        let batch = stored(&shared, &owner, &id).await?;
        if BatchState::of(&batch) != BatchState::Ended {
            let remedy = "Wait until its `processing_status` is ended.";
            return Err(Error::not_found(
                "batch.no_results",
                "The message batch has no results yet.",
                remedy,
            ));
        }
        stored_results(&shared, &batch).await
    };
    match read.await {
        Ok(results) => {
            let lines: String = results.iter().map(|result| format!("{}\n", result.body)).collect();
            ([(header::CONTENT_TYPE, "application/x-jsonl")], lines).into_response()
        }
        Err(error) => AnthropicFault::from(error).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_names_of_their_own() {
        let parse = |list: Value| requests(json!({ "requests": list }).to_string().as_bytes());
        let request = |name: &str| json!({ "custom_id": name, "params": { "max_tokens": 1 } });
        assert_eq!(parse(json!([request("a"), request("b-1_C")])).unwrap().len(), 2);
        for (list, part) in [
            (json!([]), "requests"),
            (json!([request("a"), request("a")]), "requests.1.custom_id"),
            (json!([request("")]), "requests.0.custom_id"),
            (json!([request("a b")]), "requests.0.custom_id"),
            (json!([request(&"a".repeat(65))]), "requests.0.custom_id"),
            (json!([{ "custom_id": "a" }]), "requests.0.params"),
            (json!(["a"]), "requests.0.custom_id"),
        ] {
            let error = parse(list.clone()).unwrap_err();
            assert!(error.message().contains(part), "{list}: {error}");
        }
    }
}
