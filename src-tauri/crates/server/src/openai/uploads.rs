//! `/v1/uploads`: files that are too large for one request, uploaded in parts.

use app::{ApiFile, ApiObject, ApiObjectKind, App};
use axum::body::Body;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use contract::{Error, ErrorKind};
use documents::file_name;
use serde_json::{Value, json};

use super::fields::{Fields, Result, object, unsupported};
use super::files::{expiry, file_value, purpose};
use super::{answered, blocking, new_id, now_ms, ok};
use crate::RouteState;
use crate::fault::OpenAiFault;
use crate::file_form::FileForm;
use crate::guard::CallerState;
use crate::owner::ObjectOwner;
use crate::url_parts::Path;
use crate::whole_number;

const KIND: ApiObjectKind = ApiObjectKind::Upload;
const PART: ApiObjectKind = ApiObjectKind::UploadPart;

/// Time until an upload that is not completed expires, as in OpenAI's API.
const LIFETIME_MS: i64 = 60 * 60 * 1000;

/// Handles `POST /v1/uploads`.
pub async fn create(CallerState(shared): CallerState, owner: ObjectOwner, body: Body) -> Response {
    answered(body, |body| async move {
        let body = upload_body(&body)?;
        let upload = ApiObject {
            id: new_id("upload"),
            kind: KIND,
            owner: owner.0.to_string(),
            parent: None,
            body,
            created_ms: now_ms(),
        };
        let stored = upload.clone();
        blocking(move || {
            shared.app.make_room_for_file(stored.body["bytes"].as_u64().unwrap_or_default())?;
            shared.app.put_api_objects(vec![stored])
        })
        .await?;
        Ok(ok(&upload_value(&upload, None)))
    })
    .await
}

/// What is kept of a request.
fn upload_body(body: &[u8]) -> Result<Value> {
    let object = object(body)?;
    let fields = Fields(&object);
    let needed = |name: &'static str| OpenAiFault::invalid(name, format!("`{name}` is needed."));
    let n_bytes =
        fields.count_within("bytes", 0, api_store::MAX_FILE_BYTES)?.ok_or_else(|| needed("bytes"))?;
    let filename = fields.text("filename")?.ok_or_else(|| needed("filename"))?;
    let media_type = fields.text("mime_type")?.ok_or_else(|| needed("mime_type"))?;
    let purpose = purpose(fields.text("purpose")?)?;
    let expires_after_s = match fields.object("expires_after")? {
        None => None,
        Some(after) => {
            Some(expiry(after.text("anchor")?, after.get("seconds").and_then(whole_number::signed))?)
        }
    };
    Ok(json!({
        "bytes": n_bytes, "filename": file_name::clean(filename), "mime_type": media_type, "purpose": purpose,
        "expires_after_s": expires_after_s, "status": "pending",
    }))
}

fn upload_value(upload: &ApiObject, file: Option<&ApiFile>) -> Value {
    let body = &upload.body;
    json!({
        "id": upload.id, "object": "upload", "bytes": body["bytes"], "created_at": upload.created_ms / 1000,
        "expires_at": (upload.created_ms + LIFETIME_MS) / 1000, "filename": body["filename"],
        "purpose": body["purpose"], "status": body["status"], "file": file.map(file_value),
    })
}

/// An upload that still takes parts. Errors: there is none, or it has ended.
fn pending(app: &App, owner: &str, id: &str) -> contract::Result<ApiObject> {
    let unknown = || {
        let message = format!("There is no upload with the id {id}.");
        Error::not_found("upload.unknown", message, "Create one with POST /v1/uploads.")
    };
    let upload = app.api_object(KIND, owner, id)?.ok_or_else(unknown)?;
    let status = match upload.body["status"].as_str().unwrap_or_default() {
        "pending" if now_ms() > upload.created_ms + LIFETIME_MS => "expired",
        status => status,
    };
    if status != "pending" {
        let message = format!("The upload {id} is {status}.");
        return Err(Error::new(ErrorKind::Conflict, "upload.ended", message, "Create a new upload."));
    }
    Ok(upload)
}

/// Handles `POST /v1/uploads/{id}/parts`.
pub async fn add_part(
    CallerState(shared): CallerState,
    owner: ObjectOwner,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let form = match FileForm::read(&headers, body, "data").await {
        Ok(form) => form,
        Err(refusal) => return refusal,
    };
    let added = async {
        let content = form?.content;
        let part = blocking(move || store_part(&shared.app, &owner, &id, &content)).await?;
        Ok(ok(&json!({
            "id": part.id, "object": "upload.part", "created_at": part.created_ms / 1000, "upload_id": part.parent,
        })))
    };
    added.await.unwrap_or_else(|fault: OpenAiFault| fault.into_response())
}

fn store_part(app: &App, owner: &ObjectOwner, id: &str, content: &[u8]) -> contract::Result<ApiObject> {
    let upload = pending(app, &owner.0, id)?;
    let n_bytes = content.len() as u64;
    let parts = app.api_objects(PART, &owner.0, Some(id))?;
    let n_stored: u64 = parts.iter().filter_map(|part| part.body["bytes"].as_u64()).sum();
    let declared = upload.body["bytes"].as_u64().unwrap_or_default();
    if n_stored + n_bytes > declared {
        let message =
            format!("The parts have more than the {declared} bytes that the upload was created with.");
        let remedy = "Create an upload with the size of the file.";
        return Err(Error::new(ErrorKind::Conflict, "upload.too_long", message, remedy));
    }
    app.make_room_for_file(n_bytes)?;
    let part = ApiObject {
        id: new_id("part"),
        kind: PART,
        owner: owner.0.to_string(),
        parent: Some(id.to_owned()),
        body: json!({ "bytes": n_bytes }),
        created_ms: now_ms(),
    };
    app.file_contents().put(&part.id, content)?;
    app.put_api_objects(vec![part.clone()])?;
    Ok(part)
}

