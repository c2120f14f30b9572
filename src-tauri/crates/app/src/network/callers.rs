//! On whose behalf a use case runs: the interface, and the key of a request.

use std::sync::Arc;

use api_keys::CallerKey;
pub use audit::Interface;

use crate::App;

/// Who asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    pub interface: Interface,
    /// None: the user, or the server's own key.
    pub key: Option<CallerKey>,
    /// Such as `POST /v1/messages`.
    pub route: Option<String>,
}

impl App {
    /// The same application; what it begins is attributed to `caller`.
    pub fn as_caller(&self, caller: Caller) -> Self {
        Self { caller: Arc::new(caller), ..self.clone() }
    }

    /// On whose behalf this application runs.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }
}
