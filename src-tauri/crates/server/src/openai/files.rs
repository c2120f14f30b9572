//! `/v1/files`: files that programs store, for batches and for the messages of later requests.

use std::collections::BTreeMap;

use app::ApiFile;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::fields::Result;
use super::pages::{ListOrder, ListQuery, page_within};
use super::{blocking, new_id, now_ms, ok};
use crate::fault::OpenAiFault;
use crate::file_form::FileForm;
use crate::guard::CallerState;
use crate::owner::ObjectOwner;
use crate::url_parts::{Path, Query};

/// What a client may want a file for, as in OpenAI's API.
const PURPOSES: &[&str] = &["assistants", "batch", "fine-tune", "vision", "user_data", "evals"];

/// Entries of a page unless the client says so, and at most, as in OpenAI's API.
const MAX_PAGE: usize = 10_000;

/// Bounds of the time until a file expires: an hour and 30 days, as in OpenAI's API.
const EXPIRY_S: std::ops::RangeInclusive<i64> = 3600..=2_592_000;

/// Handles `POST /v1/files`.
pub async fn create(
    CallerState(shared): CallerState,
    owner: ObjectOwner,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let form = match FileForm::read(&headers, body, "file").await {
        Ok(form) => form,
        Err(refusal) => return refusal,
    };
    let created = async {
        let form = form?;
        let purpose = purpose(form.fields.get("purpose").map(String::as_str))?;
        let expires_after_s = expiry_of_form(&form.fields)?;
        let file = new_file(&owner, &form, purpose, expires_after_s);
        let (value, content) = (file_value(&file), form.content);
        blocking(move || shared.app.add_api_file(&file, &content)).await?;
        Ok(ok(&value))
    };
    created.await.unwrap_or_else(|fault: OpenAiFault| fault.into_response())
}

fn new_file(owner: &ObjectOwner, form: &FileForm, purpose: &str, expires_after_s: Option<i64>) -> ApiFile {
    let created_ms = now_ms();
    ApiFile {
        id: new_id("file"),
        owner: owner.0.to_string(),
        record: api_store::FileRecord {
            filename: form.filename.clone(),
            purpose: purpose.into(),
            media_type: form.media_type.clone(),
            n_bytes: form.content.len() as u64,
            expires_ms: expires_after_s.map(|seconds| created_ms + 1000 * seconds),
        },
        created_ms,
    }
}

/// A purpose that a client may name.
pub fn purpose(word: Option<&str>) -> Result<&'static str> {
    let known = PURPOSES.iter().copied().find(|known| Some(*known) == word);
    known.ok_or_else(|| {
        OpenAiFault::invalid("purpose", format!("`purpose` must be one of {}.", PURPOSES.join(", ")))
    })
}

fn expiry_of_form(fields: &BTreeMap<String, String>) -> Result<Option<i64>> {
    let get = |name: &str| fields.get(&format!("expires_after[{name}]")).map(String::as_str);
    match (get("anchor"), get("seconds")) {
        (None, None) => Ok(None),
        (anchor, seconds) => expiry(anchor, seconds.and_then(|seconds| seconds.parse().ok())).map(Some),
    }
}

/// Seconds until a file expires.
pub fn expiry(anchor: Option<&str>, seconds: Option<i64>) -> Result<i64> {
    if anchor != Some("created_at") {
        return Err(OpenAiFault::invalid("expires_after", "`anchor` must be created_at."));
    }
    seconds.filter(|seconds| EXPIRY_S.contains(seconds)).ok_or_else(|| {
        let (min, max) = (EXPIRY_S.start(), EXPIRY_S.end());
        OpenAiFault::invalid("expires_after", format!("`seconds` must be from {min} to {max}."))
    })
}

/// A file as its client sees it.
pub fn file_value(file: &ApiFile) -> Value {
    let ApiFile { id, record, created_ms, .. } = file;
    json!({
        "id": id, "object": "file", "bytes": record.n_bytes, "created_at": created_ms / 1000,
        "expires_at": record.expires_ms.map(|ms| ms / 1000), "filename": record.filename,
        "purpose": record.purpose, "status": "processed", "status_details": null,
    })
}

/// Handles `GET /v1/files`: the newest first.
pub async fn list(
    CallerState(shared): CallerState,
    owner: ObjectOwner,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    let listed = async {
        let query = ListQuery::parse(&pairs)?;
        let all = blocking(move || shared.app.api_files(&owner.0)).await?;
        let purpose = pairs.iter().find(|(name, _)| name == "purpose").map(|(_, value)| value);
        let wanted = all.iter().filter(|file| purpose.is_none_or(|purpose| file.record.purpose == *purpose));
        let values = wanted.map(file_value).collect();
        Ok(ok(&page_within(values, &query, ListOrder::Desc, MAX_PAGE, MAX_PAGE)))
    };
    listed.await.unwrap_or_else(|fault: OpenAiFault| fault.into_response())
}

/// Handles `GET /v1/files/{id}`.
pub async fn one(CallerState(shared): CallerState, owner: ObjectOwner, Path(id): Path<String>) -> Response {
    match blocking(move || shared.app.api_file(&owner.0, &id)).await {
        Ok(file) => ok(&file_value(&file)),
        Err(fault) => fault.into_response(),
    }
}

/// Handles `GET /v1/files/{id}/content`.
pub async fn content(
    CallerState(shared): CallerState,
    owner: ObjectOwner,
    Path(id): Path<String>,
) -> Response {
    match blocking(move || shared.app.api_file_content(&owner.0, &id)).await {
        Ok((_, content)) => content_response(content),
        Err(fault) => fault.into_response(),
    }
}

/// The bytes of a file. Never as the type that its client named: a page must not run from here.
pub fn content_response(content: Vec<u8>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream"),
        (header::CONTENT_DISPOSITION, "attachment"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (StatusCode::OK, headers, content).into_response()
}

/// Handles `DELETE /v1/files/{id}`.
pub async fn delete(
    CallerState(shared): CallerState,
    owner: ObjectOwner,
    Path(id): Path<String>,
) -> Response {
    let wanted = id.clone();
    // An unknown one is named by the error of reading it.
    let removed = blocking(move || {
        shared.app.api_file(&owner.0, &wanted)?;
        shared.app.remove_api_file(&owner.0, &wanted)
    });
    match removed.await {
        Ok(is_removed) => ok(&json!({ "id": id, "object": "file", "deleted": is_removed })),
        Err(fault) => fault.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purposes_and_times_are_checked() {
        assert_eq!(purpose(Some("batch")).unwrap(), "batch");
        for word in [None, Some(""), Some("batch_output")] {
            assert_eq!(purpose(word).unwrap_err().param.as_deref(), Some("purpose"), "{word:?}");
        }
        let form = |pairs: &[(&str, &str)]| {
            let pairs =
                pairs.iter().map(|(name, value)| (format!("expires_after[{name}]"), (*value).to_owned()));
            expiry_of_form(&pairs.collect())
        };
        assert_eq!(form(&[]).unwrap(), None);
        assert_eq!(form(&[("anchor", "created_at"), ("seconds", "3600")]).unwrap(), Some(3600));
        for pairs in [
            &[("seconds", "3600")][..],
            &[("anchor", "created_at")],
            &[("anchor", "created_at"), ("seconds", "3599")],
            &[("anchor", "created_at"), ("seconds", "x")],
        ] {
            assert_eq!(form(pairs).unwrap_err().param.as_deref(), Some("expires_after"), "{pairs:?}");
        }
    }
}