/// Handles `POST /v1/uploads/{id}/complete`: the parts become a file, in the order that the client names.
pub async fn complete(
    CallerState(shared): CallerState,
    owner: ObjectOwner,
    Path(id): Path<String>,
    body: Body,
) -> Response {
    answered(body, |body| async move {
        let object = object(&body)?;
        let fields = Fields(&object);
        if fields.text("md5")?.is_some() {
            return Err(unsupported("md5", "`md5` is not checked. Leave it out; the length is checked."));
        }
        let list = fields.list("part_ids")?.ok_or_else(|| part_ids("`part_ids` is needed."))?;
        let ids: Option<Vec<String>> = list.iter().map(|id| id.as_str().map(str::to_owned)).collect();
        let ids = ids.ok_or_else(|| part_ids("`part_ids` must be a list of texts."))?;
        let (upload, file) = blocking(move || join_parts(&shared.app, &owner, &id, &ids)).await?;
        Ok(ok(&upload_value(&upload, Some(&file))))
    })
    .await
}

fn part_ids(message: &str) -> OpenAiFault {
    OpenAiFault::invalid("part_ids", message)
}

fn join_parts(
    app: &App,
    owner: &ObjectOwner,
    id: &str,
    ids: &[String],
) -> contract::Result<(ApiObject, ApiFile)> {
    let mut upload = pending(app, &owner.0, id)?;
    let parts = app.api_objects(PART, &owner.0, Some(id))?;
    if let Some(unknown) = ids.iter().find(|id| !parts.iter().any(|part| part.id == **id)) {
        let message = format!("The upload has no part with the id {unknown}.");
        // The upload is there: the request is wrong, not its address.
        return Err(Error::input(
            "upload.no_part",
            message,
            "Name the parts that were added to this upload.",
        ));
    }
    let created_ms = now_ms();
    let text = |name: &str| upload.body[name].as_str().unwrap_or_default().to_owned();
    let expires_after_s = upload.body["expires_after_s"].as_i64();
    let mut file = ApiFile {
        id: new_id("file"),
        owner: upload.owner.clone(),
        record: api_store::FileRecord {
            filename: text("filename"),
            purpose: text("purpose"),
            media_type: text("mime_type"),
            n_bytes: 0,
            expires_ms: expires_after_s.map(|seconds| created_ms + 1000 * seconds),
        },
        created_ms,
    };
    let declared = upload.body["bytes"].as_u64().unwrap_or_default();
    app.make_room_for_file(declared)?;
    let contents = app.file_contents();
    file.record.n_bytes = contents.join(&file.id, ids)?;
    if file.record.n_bytes != declared {
        contents.remove(&file.id)?;
        let message = format!("The parts have {} bytes, the upload {declared}.", file.record.n_bytes);
        let remedy = "Add the parts that are missing.";
        return Err(Error::new(ErrorKind::Conflict, "upload.other_length", message, remedy));
    }
    app.list_api_file(&file)?;
    end(app, &mut upload, "completed", &parts)?;
    Ok((upload, file))
}

/// Ends an upload; its parts go.
fn end(app: &App, upload: &mut ApiObject, status: &str, parts: &[ApiObject]) -> contract::Result<()> {
    upload.body["status"] = json!(status);
    app.put_api_objects(vec![upload.clone()])?;
    for part in parts {
        app.remove_api_object(PART, &part.owner, &part.id)?;
        app.file_contents().remove(&part.id)?;
    }
    Ok(())
}

/// Handles `POST /v1/uploads/{id}/cancel`.
pub async fn cancel(
    CallerState(shared): CallerState,
    owner: ObjectOwner,
    Path(id): Path<String>,
) -> Response {
    match blocking(move || cancelled(&shared, &owner, &id)).await {
        Ok(upload) => ok(&upload_value(&upload, None)),
        Err(fault) => fault.into_response(),
    }
}

fn cancelled(shared: &RouteState, owner: &ObjectOwner, id: &str) -> contract::Result<ApiObject> {
    let mut upload = pending(&shared.app, &owner.0, id)?;
    let parts = shared.app.api_objects(PART, &owner.0, Some(id))?;
    end(&shared.app, &mut upload, "cancelled", &parts)?;
    Ok(upload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uploads_name_what_is_missing() {
        let whole =
            json!({ "bytes": 3, "filename": "a/b.txt", "mime_type": "text/plain", "purpose": "user_data" });
        let kept = upload_body(whole.to_string().as_bytes()).unwrap();
        assert_eq!((&kept["filename"], &kept["status"]), (&json!("b.txt"), &json!("pending")));
        for (name, wrong) in [
            ("bytes", Value::Null),
            ("bytes", json!(-1)),
            ("bytes", json!(api_store::MAX_FILE_BYTES + 1)),
            ("filename", Value::Null),
            ("mime_type", json!(1)),
            ("purpose", json!("x")),
            ("expires_after", json!({ "anchor": "created_at", "seconds": 1 })),
        ] {
            let mut body = whole.clone();
            body[name] = wrong.clone();
            let fault = upload_body(body.to_string().as_bytes()).unwrap_err();
            assert_eq!(fault.param.as_deref(), Some(name), "{wrong}");
        }
    }
}
