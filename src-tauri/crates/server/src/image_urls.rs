//! Images that a request names by an http or https address: fetched before a route reads the request, where a setting
//! allows it. Without it a request passes unchanged, and its route refuses the address.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use contract::Error;
use serde_json::Value;

use crate::RouteState;
use crate::body::{MAX_BODY_BYTES, read, too_large};
use crate::refusal::refuse;

/// Most images that are fetched for a request.
const MAX_FETCHED: usize = 16;

/// Replaces addresses of images by their data.
pub async fn fetch(State(shared): State<RouteState>, request: Request, next: Next) -> Response {
    if request.method() != Method::POST || !shared.app.fetches_images() {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    let bytes = match read(body).await {
        Ok(bytes) => bytes,
        Err(refusal) => return refusal,
    };
    // What is no JSON, its route refuses.
    let Ok(mut value) = serde_json::from_slice::<Value>(&bytes) else {
        return next.run(Request::from_parts(parts, Body::from(bytes))).await;
    };
    match fill_in(&shared, &mut value).await {
        Ok(0) => next.run(Request::from_parts(parts, Body::from(bytes))).await,
        Ok(_) => {
            let bytes = value.to_string();
            if bytes.len() > MAX_BODY_BYTES {
                return too_large();
            }
            parts.headers.remove(header::CONTENT_LENGTH);
            next.run(Request::from_parts(parts, Body::from(bytes))).await
        }
        Err(error) => refuse(StatusCode::BAD_REQUEST, error.code(), error.message(), error.remedy()),
    }
}

/// Fetches every image that is named by an address; how many.
async fn fill_in(shared: &RouteState, value: &mut Value) -> Result<usize, Error> {
    let mut found = Vec::new();
    addresses(value, &mut found);
    let n_images = found.len();
    if n_images > MAX_FETCHED {
        return Err(Error::input(
            "image.too_many",
            format!("The request names {n_images} images by their addresses; the most is {MAX_FETCHED}."),
            "Send the images as base64 (data:image/png;base64,…).",
        ));
    }
    let mut n_bytes = 0;
    for place in found {
        let url = place.as_str().unwrap_or_default().to_owned();
        let image = shared.app.fetch_image(&url).await?;
        n_bytes += image.len();
        if n_bytes > MAX_BODY_BYTES {
            return Err(Error::input(
                "image.too_large",
                format!("The images of the request have more than {MAX_BODY_BYTES} bytes together."),
                "Use smaller images, or send them in several requests.",
            ));
        }
        let kind = prompt::images::media_type(&image);
        *place = Value::String(format!("data:{kind};base64,{}", documents::base64::encode(&image)));
    }
    Ok(n_images)
}

/// The places where an interface takes an image, as far as they hold an address: `image_url` of OpenAI's parts, `source`
/// of Anthropic's, `images` of Ollama's messages.
fn addresses<'a>(value: &'a mut Value, found: &mut Vec<&'a mut Value>) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(|value| addresses(value, found)),
        Value::Object(fields) => {
            let kind = fields.get("type").and_then(Value::as_str);
            let is_image = matches!(kind, Some("image_url" | "input_image" | "image"));
            for (key, value) in fields {
                match (key.as_str(), &*value) {
                    ("image_url" | "source", Value::Object(_)) if is_image => {
                        found.extend(value.get_mut("url").filter(|url| is_address(url)));
                    }
                    ("image_url", url) if is_image && is_address(url) => found.push(value),
                    ("images", Value::Array(_)) => {
                        let list = value.as_array_mut().into_iter().flatten();
                        found.extend(list.filter(|url| is_address(url)));
                    }
                    _ => addresses(value, found),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_address(value: &Value) -> bool {
    let scheme = value.as_str().and_then(|text| text.split_once("://")).map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_places_for_images_are_looked_at() {
        let mut request = json!({
            "messages": [
                { "role": "user", "content": "http://text.example" },
                { "role": "user", "content": [
                    { "type": "image_url", "image_url": { "url": "http://a.example/1", "detail": "low" } },
                    { "type": "image_url", "image_url": { "url": "data:image/png;base64,aGk=" } },
                    { "type": "input_image", "image_url": "HTTPS://b.example/2" },
                    { "type": "image", "source": { "type": "url", "url": "https://c.example/3" } },
                    { "type": "text", "text": "http://text.example", "image_url": "http://no.example" },
                    { "type": "tool_result", "content": [
                        { "type": "image", "source": { "type": "url", "url": "http://d.example/4" } },
                    ] },
                ] },
                { "role": "user", "content": "x", "images": ["http://e.example/5", "aGk="] },
            ],
            "tools": [{ "function": { "parameters": { "properties": {
                "image_url": { "type": "string", "url": "http://no.example" },
            } } } }],
        });
        let mut found = Vec::new();
        addresses(&mut request, &mut found);
        let mut found: Vec<String> = found.iter().map(|url| url.as_str().unwrap().to_lowercase()).collect();
        found.sort();
        let hosts = ["http://a.example/1", "http://d.example/4", "http://e.example/5", "https://b.example/2"];
        assert_eq!(found, [&hosts[..], &["https://c.example/3"]].concat());
    }
}
