//! Requests that are refused before a route reads them, in the form of the interface that they were meant for.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::{Value, json};

use crate::fault::json_response;
use crate::interface_paths::ollama_call;

/// Why a request was refused. Travels with its response until the form of its client is known.
#[derive(Debug, Clone)]
struct Refusal {
    status: StatusCode,
    code: String,
    message: String,
    remedy: String,
}

/// Rejects a request; [`in_client_form`] writes the body.
pub fn refuse(status: StatusCode, code: &str, message: &str, remedy: &str) -> Response {
    let refusal = Refusal { status, code: code.into(), message: message.into(), remedy: remedy.into() };
    let mut response = json_response(status, &refusal.body(ErrorForm::General));
    if status.is_server_error() {
        // A retry would fail the same way.
        response.headers_mut().insert("x-should-retry", HeaderValue::from_static("false"));
    }
    response.extensions_mut().insert(refusal);
    response
}

/// Rejects a method that the route of this path does not have.
pub async fn method_not_allowed() -> Response {
    refuse(
        StatusCode::METHOD_NOT_ALLOWED,
        "server.method",
        "This route does not support the request method.",
        "See docs/HTTP.md for the routes and their methods.",
    )
}

/// Rejects a path that no route has.
pub fn not_found(path: &str) -> Response {
    let message = format!("There is no route {path}.");
    refuse(
        StatusCode::NOT_FOUND,
        "server.no_route",
        &message,
        "See docs/HTTP.md for the routes and their methods.",
    )
}

/// Rewrites a refusal into the form of errors that the client of this path reads; `from_anthropic`: the request carries
/// the header of Anthropic's clients. Other responses stay as they are.
pub fn in_client_form(mut response: Response, path: &str, from_anthropic: bool) -> Response {
    let Some(refusal) = response.extensions_mut().remove::<Refusal>() else { return response };
    let mut rewritten = json_response(refusal.status, &refusal.body(ErrorForm::of(path, from_anthropic)));
    for (name, value) in response.headers() {
        if !rewritten.headers().contains_key(name) && name != header::CONTENT_LENGTH {
            rewritten.headers_mut().insert(name, value.clone());
        }
    }
    rewritten
}

/// How the body of an error is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ErrorForm {
    /// `{"error": "…"}`.
    Ollama,
    /// `{"type": "error", "error": {"type", "message"}}`.
    Anthropic,
    /// Fields of OpenAI's form, and the remedy apart, as our own page shows it.
    General,
}

impl ErrorForm {
    fn of(path: &str, from_anthropic: bool) -> Self {
        if ollama_call(path).is_some() {
            return Self::Ollama;
        }
        match path.starts_with("/v1/messages") || from_anthropic {
            true => Self::Anthropic,
            false => Self::General,
        }
    }
}

impl Refusal {
    fn body(&self, form: ErrorForm) -> Value {
        let Self { status, code, message, remedy } = self;
        let whole = format!("{message} {remedy}");
        match form {
            ErrorForm::Ollama => json!({ "error": whole }),
            ErrorForm::Anthropic => {
                let kind = match *status {
                    StatusCode::NOT_FOUND => "not_found_error",
                    StatusCode::PAYLOAD_TOO_LARGE => "request_too_large",
                    _ => self.kind(),
                };
                json!({ "type": "error", "error": { "type": kind, "message": whole }, "request_id": null })
            }
            ErrorForm::General => {
                let kind = self.kind();
                let error = json!({
                    "message": message, "type": kind, "param": null, "code": code, "remedy": remedy
                });
                json!({ "type": "error", "error": error })
            }
        }
    }

    /// The type of error that OpenAI's and Anthropic's interfaces have in common.
    fn kind(&self) -> &'static str {
        match self.status {
            StatusCode::UNAUTHORIZED => "authentication_error",
            StatusCode::FORBIDDEN => "permission_error",
            StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
            _ => "invalid_request_error",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn body_of(path: &str, from_anthropic: bool) -> Value {
        let mut refused = refuse(StatusCode::NOT_FOUND, "x.y", "Nothing.", "Look.");
        refused.headers_mut().insert("retry-after", "3".parse().unwrap());
        let response = in_client_form(refused, path, from_anthropic);
        assert_eq!(
            (response.status(), response.headers()["retry-after"].as_bytes()),
            (StatusCode::NOT_FOUND, &b"3"[..])
        );
        serde_json::from_slice(&crate::body::read_any(response.into_body()).await.unwrap()).unwrap()
    }

    #[tokio::test]
    async fn each_client_gets_the_error_form_that_it_reads() {
        for path in ["/api/chat", "/api/tags", "/api/blobs/sha256:00"] {
            assert_eq!(body_of(path, false).await, json!({ "error": "Nothing. Look." }), "{path}");
        }
        for (path, from_anthropic) in
            [("/v1/messages", false), ("/v1/messages/batches", false), ("/v1/files", true)]
        {
            let body = body_of(path, from_anthropic).await;
            assert_eq!((&body["type"], &body["error"]["type"]), (&json!("error"), &json!("not_found_error")));
            assert_eq!(body["error"]["message"], "Nothing. Look.", "{path}");
        }
        for path in ["/v1/files", "/api/conversations_list", "/api/v1/x", "/"] {
            let body = body_of(path, false).await;
            let error = &body["error"];
            assert_eq!(
                (&error["type"], &error["code"], &error["message"], &error["remedy"]),
                (&json!("invalid_request_error"), &json!("x.y"), &json!("Nothing."), &json!("Look.")),
                "{path}"
            );
        }
        let other = json_response(StatusCode::OK, &json!(1));
        let other = crate::body::read_any(in_client_form(other, "/api/chat", false).into_body()).await;
        assert_eq!(other.unwrap(), b"1");
    }
}
