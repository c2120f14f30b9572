//! Serves the embedded UI under a strict content security policy.

use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::fault::json_response;
use crate::refusal::not_found;

/// Paths in `ui/dist` and their contents; empty without a built UI.
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/ui_files.rs"));

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; \
                      font-src 'self'; connect-src 'self'; frame-src 'self'; frame-ancestors 'none'; object-src 'none'; \
                      base-uri 'none'; form-action 'none'";

const NO_UI: &str = "<!doctype html><meta charset=utf-8><title>Inglenook</title>\
                     <h1>Inglenook is running</h1><p>This program was built without its page. \
                     Run <code>make ui</code> and build it again. The API is there.</p>";

/// Caching for `assets/`, whose names contain a hash of the content.
const FOREVER: &str = "public, max-age=31536000, immutable";
const ALWAYS_ASK: &str = "no-cache";

pub async fn index() -> Response {
    match find("index.html") {
        Some(bytes) => page("index.html", bytes),
        None => page("index.html", NO_UI.as_bytes()),
    }
}

pub async fn file(uri: Uri) -> Response {
    let path = uri.path();
    match find(path.trim_start_matches('/')) {
        Some(bytes) => page(path, bytes),
        None => not_found(path),
    }
}

/// Whether a path is that of an embedded file.
pub fn is_file(path: &str) -> bool {
    path == "/" || find(path.trim_start_matches('/')).is_some()
}

pub async fn health() -> Response {
    json_response(StatusCode::OK, &json!({ "status": "ok" }))
}

fn find(name: &str) -> Option<&'static [u8]> {
    FILES.iter().find(|(path, _)| *path == name).map(|(_, bytes)| *bytes)
}

fn page(path: &str, bytes: &'static [u8]) -> Response {
    let caching = if path.contains("assets/") { FOREVER } else { ALWAYS_ASK };
    let headers = [
        (header::CONTENT_TYPE, media_type(path)),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, caching),
    ];
    (StatusCode::OK, headers, bytes).into_response()
}

fn media_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("woff2") => "font/woff2",
        Some("json" | "map") => "application/json",
        Some("txt") => "text/plain; charset=utf-8",
        Some(_) | None => "application/octet-stream",
    }
}
