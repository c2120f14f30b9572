//! What this crate needs of the application: the endpoints, their keys, and storage for what they
//! report.

use std::time::Duration;

use contract::Result;
use contract::types::{EndpointKey, EndpointModel, ServerKind};
use secrets::Secret;

/// An endpoint as it is stored.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Id of its row.
    pub id: String,
    /// The name that models are addressed by; several endpoints may share it.
    pub name: String,
    /// Base address.
    pub url: String,
    /// Where its key is.
    pub key: EndpointKey,
    /// The software behind it, as far as its list of models told.
    pub kind: ServerKind,
    /// The models that it listed last. Empty: it has not been asked, or has none.
    pub models: Vec<EndpointModel>,
    /// The user typed names of models, since the server lists none.
    pub has_typed: bool,
}

/// The application's endpoints.
pub trait EndpointDirectory: Send + Sync {
    /// The endpoints of a name that may answer for a model. Error: there is none, with the reason.
    fn candidates(&self, name: &str, model: &str) -> Result<Vec<Endpoint>>;

    /// One endpoint by its id.
    fn endpoint(&self, id: &str) -> Result<Endpoint>;

    /// The key of an endpoint. Error: it is not where it should be.
    fn key(&self, endpoint: &Endpoint) -> Result<Option<Secret>>;

    /// Keeps the list of models that an endpoint has sent.
    fn keep_models(&self, id: &str, kind: ServerKind, models: Vec<EndpointModel>) -> Result<()>;

    /// The health of an endpoint may have changed.
    fn health_changed(&self, id: &str);

    /// How long a server may stay silent.
    fn silence_timeout(&self) -> Duration;
}
