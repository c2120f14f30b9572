//! PDFs in requests whose pages are scanned: for a model that sees, their parts become a text and images before a route
//! reads the request. All other requests pass unchanged.

use app::App;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use contract::types::AttachmentKind;
use contract::{Error, Result};
use documents::pdf::scanned::page_name;
use documents::{base64, blocks, file_name, prompt_injection};
use serde_json::{Value, json};

use crate::RouteState;
use crate::body::{MAX_BODY_BYTES, read, too_large};
use crate::refusal::refuse;

/// What the base64 of every PDF begins with: `%PDF-`, up to its last whole digit.
const PDF_DIGITS: &[u8] = b"JVBERi";

/// Ends of the paths whose requests may have files.
const PATHS: [&str; 5] =
    ["/chat/completions", "/responses", "/responses/input_tokens", "/messages", "/messages/count_tokens"];

/// Replaces parts with scanned PDFs.
pub async fn fill_in(State(shared): State<RouteState>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if request.method() != Method::POST || !PATHS.iter().any(|end| path.ends_with(end)) {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    let bytes = match read(body).await {
        Ok(bytes) => bytes,
        Err(refusal) => return refusal,
    };
    let has_pdf = bytes.windows(PDF_DIGITS.len()).any(|at| at == PDF_DIGITS);
    // What is no JSON, its route refuses.
    let value = has_pdf.then(|| serde_json::from_slice::<Value>(&bytes).ok()).flatten();
    let Some(mut value) = value else {
        return next.run(Request::from_parts(parts, Body::from(bytes))).await;
    };
    let work = move || expand_request(&shared.app, &mut value).map(|n| (n > 0).then(|| value.to_string()));
    match tokio::task::spawn_blocking(work).await.unwrap_or_else(|panic| Err(Error::bug(panic))) {
        Ok(None) => next.run(Request::from_parts(parts, Body::from(bytes))).await,
        Ok(Some(text)) if text.len() > MAX_BODY_BYTES => too_large(),
        Ok(Some(text)) => {
            parts.headers.remove(header::CONTENT_LENGTH);
            next.run(Request::from_parts(parts, Body::from(text))).await
        }
        Err(error) => refuse(StatusCode::BAD_REQUEST, error.code(), error.message(), error.remedy()),
    }
}

/// Replaces the scanned PDFs of a request; how many.
fn expand_request(app: &App, request: &mut Value) -> Result<usize> {
    let model = request.get("model").and_then(Value::as_str).unwrap_or_default();
    // Of an unknown model the route says so.
    if !app.model_sees(model).unwrap_or(false) {
        return Ok(0);
    }
    let mut n_expanded = 0;
    expand(request, &mut |part| {
        let Some(pdf) = PdfPart::of(part) else { return Ok(None) };
        let parts = pdf.expanded(app)?;
        n_expanded += usize::from(parts.is_some());
        Ok(parts)
    })?;
    Ok(n_expanded)
}

/// Replaces parts in every list of a request by what `parts_for` makes of them.
fn expand(value: &mut Value, parts_for: &mut dyn FnMut(&Value) -> Result<Option<Vec<Value>>>) -> Result<()> {
    match value {
        Value::Array(list) => {
            let mut all = Vec::with_capacity(list.len());
            for mut part in std::mem::take(list) {
                match parts_for(&part)? {
                    Some(parts) => all.extend(parts),
                    None => {
                        expand(&mut part, parts_for)?;
                        all.push(part);
                    }
                }
            }
            *list = all;
            Ok(())
        }
        Value::Object(fields) => fields.values_mut().try_for_each(|value| expand(value, parts_for)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

/// Whose parts a request has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PartStyle {
    OpenAi,
    Anthropic,
}

/// A part with the data of a PDF.
#[derive(Debug, PartialEq, Eq)]
struct PdfPart {
    style: PartStyle,
    name: String,
    bytes: Vec<u8>,
}

impl PdfPart {
    /// None: the part has no PDF. What is wrong with it, its route says.
    fn of(part: &Value) -> Option<Self> {
        let (style, name, data) = match part.get("type")?.as_str()? {
            "file" | "input_file" => {
                let file = part.get("file").unwrap_or(part);
                (PartStyle::OpenAi, file.get("filename"), file.get("file_data")?.as_str()?)
            }
            "document" => {
                let source = part.get("source").filter(|source| source["type"] == "base64")?;
                (PartStyle::Anthropic, part.get("title"), source.get("data")?.as_str()?)
            }
            _ => return None,
        };
        let encoded = data.split_once(";base64,").map_or(data, |(_, encoded)| encoded);
        let bytes = base64::decode(encoded).filter(|bytes| bytes.starts_with(b"%PDF-"))?;
        let name = name.and_then(Value::as_str).unwrap_or("document.pdf");
        Some(Self { style, name: file_name::clean(name), bytes })
    }

    /// Its text, and each scanned page behind its name. None: it has no such page.
    fn expanded(&self, app: &App) -> Result<Option<Vec<Value>>> {
        let (read, pages) = app.extract_file(&self.name, &self.bytes)?;
        if pages.images.is_empty() {
            return Ok(None);
        }
        let text = prompt_injection::reveal_hidden(&read.text);
        let mut parts = Vec::with_capacity(2 * pages.images.len() + 1);
        for page in pages.images {
            parts.push(text_part(&blocks::page(&page_name(page.page, &self.name))));
            parts.push(self.image_part(&page.file.0));
        }
        parts.push(text_part(&format!("\n\n{}\n\n", blocks::whole(&self.name, AttachmentKind::Pdf, &text))));
        Ok(Some(parts))
    }

    fn image_part(&self, encoded: &str) -> Value {
        let head = encoded.get(..16).and_then(base64::decode).unwrap_or_default();
        let kind = prompt::images::media_type(&head);
        match self.style {
            PartStyle::OpenAi => {
                json!({ "type": "image_url", "image_url": { "url": format!("data:{kind};base64,{encoded}") } })
            }
            PartStyle::Anthropic => json!({
                "type": "image",
                "source": { "type": "base64", "media_type": kind, "data": encoded },
            }),
        }
    }
}

fn text_part(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_with_pdfs_are_found_in_both_styles() {
        let data = base64::encode(b"%PDF-1.4 rest");
        assert!(data.as_bytes().starts_with(PDF_DIGITS));
        let part =
            |style, name: &str| Some(PdfPart { style, name: name.into(), bytes: b"%PDF-1.4 rest".to_vec() });
        let url = format!("data:application/pdf;base64,{data}");
        for (value, expected) in [
            (
                json!({ "type": "file", "file": { "filename": "a.pdf", "file_data": url } }),
                part(PartStyle::OpenAi, "a.pdf"),
            ),
            (json!({ "type": "input_file", "file_data": data }), part(PartStyle::OpenAi, "document.pdf")),
            (
                json!({ "type": "document", "title": "b.pdf", "source": { "type": "base64", "data": data } }),
                part(PartStyle::Anthropic, "b.pdf"),
            ),
            (json!({ "type": "document", "source": { "type": "text", "data": data } }), None),
            (json!({ "type": "file", "file": { "file_data": base64::encode(b"text") } }), None),
            (json!({ "type": "text", "text": data }), None),
            (json!(data), None),
        ] {
            assert_eq!(PdfPart::of(&value), expected, "{value}");
        }
    }

    #[test]
    fn lists_are_expanded_wherever_they_are() {
        let mut request = json!({ "messages": [{ "content": [1, { "content": [2, 1] }, "1"] }], "n": 1 });
        let twice = |part: &Value| Ok((part == 1).then(|| vec![json!("a"), json!("b")]));
        expand(&mut request, &mut { twice }).unwrap();
        let expected =
            json!({ "messages": [{ "content": ["a", "b", { "content": [2, "a", "b"] }, "1"] }], "n": 1 });
        assert_eq!(request, expected);
    }
}
