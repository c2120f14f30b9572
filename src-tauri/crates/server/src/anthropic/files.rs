//! `/v1/files` in Anthropic's form, for clients that send the header `anthropic-version`. Others get OpenAI's.

use api_store::FileRecord;
use app::ApiFile;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use contract::Result;
use io::{Clock, RealClock};
use platform::calendar;
use serde_json::{Value, json};

use super::fault::AnthropicFault;
use super::models::{PageQuery, is_anthropic};
use crate::fault::json_response;
use crate::file_form::FileForm;
use crate::guard::CallerState;
use crate::openai::{files as openai_files, new_id};
use crate::owner::ObjectOwner;
use crate::request_fields::invalid;
use crate::running_turn::blocking;
use crate::url_parts::{Path, Query};

/// Bounds of the time until a file expires: an hour and 90 days, as in Anthropic's API.
const EXPIRY_S: std::ops::RangeInclusive<i64> = 3600..=7_776_000;

/// What stands before the id of the last file in the name of the page behind it.
const PAGE_PREFIX: &str = "page_";

fn answer(outcome: Result<Value>) -> Response {
    match outcome {
        Ok(value) => json_response(StatusCode::OK, &value),
        Err(error) => AnthropicFault::from(error).into_response(),
    }
}

/// Handles `POST /v1/files`.
pub async fn create(state: CallerState, owner: ObjectOwner, headers: HeaderMap, body: Body) -> Response {
    if !is_anthropic(&headers) {
        return openai_files::create(state, owner, headers, body).await;
    }
    let form = match FileForm::read(&headers, body, "file").await {
        Ok(form) => form,
        Err(refusal) => return refusal,
    };
    let CallerState(shared) = state;
    let created = async {
        let form = form?;
        let created_ms = RealClock::new().now_utc_ms();
        let expires_after_s = expiry(form.fields.get("expires_in_seconds").map(String::as_str))?;
        let file = ApiFile {
            id: new_id("file"),
            owner: owner.0.to_string(),
            record: FileRecord {
                filename: form.filename,
                purpose: "user_data".into(),
                media_type: form.media_type,
                n_bytes: form.content.len() as u64,
                expires_ms: expires_after_s.map(|seconds| created_ms + 1000 * seconds),
            },
            created_ms,
        };
        let (value, content) = (file_value(&file), form.content);
        blocking(move || shared.app.add_api_file(&file, &content)).await?;
        Ok(value)
    };
    answer(created.await)
}

fn expiry(seconds: Option<&str>) -> Result<Option<i64>> {
    let Some(text) = seconds else { return Ok(None) };
    let seconds = text.parse().ok().filter(|seconds| EXPIRY_S.contains(seconds));
    let (min, max) = (EXPIRY_S.start(), EXPIRY_S.end());
    seconds.map(Some).ok_or_else(|| invalid(format!("`expires_in_seconds` must be from {min} to {max}.")))
}

fn file_value(file: &ApiFile) -> Value {
    let time = |ms: i64| format!("{}Z", calendar::date_time(ms));
    json!({
        "id": file.id, "type": "file", "filename": file.record.filename, "mime_type": file.record.media_type,
        "size_bytes": file.record.n_bytes, "created_at": time(file.created_ms), "downloadable": true,
        "expires_at": file.record.expires_ms.map(time),
    })
}

/// Handles `GET /v1/files`: the newest first.
pub async fn list(
    state: CallerState,
    owner: ObjectOwner,
    headers: HeaderMap,
    query: Query<Vec<(String, String)>>,
) -> Response {
    if !is_anthropic(&headers) {
        return openai_files::list(state, owner, query).await;
    }
    let (CallerState(shared), Query(pairs)) = (state, query);
    let listed = async {
        let mut all = blocking(move || shared.app.api_files(&owner.0)).await?;
        all.reverse();
        page(&all, pairs)
    };
    answer(listed.await)
}

