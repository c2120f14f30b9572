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

/// The status of an error at the interfaces of other programs.
pub fn status(error: &Error) -> StatusCode {
    match (error.code(), error.kind.http_status()) {
        ("limit.turns" | "request.queue_full", _) => StatusCode::TOO_MANY_REQUESTS,
        ("limit.prompt_tokens" | "limit.characters" | "request.context_full", _) => StatusCode::BAD_REQUEST,
        // Clients can't fix the server's memory, and most don't know status 507.
        (_, 507) => StatusCode::SERVICE_UNAVAILABLE,
        (_, status) => StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

/// Says when to come back, where the server was too busy.
pub fn with_retry_after(mut response: Response) -> Response {
    if response.status() == StatusCode::TOO_MANY_REQUESTS {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// Cause and remedy as sentences, for clients that show one text.
pub fn full_text(error: &Error) -> String {
    let message = error.message().trim_end();
    let stop = if message.ends_with(['.', '!', '?', '…', ':']) { "" } else { "." };
    format!("{message}{stop} {}", error.remedy()).trim_end().to_owned()
}

/// The type of the error for a prompt that does not fit, as in llama.cpp.
pub const CONTEXT_FULL_TYPE: &str = "exceed_context_size_error";

/// An error in OpenAI's form.
#[derive(Debug, Clone)]
pub struct OpenAiFault {
    pub status: StatusCode,
    pub kind: &'static str,
    pub code: Option<String>,
    pub param: Option<String>,
    pub message: String,
    /// The sizes of a prompt that does not fit, as llama.cpp names them.
    pub overflow: Option<ContextOverflow>,
}

/// How much longer a prompt is than the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextOverflow {
    pub n_prompt_tokens: u32,
    pub n_ctx: u32,
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
            overflow: None,
        }
    }

    pub fn body(&self) -> Value {
        let mut error =
            json!({ "message": self.message, "type": self.kind, "param": self.param, "code": self.code });
        if let Some(ContextOverflow { n_prompt_tokens, n_ctx }) = self.overflow {
            error["n_prompt_tokens"] = n_prompt_tokens.into();
            error["n_ctx"] = n_ctx.into();
        }
        json!({ "error": error })
    }
}

impl From<Error> for OpenAiFault {
    fn from(error: Error) -> Self {
        let message = full_text(&error);
        let (status, kind, param, code) = match error.code() {
            // The type is llama.cpp's, the code OpenAI's.
            "request.context_full" => (400, CONTEXT_FULL_TYPE, Some("messages"), "context_length_exceeded"),
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
            overflow: None,
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

pub fn json_response(status: StatusCode, body: &Value) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (status, headers, body.to_string()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cause_and_remedy_are_sentences_of_one_text() {
        for (message, remedy, expected) in [
            ("It is taken.", "Choose another.", "It is taken. Choose another."),
            ("no such thing", "Choose another.", "no such thing. Choose another."),
            ("It is gone.", "", "It is gone."),
        ] {
            assert_eq!(full_text(&Error::input("x.y", message, remedy)), expected);
        }
    }
}
