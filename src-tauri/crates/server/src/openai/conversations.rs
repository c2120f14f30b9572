//! `/v1/conversations`: stored lists of items that responses go on from and add to.

use app::{ApiObject, ApiObjectKind};
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::chat::metadata;
use super::fields::{Fields, Result, object};
use super::pages::{ListOrder, ListQuery, page};
use super::responses::items;
use super::{answered, blocking, new_id, no_such, now_ms, now_s, ok};
use crate::RouteState;
use crate::fault::OpenAiFault;
use crate::guard::CallerState;
use crate::owner::ObjectOwner;
use crate::url_parts::{Path, Query};

const KIND: ApiObjectKind = ApiObjectKind::Conversation;
const ITEM: ApiObjectKind = ApiObjectKind::ConversationItem;

/// Largest number of items in one request, as in OpenAI's API.
const MAX_ITEMS: usize = 20;

fn stored_item(owner: &ObjectOwner, conversation: &str, item: Value) -> ApiObject {
    ApiObject {
        id: item["id"].as_str().unwrap_or_default().into(),
        kind: ITEM,
        owner: owner.0.to_string(),
        parent: Some(conversation.into()),
        body: item,
        created_ms: now_ms(),
    }
}

/// New items of a request. References have nothing to refer to here.
fn new_items(fields: Fields<'_>) -> Result<Vec<Value>> {
    let list = items::read(fields.list("items")?.map(|list| Value::Array(list.clone())).as_ref(), "items")?;
    if list.len() > MAX_ITEMS {
        return Err(OpenAiFault::invalid("items", format!("`items` has more than {MAX_ITEMS} items.")));
    }
    if list.iter().any(|item| item["type"] == "item_reference") {
        return Err(OpenAiFault::invalid("items", "`items` can't contain references."));
    }
    // Ids are the server's: a client's could be another object's.
    let with_id = |mut item: Value| {
        let prefix = match item["type"].as_str() {
            Some("function_call") => "fc",
            Some("function_call_output") => "fco",
            Some("reasoning") => "rs",
            Some("compaction") => "cmp",
            Some(_) | None => "msg",
        };
        item["id"] = json!(new_id(prefix));
        item
    };
    Ok(list.into_iter().map(with_id).collect())
}

async fn conversation(shared: &RouteState, owner: &ObjectOwner, id: &str) -> Result<ApiObject> {
    let (app, owner, wanted) = (shared.app.clone(), owner.0.clone(), id.to_owned());
    let found = blocking(move || app.api_object(KIND, &owner, &wanted)).await?;
    found.ok_or_else(|| no_such("conversation", id))
}

/// Handles `POST /v1/conversations`.
pub async fn create(CallerState(shared): CallerState, owner: ObjectOwner, body: Body) -> Response {
    answered(body, |body| async move {
        let fields = object(&body)?;
        let fields = Fields(&fields);
        let id = new_id("conv");
        let value = json!({
            "id": id, "object": "conversation", "created_at": now_s(), "metadata": metadata(fields)?,
        });
        let mut objects = vec![ApiObject {
            id: id.clone(),
            kind: KIND,
            owner: owner.0.to_string(),
            parent: None,
            body: value.clone(),
            created_ms: now_ms(),
        }];
        objects.extend(new_items(fields)?.into_iter().map(|item| stored_item(&owner, &id, item)));
        blocking(move || shared.app.put_api_objects(objects)).await?;
        Ok(ok(&value))
    })
    .await
}

/// Handles `GET /v1/conversations/{id}`.
pub async fn one(CallerState(shared): CallerState, owner: ObjectOwner, Path(id): Path<String>) -> Response {
    match conversation(&shared, &owner, &id).await {
        Ok(object) => ok(&object.body),
        Err(fault) => fault.into_response(),
    }
}

/// Handles `POST /v1/conversations/{id}`: replaces the metadata.
pub async fn update(
    CallerState(shared): CallerState,
    owner: ObjectOwner,
    Path(id): Path<String>,
    body: Body,
) -> Response {
    answered(body, |body| async move {
        let metadata = metadata(Fields(&object(&body)?))?;
        let mut stored = conversation(&shared, &owner, &id).await?;
        stored.body["metadata"] = metadata;
        let value = stored.body.clone();
        blocking(move || shared.app.put_api_objects(vec![stored])).await?;
        Ok(ok(&value))
    })
    .await
}

