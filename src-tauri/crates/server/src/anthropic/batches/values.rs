//! Batches as their clients see them.

use app::ApiObject;
use platform::calendar;
use serde_json::{Value, json};

/// A batch is kept at least this long; the newest objects of all kinds are kept longer.
const LIFETIME_MS: i64 = 24 * 60 * 60 * 1000;

/// How far a batch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchState {
    InProgress,
    Canceling,
    Ended,
}

impl BatchState {
    /// The word on the wire and in the database.
    pub fn word(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Canceling => "canceling",
            Self::Ended => "ended",
        }
    }

    /// The state of a stored batch.
    pub fn of(batch: &ApiObject) -> Self {
        match batch.body["state"].as_str() {
            Some("in_progress") => Self::InProgress,
            Some("canceling") => Self::Canceling,
            Some(_) | None => Self::Ended,
        }
    }
}

/// The requests of a stored batch.
pub fn requests(batch: &ApiObject) -> &[Value] {
    batch.body["requests"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A batch with the counts of its results so far.
pub fn batch_value(batch: &ApiObject, results: &[ApiObject]) -> Value {
    let time = |ms: i64| format!("{}Z", calendar::date_time(ms));
    let moment = |name: &str| batch.body[name].as_i64().map(time);
    let state = BatchState::of(batch);
    let count = |kind: &str| results.iter().filter(|it| it.body["result"]["type"] == kind).count();
    let url = (state == BatchState::Ended).then(|| format!("/v1/messages/batches/{}/results", batch.id));
    json!({
        "id": batch.id, "type": "message_batch", "processing_status": state.word(),
        "request_counts": {
            "processing": requests(batch).len().saturating_sub(results.len()), "succeeded": count("succeeded"),
            "errored": count("errored"), "canceled": count("canceled"), "expired": count("expired"),
        },
        "created_at": time(batch.created_ms), "expires_at": time(batch.created_ms.saturating_add(LIFETIME_MS)),
        "ended_at": moment("ended_ms"), "cancel_initiated_at": moment("cancel_ms"), "archived_at": null,
        "results_url": url,
    })
}

#[cfg(test)]
mod tests {
    use app::ApiObjectKind;

    use super::*;

    fn stored(kind: ApiObjectKind, body: Value) -> ApiObject {
        ApiObject { id: "msgbatch_1".into(), kind, owner: String::new(), parent: None, body, created_ms: 0 }
    }

    #[test]
    fn a_batch_counts_its_results() {
        let body = json!({ "requests": [{}, {}, {}], "state": "in_progress" });
        let mut batch = stored(ApiObjectKind::MessageBatch, body);
        let result = |kind: &str| {
            stored(ApiObjectKind::MessageBatchResult, json!({ "custom_id": "a", "result": { "type": kind } }))
        };
        let value = batch_value(&batch, &[result("succeeded"), result("errored")]);
        let counts = json!({ "processing": 1, "succeeded": 1, "errored": 1, "canceled": 0, "expired": 0 });
        assert_eq!((&value["request_counts"], &value["results_url"]), (&counts, &Value::Null));
        assert_eq!(value["expires_at"], "1970-01-02T00:00:00Z");
        batch.body["state"] = json!("ended");
        batch.body["ended_ms"] = json!(1000);
        let value = batch_value(&batch, &[]);
        assert_eq!(value["ended_at"], "1970-01-01T00:00:01Z");
        assert_eq!(value["results_url"], "/v1/messages/batches/msgbatch_1/results");
    }
}
