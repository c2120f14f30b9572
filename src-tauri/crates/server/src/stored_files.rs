//! Stored files that a request names by `file_id`: their content is put in before a route reads the request.

use app::App;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use contract::{Error, Result};
use documents::base64;
use serde_json::{Map, Value, json};

use crate::RouteState;
use crate::body::{MAX_BODY_BYTES, read, too_large};
use crate::guard::CallerState;
use crate::owner::ObjectOwner;
use crate::refusal::refuse;

/// What every request with such a file has.
const FIELD: &[u8] = b"\"file_id\"";

/// Replaces the ids of files by their contents.
pub async fn fill_in(
    State(_): State<RouteState>,
    CallerState(shared): CallerState,
    owner: ObjectOwner,
    request: Request,
    next: Next,
) -> Response {
    let json = request
        .headers()
        .get(header::CONTENT_TYPE)
        .is_none_or(|kind| !kind.as_bytes().starts_with(b"multipart/"));
    if request.method() != Method::POST || !json {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    let bytes = match read(body).await {
        Ok(bytes) => bytes,
        Err(refusal) => return refusal,
    };
    let names_file = bytes.windows(FIELD.len()).any(|at| at == FIELD);
    // What is no JSON, its route refuses.
    let value = names_file.then(|| serde_json::from_slice::<Value>(&bytes).ok()).flatten();
    let Some(mut value) = value else {
        return next.run(Request::from_parts(parts, Body::from(bytes))).await;
    };
    let work = move || replace_ids(&shared.app, &owner.0, &mut value).map(|()| value.to_string());
    match tokio::task::spawn_blocking(work).await.unwrap_or_else(|panic| Err(Error::bug(panic))) {
        Ok(text) if text.len() > MAX_BODY_BYTES => too_large(),
        Ok(text) => {
            parts.headers.remove(header::CONTENT_LENGTH);
            next.run(Request::from_parts(parts, Body::from(text))).await
        }
        Err(error) => {
            let status = StatusCode::from_u16(error.kind.http_status()).unwrap_or(StatusCode::BAD_REQUEST);
            refuse(status, error.code(), error.message(), error.remedy())
        }
    }
}

/// Replaces the ids in every part of a request.
fn replace_ids(app: &App, owner: &str, value: &mut Value) -> Result<()> {
    match value {
        Value::Array(list) => list.iter_mut().try_for_each(|value| replace_ids(app, owner, value)),
        Value::Object(part) => match file_in(part) {
            Some((place, id)) => {
                let (file, content) = app.api_file_content(owner, &id)?;
                place.put(part, &file.record.filename, &file.record.media_type, &content);
                Ok(())
            }
            None => part.values_mut().try_for_each(|value| replace_ids(app, owner, value)),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

/// Where a part has the id of a file, by the interface that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FilePlace {
    /// `{"type": "file", "file": {"file_id"}}`.
    Chat,
    /// `{"type": "input_file", "file_id"}`.
    Response,
    /// `{"type": "input_image", "file_id"}`.
    ResponseImage,
    /// `{"type": "document" | "image", "source": {"type": "file", "file_id"}}`.
    Anthropic,
}

/// The file that a part names.
fn file_in(part: &Map<String, Value>) -> Option<(FilePlace, String)> {
    let id = |value: &Value| value.get("file_id")?.as_str().map(str::to_owned);
    let source = || part.get("source").filter(|source| source["type"] == "file");
    let own = || part.get("file_id")?.as_str().map(str::to_owned);
    let (place, id) = match part.get("type")?.as_str()? {
        "file" => (FilePlace::Chat, part.get("file").and_then(id)),
        "input_file" => (FilePlace::Response, own()),
        "input_image" => (FilePlace::ResponseImage, own()),
        "document" | "image" => (FilePlace::Anthropic, source().and_then(id)),
        _ => return None,
    };
    Some((place, id?))
}

impl FilePlace {
    /// Puts the content in the place of the id.
    fn put(self, part: &mut Map<String, Value>, filename: &str, media_type: &str, content: &[u8]) {
        let encoded = base64::encode(content);
        match self {
            Self::Chat => {
                let data = format!("data:{media_type};base64,{encoded}");
                part.insert("file".into(), json!({ "filename": filename, "file_data": data }));
            }
            Self::Response => {
                part.remove("file_id");
                part.insert("filename".into(), json!(filename));
                part.insert("file_data".into(), json!(format!("data:{media_type};base64,{encoded}")));
            }
            Self::ResponseImage => {
                let kind = prompt::images::media_type(content);
                part.remove("file_id");
                part.insert("image_url".into(), json!(format!("data:{kind};base64,{encoded}")));
            }
            Self::Anthropic => {
                let kind = match part.get("type") {
                    Some(kind) if *kind == "image" => prompt::images::media_type(content),
                    _ => media_type,
                };
                let source = json!({ "type": "base64", "media_type": kind, "data": encoded });
                part.insert("source".into(), source);
                part.entry("title").or_insert_with(|| json!(filename));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_replaced_by_contents() {
        let png = b"\x89PNG\r\n\x1a\n";
        let encoded = base64::encode(png);
        for (part, expected) in [
            (
                json!({ "type": "file", "file": { "file_id": "f" } }),
                json!({ "type": "file", "file": { "filename": "a.txt", "file_data": format!("data:text/plain;base64,{encoded}") } }),
            ),
            (
                json!({ "type": "input_file", "file_id": "f" }),
                json!({ "type": "input_file", "filename": "a.txt", "file_data": format!("data:text/plain;base64,{encoded}") }),
            ),
            (
                json!({ "type": "input_image", "file_id": "f", "detail": "low" }),
                json!({ "type": "input_image", "detail": "low", "image_url": format!("data:image/png;base64,{encoded}") }),
            ),
            (
                json!({ "type": "image", "source": { "type": "file", "file_id": "f" } }),
                json!({ "type": "image", "title": "a.txt", "source": { "type": "base64", "media_type": "image/png", "data": encoded } }),
            ),
            (
                json!({ "type": "document", "title": "T", "source": { "type": "file", "file_id": "f" } }),
                json!({ "type": "document", "title": "T", "source": { "type": "base64", "media_type": "text/plain", "data": encoded } }),
            ),
        ] {
            let mut filled = part.as_object().unwrap().clone();
            let (place, id) = file_in(&filled).unwrap();
            assert_eq!(id, "f");
            place.put(&mut filled, "a.txt", "text/plain", png);
            assert_eq!(Value::Object(filled), expected, "{part}");
        }
        for other in [
            json!({ "type": "text", "file_id": "f" }),
            json!({ "type": "file", "file": { "file_data": "x" } }),
            json!({ "type": "document", "source": { "type": "text", "file_id": "f" } }),
            json!({ "file_id": "f" }),
        ] {
            assert_eq!(file_in(other.as_object().unwrap()), None, "{other}");
        }
    }
}
