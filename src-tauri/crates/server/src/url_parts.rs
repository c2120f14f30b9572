//! Parts of a request's address. One that cannot be read is refused in the form that the client reads; axum's own
//! extractors would answer in plain text.

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use serde::de::DeserializeOwned;

use crate::refusal::refuse;

/// Parameters of the path.
pub struct Path<T>(pub T);

/// Parameters behind the question mark.
pub struct Query<T>(pub T);

fn unreadable(rejection: &impl std::fmt::Display) -> Response {
    refuse(
        StatusCode::BAD_REQUEST,
        "server.address",
        &format!("The address can't be read: {rejection}."),
        "Write it as docs/HTTP.md says, with other characters escaped as UTF-8.",
    )
}

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let read = axum::extract::Path::from_request_parts(parts, state).await;
        read.map(|axum::extract::Path(value)| Self(value)).map_err(|rejection| unreadable(&rejection))
    }
}

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let read = axum::extract::Query::from_request_parts(parts, state).await;
        read.map(|axum::extract::Query(value)| Self(value)).map_err(|rejection| unreadable(&rejection))
    }
}
