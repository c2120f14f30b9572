//! `GET /v1/models` and `/v1/models/{id}`: the models of this machine.

use app::ServedModel;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::{answering_model, blocking, ok};
use crate::guard::CallerState;
use crate::model_time::modified_ms;
use crate::url_parts::Path;

/// Handles `GET /v1/models`.
pub async fn models(CallerState(shared): CallerState) -> Response {
    match blocking(move || shared.app.models_served()).await {
        Ok(entries) => {
            let data: Vec<Value> = entries.iter().map(model_value).collect();
            ok(&json!({ "object": "list", "data": data }))
        }
        Err(fault) => fault.into_response(),
    }
}

/// Handles `GET /v1/models/{id}`.
pub async fn model(CallerState(shared): CallerState, Path(id): Path<String>) -> Response {
    match answering_model(shared.app, Some(id)).await {
        Ok(entry) => ok(&model_value(&entry)),
        Err(fault) => fault.into_response(),
    }
}

/// Handles `DELETE /v1/models/{id}`: the model leaves the library; its own files can be had back for a week.
pub async fn delete_model(CallerState(shared): CallerState, Path(id): Path<String>) -> Response {
    let name = id.clone();
    // By its own name alone: no other model stands in for one that is to be deleted.
    let removed = blocking(move || {
        let id = shared.app.model_named(&name)?.id;
        shared.app.model_remove(&id)?;
        Ok(id)
    });
    match removed.await {
        Ok(id) => ok(&json!({ "id": id, "object": "model", "deleted": true })),
        Err(fault) => fault.into_response(),
    }
}

fn model_value(ServedModel { id, context, path }: &ServedModel) -> Value {
    let created = modified_ms(path.as_deref()) / 1000;
    let mut value = json!({ "id": id, "object": "model", "created": created, "owned_by": "inglenook" });
    if let Some(context) = context {
        value["max_model_len"] = json!(context);
    }
    value
}
