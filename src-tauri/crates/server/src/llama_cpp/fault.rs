//! Errors in llama.cpp's form: `{"error": {"code", "message", "type"}}`.

use axum::response::{IntoResponse, Response};
use contract::Error;
use serde_json::{Value, json};

use crate::fault::{CONTEXT_FULL_TYPE, full_text, json_response, status, with_retry_after};

/// An error of llama.cpp's own routes.
#[derive(Debug)]
pub struct LlamaCppFault(Error);

impl From<Error> for LlamaCppFault {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl LlamaCppFault {
    pub fn body(&self) -> Value {
        let status = status(&self.0).as_u16();
        let kind = match (self.0.code(), status) {
            ("request.context_full" | "limit.prompt_tokens", _) => CONTEXT_FULL_TYPE,
            (_, 400 | 409 | 413 | 422) => "invalid_request_error",
            (_, 401) => "authentication_error",
            (_, 403) => "permission_error",
            (_, 404) => "not_found_error",
            (_, 429 | 503) => "unavailable_error",
            (_, 501) => "not_supported_error",
            _ => "server_error",
        };
        let message = full_text(&self.0);
        json!({ "error": { "code": status, "message": message, "type": kind } })
    }
}

impl IntoResponse for LlamaCppFault {
    fn into_response(self) -> Response {
        with_retry_after(json_response(status(&self.0), &self.body()))
    }
}
