//! Error responses: JSON in the form that the requested interface defines.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use contract::Error;
use serde_json::{Value, json};

/// An error of the `/api` routes: `{"error": ErrorInfo}`.
pub struct Fault(pub Error);

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let status = match self.0.code() {
            "limit.turns" | "request.queue_full" => StatusCode::TOO_MANY_REQUESTS,
            _ => StatusCode::from_u16(self.0.kind.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
        };
        json_response(status, &json!({ "error": self.0.info }))
    }
}

/// An error in OpenAI's form.
#[derive(Debug, Clone)]
pub struct OpenAiFault {
    pub status: StatusCode,
    pub kind: &'static str,
    pub code: Option<String>,
    pub param: Option<String>,
    pub message: String,
}

impl OpenAiFault {
    /// An invalid request; `param` names the field.
    pub fn invalid(param: impl Into<Option<&'static str>>, message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            kind: "invalid_request_error",
            code: None,
            param: param.into().map(str::to_owned),
            message: message.into(),
        }
    }

    pub fn body(&self) -> Value {
        json!({ "error": { "message": self.message, "type": self.kind, "param": self.param, "code": self.code } })
    }
}

impl From<Error> for OpenAiFault {
    fn from(error: Error) -> Self {
        let message = format!("{} {}", error.message(), error.remedy());
        let (status, kind, param, code) = match error.code() {
            "request.context_full" => {
                (400, "invalid_request_error", Some("messages"), "context_length_exceeded")
            }
            "model.unknown" => (404, "invalid_request_error", Some("model"), "model_not_found"),
            "limit.prompt_tokens" | "limit.characters" => {
                (400, "invalid_request_error", Some("messages"), "context_length_exceeded")
            }
            "limit.turns" | "request.queue_full" => (429, "rate_limit_error", None, "queue_full"),
            code => match error.kind.http_status() {
                400 | 404 | 409 => (error.kind.http_status(), "invalid_request_error", None, code),
                status => (status, "server_error", None, code),
            },
        };
        Self {
            status: StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            kind,
            code: Some(code.into()),
            param: param.map(str::to_owned),
            message,
        }
    }
}

impl IntoResponse for OpenAiFault {
    fn into_response(self) -> Response {
        let mut response = json_response(self.status, &self.body());
        let headers = response.headers_mut();
        match self.status {
            StatusCode::TOO_MANY_REQUESTS => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            // A retry would fail the same way.
            _ => {
                headers.insert(HeaderName::from_static("x-should-retry"), HeaderValue::from_static("false"));
            }
        }
        response
    }
}

/// Rejects a request before its route is known; the body satisfies both error forms.
pub fn refuse(status: StatusCode, code: &str, message: &str, remedy: &str) -> Response {
    let kind =
        if status == StatusCode::UNAUTHORIZED { "authentication_error" } else { "invalid_request_error" };
    let error = json!({ "message": message, "type": kind, "param": null, "code": code, "remedy": remedy });
    json_response(status, &json!({ "error": error }))
}

pub async fn method_not_allowed() -> Response {
    refuse(
        StatusCode::METHOD_NOT_ALLOWED,
        "server.method",
        "This route does not support the request method.",
        "See docs/HTTP.md for the routes and their methods.",
    )
}

pub fn not_found(path: &str) -> Response {
    let message = format!("There is no route {path}.");
    refuse(
        StatusCode::NOT_FOUND,
        "server.no_route",
        &message,
        "See docs/HTTP.md for the routes and their methods.",
    )
}

pub fn json_response(status: StatusCode, body: &Value) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (status, headers, body.to_string()).into_response()
}