/// Handles `DELETE /v1/conversations/{id}`. Its items go with it.
pub async fn delete(
    CallerState(shared): CallerState,
    owner: ObjectOwner,
    Path(id): Path<String>,
) -> Response {
    let wanted = id.clone();
    match blocking(move || shared.app.remove_api_object(KIND, &owner.0, &wanted)).await {
        Ok(true) => ok(&json!({ "id": id, "object": "conversation.deleted", "deleted": true })),
        Ok(false) => no_such("conversation", &id).into_response(),
        Err(fault) => fault.into_response(),
    }
}

/// Handles `GET /v1/conversations/{id}/items`.
pub async fn items(
    CallerState(shared): CallerState,
    owner: ObjectOwner,
    Path(id): Path<String>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    let listed = async {
        let query = ListQuery::parse(&pairs)?;
        conversation(&shared, &owner, &id).await?;
        let all = blocking(move || shared.app.api_objects(ITEM, &owner.0, Some(&id))).await?;
        Ok(ok(&page(all.into_iter().map(|object| object.body).collect(), &query, ListOrder::Desc)))
    };
    listed.await.unwrap_or_else(|fault: OpenAiFault| fault.into_response())
}

/// Handles `POST /v1/conversations/{id}/items`.
pub async fn add_items(
    CallerState(shared): CallerState,
    owner: ObjectOwner,
    Path(id): Path<String>,
    body: Body,
) -> Response {
    answered(body, |body| async move {
        let new = new_items(Fields(&object(&body)?))?;
        if new.is_empty() {
            return Err(OpenAiFault::invalid("items", "`items` needs at least one item."));
        }
        conversation(&shared, &owner, &id).await?;
        let objects = new.iter().map(|item| stored_item(&owner, &id, item.clone())).collect();
        blocking(move || shared.app.put_api_objects(objects)).await?;
        let (first, last) = (&new[0]["id"], &new[new.len() - 1]["id"]);
        Ok(ok(&json!({
            "object": "list", "data": new, "first_id": first, "last_id": last, "has_more": false,
        })))
    })
    .await
}

async fn item_of(shared: &RouteState, owner: &ObjectOwner, id: &str, item: &str) -> Result<ApiObject> {
    conversation(shared, owner, id).await?;
    let (app, owner, wanted) = (shared.app.clone(), owner.0.clone(), item.to_owned());
    let found = blocking(move || app.api_object(ITEM, &owner, &wanted)).await?;
    found.filter(|object| object.parent.as_deref() == Some(id)).ok_or_else(|| no_such("item", item))
}

/// Handles `GET /v1/conversations/{id}/items/{item}`.
pub async fn item(
    CallerState(shared): CallerState,
    owner: ObjectOwner,
    Path((id, item)): Path<(String, String)>,
) -> Response {
    match item_of(&shared, &owner, &id, &item).await {
        Ok(object) => ok(&object.body),
        Err(fault) => fault.into_response(),
    }
}

/// Handles `DELETE /v1/conversations/{id}/items/{item}`; answers with the conversation.
pub async fn delete_item(
    CallerState(shared): CallerState,
    owner: ObjectOwner,
    Path((id, item)): Path<(String, String)>,
) -> Response {
    let deleted = async {
        item_of(&shared, &owner, &id, &item).await?;
        let (app, key) = (shared.app.clone(), owner.0.clone());
        blocking(move || app.remove_api_object(ITEM, &key, &item)).await?;
        Ok(ok(&conversation(&shared, &owner, &id).await?.body))
    };
    deleted.await.unwrap_or_else(|fault: OpenAiFault| fault.into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_get_ids_of_ours() {
        let value = json!({ "items": [{ "id": "msg_1", "role": "user", "content": "a" }] });
        let items = new_items(Fields(value.as_object().unwrap())).unwrap();
        let id = items[0]["id"].as_str().unwrap();
        assert!(id.starts_with("msg_") && id.len() > 20, "{id}");
        for items in [
            json!([{ "id": "msg_1" }]),
            json!("text"),
            json!([7]),
            json!(vec![json!({ "role": "user", "content": "a" }); 21]),
        ] {
            let value = json!({ "items": items });
            assert_eq!(
                new_items(Fields(value.as_object().unwrap())).unwrap_err().param.as_deref(),
                Some("items")
            );
        }
    }
}
