//! What has been learned of servers since the program began; shared by all tasks of the thread.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use serde_json::{Map, Value};

use super::omitted_fields::OmittedFields;
use super::pool::Pool;
use super::server_words::RefusedRequest;

/// The facts behind their lock.
#[derive(Default)]
pub struct RemoteMemory {
    known: Mutex<LearnedFacts>,
}

/// The facts.
#[derive(Default)]
pub struct LearnedFacts {
    pub pool: Pool,
    /// Tokens that a model's server counted for each that was estimated, by the model's id.
    ratios: HashMap<String, f64>,
    /// What was refused, by endpoint and model.
    omitted: HashMap<(String, String), OmittedFields>,
}

impl RemoteMemory {
    /// Locks the facts.
    pub fn known(&self) -> MutexGuard<'_, LearnedFacts> {
        self.known.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Tokens of a model for each that is estimated.
    pub fn ratio(&self, model: &str) -> f64 {
        self.known().ratios.get(model).copied().unwrap_or(1.0)
    }

    /// A server has counted `n_tokens` of a prompt that was estimated as `estimate`.
    pub fn learn(&self, model: &str, estimate: f64, n_tokens: usize) {
        // Short prompts are mostly markup: they teach nothing about the text.
        if estimate >= 32.0 && n_tokens > 0 {
            let ratio = (n_tokens as f64 / estimate).clamp(0.1, 10.0);
            self.known().ratios.insert(model.to_owned(), ratio);
        }
    }

    /// The fields that a server refused for a model.
    pub fn omitted_fields(&self, endpoint: &str, model: &str) -> OmittedFields {
        let key = (endpoint.to_owned(), model.to_owned());
        self.known().omitted.get(&key).cloned().unwrap_or_default()
    }

    /// Learns which field of `body` a refusal names. None: it names none that can be left out.
    pub fn omit_field(
        &self,
        endpoint: &str,
        model: &str,
        refused: &RefusedRequest,
        body: &Map<String, Value>,
    ) -> Option<&'static str> {
        let mut omitted = self.omitted_fields(endpoint, model);
        let field = omitted.learn(refused, body)?;
        self.known().omitted.insert((endpoint.to_owned(), model.to_owned()), omitted);
        Some(field)
    }
}

impl LearnedFacts {
    /// Forgets all of an endpoint: its address or key is another now.
    pub fn forget(&mut self, endpoint: &str) {
        self.pool.forget(endpoint);
        self.omitted.retain(|(of, _), _| of != endpoint);
    }
}
