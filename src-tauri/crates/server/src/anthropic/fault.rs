//! Errors in Anthropic's form: `{"type": "error", "error": {"type", "message"}}`.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use contract::Error;
use serde_json::{Value, json};

use crate::fault::{full_text, json_response, status, with_retry_after};

/// An error of the Messages API.
#[derive(Debug)]
pub struct AnthropicFault(Error);

impl From<Error> for AnthropicFault {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl AnthropicFault {
    pub fn body(&self) -> Value {
        let kind = match status(&self.0).as_u16() {
            400 | 409 | 422 => "invalid_request_error",
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            503 => "overloaded_error",
            _ => "api_error",
        };
        let message = full_text(&self.0);
        json!({ "type": "error", "error": { "type": kind, "message": message }, "request_id": null })
    }
}

impl IntoResponse for AnthropicFault {
    fn into_response(self) -> Response {
        let status = match status(&self.0) {
            // Anthropic's own status of an overloaded server.
            StatusCode::SERVICE_UNAVAILABLE => {
                StatusCode::from_u16(529).unwrap_or(StatusCode::SERVICE_UNAVAILABLE)
            }
            status => status,
        };
        with_retry_after(json_response(status, &self.body()))
    }
}