/// A page of files: those that `ids[]` names, or those behind `page`, `after_id`, or before `before_id`.
fn page(all: &[ApiFile], pairs: Vec<(String, String)>) -> Result<Value> {
    let is_id = |name: &str| matches!(name, "ids" | "ids[]");
    let ids: Vec<&String> = pairs.iter().filter(|(name, _)| is_id(name)).map(|(_, id)| id).collect();
    if !ids.is_empty() {
        let data: Vec<Value> = all.iter().filter(|file| ids.contains(&&file.id)).map(file_value).collect();
        return Ok(
            json!({ "data": data, "has_more": false, "next_page": null, "first_id": null, "last_id": null }),
        );
    }
    let after_page = |(name, value): (String, String)| match (name.as_str(), value.strip_prefix(PAGE_PREFIX))
    {
        ("page", Some(id)) => ("after_id".to_owned(), id.to_owned()),
        _ => (name, value),
    };
    let query = PageQuery::parse(&pairs.into_iter().map(after_page).collect())?;
    let mut page = query.of(all, |file| &file.id, file_value);
    page["next_page"] = match (&page["has_more"], page["last_id"].as_str()) {
        (Value::Bool(true), Some(id)) => json!(format!("{PAGE_PREFIX}{id}")),
        _ => Value::Null,
    };
    Ok(page)
}

/// Handles `GET /v1/files/{id}`.
pub async fn one(state: CallerState, owner: ObjectOwner, headers: HeaderMap, path: Path<String>) -> Response {
    if !is_anthropic(&headers) {
        return openai_files::one(state, owner, path).await;
    }
    let (CallerState(shared), Path(id)) = (state, path);
    answer(blocking(move || shared.app.api_file(&owner.0, &id)).await.map(|file| file_value(&file)))
}

/// Handles `GET /v1/files/{id}/content`.
pub async fn content(
    state: CallerState,
    owner: ObjectOwner,
    headers: HeaderMap,
    path: Path<String>,
) -> Response {
    if !is_anthropic(&headers) {
        return openai_files::content(state, owner, path).await;
    }
    let (CallerState(shared), Path(id)) = (state, path);
    match blocking(move || shared.app.api_file_content(&owner.0, &id)).await {
        Ok((_, content)) => openai_files::content_response(content),
        Err(error) => AnthropicFault::from(error).into_response(),
    }
}

/// Handles `DELETE /v1/files/{id}`.
pub async fn delete(
    state: CallerState,
    owner: ObjectOwner,
    headers: HeaderMap,
    path: Path<String>,
) -> Response {
    if !is_anthropic(&headers) {
        return openai_files::delete(state, owner, path).await;
    }
    let (CallerState(shared), Path(id)) = (state, path);
    let wanted = id.clone();
    let removed = blocking(move || {
        shared.app.api_file(&owner.0, &wanted)?;
        shared.app.remove_api_file(&owner.0, &wanted)
    });
    answer(removed.await.map(|_| json!({ "id": id, "type": "file_deleted" })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(id: &str) -> ApiFile {
        let record = FileRecord {
            filename: "a.txt".into(),
            purpose: "user_data".into(),
            media_type: "text/plain".into(),
            n_bytes: 2,
            expires_ms: Some(3_600_000),
        };
        ApiFile { id: id.into(), owner: String::new(), record, created_ms: 0 }
    }

    #[test]
    fn files_come_in_pages() {
        let all = ["c", "b", "a"].map(file);
        let page = |pairs: &[(&str, &str)]| {
            page(&all, pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()).unwrap()
        };
        let ids = |page: &Value| -> String {
            page["data"].as_array().unwrap().iter().filter_map(|file| file["id"].as_str()).collect()
        };
        for (pairs, expected, next) in [
            (&[][..], "cba", Value::Null),
            (&[("limit", "2")], "cb", json!("page_b")),
            (&[("limit", "2"), ("page", "page_b")], "a", Value::Null),
            (&[("after_id", "c")], "ba", Value::Null),
            (&[("ids[]", "a"), ("ids[]", "x")], "a", Value::Null),
        ] {
            let page = page(pairs);
            assert_eq!((ids(&page).as_str(), &page["next_page"]), (expected, &next), "{pairs:?}");
        }
        assert_eq!(file_value(&all[0])["expires_at"], "1970-01-01T01:00:00Z");
    }

    #[test]
    fn times_are_checked() {
        assert_eq!((expiry(None).unwrap(), expiry(Some("3600")).unwrap()), (None, Some(3600)));
        for text in ["", "x", "3599", "7776001"] {
            assert!(expiry(Some(text)).is_err(), "{text}");
        }
    }
}
