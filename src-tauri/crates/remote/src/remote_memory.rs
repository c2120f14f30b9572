//! What has been learned of servers since the program began; shared by all tasks of the thread.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard};

use serde_json::{Map, Value};

use super::omitted_fields::OmittedFields;
use super::pool::Pool;
use super::server_words::RefusedRequest;

/// Tool calls whose extras are kept: more than any conversation sends again. Their servers do without older ones.
const MAX_CALL_EXTRAS: usize = 1000;

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
    /// What servers want back with their tool calls, by host and the call's id; oldest first.
    call_extras: VecDeque<(String, String, Value)>,
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

    /// Keeps what a server wants back with a call.
    pub fn keep_call_extra(&self, place: &str, id: &str, extra: Value) {
        let kept = &mut self.known().call_extras;
        if kept.len() == MAX_CALL_EXTRAS {
            kept.pop_front();
        }
        kept.push_back((place.to_owned(), id.to_owned(), extra));
    }

    /// Adds to the calls of a request what this server wants back with them.
    pub fn add_call_extras(&self, place: &str, body: &mut Map<String, Value>) {
        let known = self.known();
        if known.call_extras.is_empty() {
            return;
        }
        let messages = body.get_mut("messages").and_then(Value::as_array_mut).into_iter().flatten();
        let calls = messages.filter_map(|message| message.get_mut("tool_calls")?.as_array_mut()).flatten();
        for call in calls.filter_map(Value::as_object_mut) {
            let id = call.get("id").and_then(Value::as_str).unwrap_or_default();
            let is_it = |kept: &&(String, String, Value)| (kept.0.as_str(), kept.1.as_str()) == (place, id);
            if let Some((_, _, extra)) = known.call_extras.iter().rev().find(is_it) {
                call.insert("extra_content".into(), extra.clone());
            }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_go_back_with_what_their_server_gave_them() {
        let memory = RemoteMemory::default();
        let signature = json!({ "google": { "thought_signature": "x" } });
        memory.keep_call_extra("here", "a", signature.clone());
        memory.keep_call_extra("there", "b", signature.clone());
        let messages = json!([{ "role": "user" }, { "tool_calls": [{ "id": "a" }, { "id": "b" }] }]);
        let mut body = json!({ "messages": messages }).as_object().unwrap().clone();
        memory.add_call_extras("here", &mut body);
        let calls = &body["messages"][1]["tool_calls"];
        assert_eq!((&calls[0]["extra_content"], calls[1].get("extra_content")), (&signature, None));
        (0..=MAX_CALL_EXTRAS).for_each(|n| memory.keep_call_extra("here", &n.to_string(), Value::Null));
        assert_eq!(memory.known().call_extras.len(), MAX_CALL_EXTRAS);
    }
}
