//! Chat completions that were stored on request: list, read, change their metadata, delete.

use app::{ApiObject, ApiObjectKind, App};
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::answer_values::Identity;
use super::chat::{StoredFields, metadata};
use super::fields::{Fields, Result, object};
use super::pages::{ListOrder, ListQuery, page};
use super::{answered, blocking, no_such, now_ms, ok};
use crate::RouteState;
use crate::fault::OpenAiFault;
use crate::guard::CallerState;
use crate::owner::ObjectOwner;
use crate::url_parts::{Path, Query};

const KIND: ApiObjectKind = ApiObjectKind::ChatCompletion;

/// What storing an answer needs besides the answer.
pub struct StoreJob {
    pub owner: ObjectOwner,
    pub fields: StoredFields,
    pub identity: Identity,
}

impl StoreJob {
    /// Stores the completion with the messages it answers.
    pub fn run(self, app: &App, mut completion: Value) -> contract::Result<()> {
        completion["metadata"] = self.fields.metadata;
        let body = json!({ "completion": completion, "messages": self.fields.messages });
        app.put_api_objects(vec![ApiObject {
            id: self.identity.id,
            kind: KIND,
            owner: self.owner.0.to_string(),
            parent: None,
            body,
            created_ms: now_ms(),
        }])
    }
}

async fn stored(shared: &RouteState, owner: &ObjectOwner, id: &str) -> Result<ApiObject> {
    let (app, owner, wanted) = (shared.app.clone(), owner.0.clone(), id.to_owned());
    let found = blocking(move || app.api_object(KIND, &owner, &wanted)).await?;
    found.ok_or_else(|| no_such("stored chat completion", id))
}

/// Handles `GET /v1/chat/completions`.
pub async fn list(
    CallerState(shared): CallerState,
    owner: ObjectOwner,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    listed(shared, owner, &pairs).await.unwrap_or_else(IntoResponse::into_response)
}

async fn listed(shared: RouteState, owner: ObjectOwner, pairs: &[(String, String)]) -> Result<Response> {
    let query = ListQuery::parse(pairs)?;
    let all = blocking(move || shared.app.api_objects(KIND, &owner.0, None)).await?;
    let completions = all.into_iter().map(|mut object| object.body["completion"].take());
    let wanted = completions.filter(|completion| is_wanted(completion, pairs)).collect();
    Ok(ok(&page(wanted, &query, ListOrder::Asc)))
}

/// Whether a completion has the `model` and each `metadata[KEY]` of a query.
fn is_wanted(completion: &Value, pairs: &[(String, String)]) -> bool {
    pairs.iter().all(|(name, value)| {
        let key = name.strip_prefix("metadata[").and_then(|name| name.strip_suffix(']'));
        match (key, name.as_str()) {
            (Some(key), _) => completion["metadata"][key] == **value,
            (None, "model") => completion["model"] == **value,
            (None, _) => true,
        }
    })
}

/// Handles `GET /v1/chat/completions/{id}`.
pub async fn one(CallerState(shared): CallerState, owner: ObjectOwner, Path(id): Path<String>) -> Response {
    match stored(&shared, &owner, &id).await {
        Ok(object) => ok(&object.body["completion"]),
        Err(fault) => fault.into_response(),
    }
}

/// Handles `POST /v1/chat/completions/{id}`: replaces the metadata.
pub async fn update(
    CallerState(shared): CallerState,
    owner: ObjectOwner,
    Path(id): Path<String>,
    body: Body,
) -> Response {
    answered(body, |body| async move {
        let metadata = metadata(Fields(&object(&body)?))?;
        let mut object = stored(&shared, &owner, &id).await?;
        object.body["completion"]["metadata"] = metadata;
        let completion = object.body["completion"].clone();
        blocking(move || shared.app.put_api_objects(vec![object])).await?;
        Ok(ok(&completion))
    })
    .await
}

/// Handles `DELETE /v1/chat/completions/{id}`.
pub async fn delete(
    CallerState(shared): CallerState,
    owner: ObjectOwner,
    Path(id): Path<String>,
) -> Response {
    let wanted = id.clone();
    match blocking(move || shared.app.remove_api_object(KIND, &owner.0, &wanted)).await {
        Ok(true) => ok(&json!({ "id": id, "object": "chat.completion.deleted", "deleted": true })),
        Ok(false) => no_such("stored chat completion", &id).into_response(),
        Err(fault) => fault.into_response(),
    }
}

/// Handles `GET /v1/chat/completions/{id}/messages`.
pub async fn messages(
    CallerState(shared): CallerState,
    owner: ObjectOwner,
    Path(id): Path<String>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    let listed = async {
        let query = ListQuery::parse(&pairs)?;
        let object = stored(&shared, &owner, &id).await?;
        let messages = object.body["messages"].as_array().cloned().unwrap_or_default();
        let with_id = |(index, message): (usize, Value)| stored_message(&id, index, message);
        let all = messages.into_iter().enumerate().map(with_id).collect();
        Ok(ok(&page(all, &query, ListOrder::Asc)))
    };
    listed.await.unwrap_or_else(|fault: OpenAiFault| fault.into_response())
}

/// A message as stored ones are written: with an id, its text, and its parts where it has some.
fn stored_message(id: &str, index: usize, mut message: Value) -> Value {
    message["id"] = json!(format!("{id}-{index}"));
    if message["content"].is_array() {
        let parts = message["content"].take();
        let text = |part: &Value| part["text"].as_str().map(str::to_owned);
        let texts: String = parts.as_array().into_iter().flatten().filter_map(text).collect();
        message["content"] = json!(texts);
        message["content_parts"] = parts;
    }
    if message.get("refusal").is_none() {
        message["refusal"] = Value::Null;
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_choose_by_model_and_metadata() {
        let completion = json!({ "model": "m", "metadata": { "foo": "a b" } });
        for (name, value, expected) in [
            ("model", "m", true),
            ("model", "n", false),
            ("metadata[foo]", "a b", true),
            ("metadata[foo]", "c", false),
            ("metadata[bar]", "a b", false),
            ("limit", "3", true),
        ] {
            assert_eq!(is_wanted(&completion, &[(name.into(), value.into())]), expected, "{name}={value}");
        }
    }

    #[test]
    fn messages_with_parts_have_text_too() {
        let parts = json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }]);
        let message = stored_message("x", 1, json!({ "role": "user", "content": parts }));
        assert_eq!(
            (&message["content"], &message["content_parts"], &message["id"]),
            (&json!("ab"), &parts, &json!("x-1"))
        );
    }
}
