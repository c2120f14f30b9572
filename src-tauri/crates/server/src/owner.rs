//! Whose stored objects a request sees: those of the key that it came with.

use std::convert::Infallible;
use std::sync::Arc;

use app::Caller;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;

/// Id of a request's key. Empty: the server's own key. What one key stores is invisible to the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectOwner(pub Arc<str>);

impl<S: Send + Sync> FromRequestParts<S> for ObjectOwner {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let key = parts.extensions.get::<Caller>().and_then(|caller| caller.key.as_ref());
        Ok(Self(key.map_or_else(|| Arc::from(""), |key| key.id.as_str().into())))
    }
}
