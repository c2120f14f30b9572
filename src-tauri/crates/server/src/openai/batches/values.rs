//! Batches as their clients see them.

use app::ApiObject;
use serde_json::{Value, json};

/// A batch should end within this time, as its `completion_window` says. One that takes longer still goes on.
const WINDOW_MS: i64 = 24 * 60 * 60 * 1000;

/// How far a batch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchStatus {
    InProgress,
    Cancelling,
    Completed,
    Cancelled,
    Failed,
}

impl BatchStatus {
    /// The word on the wire and in the database.
    pub fn word(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Cancelling => "cancelling",
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
        }
    }

    /// The field with the time at which it came to this.
    pub fn time_name(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress_at",
            Self::Cancelling => "cancelling_at",
            Self::Completed => "completed_at",
            Self::Cancelled => "cancelled_at",
            Self::Failed => "failed_at",
        }
    }

    /// The status of a stored batch.
    pub fn of(batch: &ApiObject) -> Self {
        let all = [Self::InProgress, Self::Cancelling, Self::Completed, Self::Cancelled, Self::Failed];
        all.into_iter().find(|status| batch.body["status"] == status.word()).unwrap_or(Self::Failed)
    }

    /// Whether requests are still answered.
    pub fn is_running(self) -> bool {
        match self {
            Self::InProgress | Self::Cancelling => true,
            Self::Completed | Self::Cancelled | Self::Failed => false,
        }
    }
}

/// How many requests of a batch were answered, and how many of them with an error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BatchCounts {
    pub n_completed: u64,
    pub n_failed: u64,
}

/// A batch; `running`: the counts of one that runs.
pub fn batch_value(batch: &ApiObject, running: Option<BatchCounts>) -> Value {
    let body = &batch.body;
    let seconds = |name: &str| body[name].as_i64().map(|ms| ms / 1000);
    let stored = |name: &str| body[name].as_u64().unwrap_or_default();
    let (completed, failed) = match running {
        Some(BatchCounts { n_completed, n_failed }) => (n_completed, n_failed),
        None => (stored("completed"), stored("failed")),
    };
    let mut value = json!({
        "id": batch.id, "object": "batch", "endpoint": body["endpoint"], "errors": body["errors"],
        "input_file_id": body["input_file_id"], "completion_window": "24h", "status": body["status"],
        "output_file_id": body["output_file_id"], "error_file_id": body["error_file_id"],
        "created_at": batch.created_ms / 1000, "expires_at": (batch.created_ms + WINDOW_MS) / 1000,
        "request_counts": { "total": body["total"], "completed": completed, "failed": failed },
        "metadata": body["metadata"],
    });
    for name in [
        "in_progress_at",
        "finalizing_at",
        "completed_at",
        "failed_at",
        "expired_at",
        "cancelling_at",
        "cancelled_at",
    ] {
        value[name] = json!(seconds(name));
    }
    if body["usage"].is_object() {
        value["usage"] = body["usage"].clone();
    }
    value
}

/// The tokens of all answers, whose usage is in the form of chat completions or of responses.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct BatchUsage {
    input: u64,
    cached: u64,
    output: u64,
    reasoning: u64,
}

impl BatchUsage {
    /// Adds the usage of an answer.
    pub fn add(&mut self, usage: &Value) {
        let count =
            |names: [&str; 2]| names.iter().find_map(|name| usage.pointer(name)?.as_u64()).unwrap_or(0);
        self.input += count(["/input_tokens", "/prompt_tokens"]);
        self.cached += count(["/input_tokens_details/cached_tokens", "/prompt_tokens_details/cached_tokens"]);
        self.output += count(["/output_tokens", "/completion_tokens"]);
        self.reasoning +=
            count(["/output_tokens_details/reasoning_tokens", "/completion_tokens_details/reasoning_tokens"]);
    }

    pub fn value(&self) -> Value {
        json!({
            "input_tokens": self.input, "input_tokens_details": { "cached_tokens": self.cached },
            "output_tokens": self.output, "output_tokens_details": { "reasoning_tokens": self.reasoning },
            "total_tokens": self.input + self.output,
        })
    }
}

#[cfg(test)]
mod tests {
    use app::ApiObjectKind;

    use super::*;

    #[test]
    fn a_batch_has_times_and_counts() {
        let body = json!({
            "endpoint": "/v1/embeddings", "input_file_id": "file-1", "status": "completed", "total": 3,
            "in_progress_at": 1000, "completed_at": 61_000, "completed": 2, "failed": 1,
            "output_file_id": "file-2", "metadata": {},
        });
        let (id, kind) = ("batch_1".to_owned(), ApiObjectKind::Batch);
        let batch = ApiObject { id, kind, owner: String::new(), parent: None, body, created_ms: 1000 };
        let value = batch_value(&batch, None);
        assert_eq!(value["request_counts"], json!({ "total": 3, "completed": 2, "failed": 1 }));
        assert_eq!((&value["completed_at"], &value["cancelled_at"]), (&json!(61), &Value::Null));
        assert_eq!((&value["expires_at"], &value["output_file_id"]), (&json!(86_401), &json!("file-2")));
        let running = batch_value(&batch, Some(BatchCounts { n_completed: 1, n_failed: 0 }));
        assert_eq!(running["request_counts"]["completed"], 1);
        assert_eq!(BatchStatus::of(&batch), BatchStatus::Completed);
    }

    #[test]
    fn usage_is_summed_in_both_forms() {
        let mut usage = BatchUsage::default();
        usage.add(&json!({ "prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": { "cached_tokens": 3 } }));
        usage.add(&json!({ "input_tokens": 7, "output_tokens": 1, "output_tokens_details": { "reasoning_tokens": 1 } }));
        usage.add(&Value::Null);
        assert_eq!(usage, BatchUsage { input: 12, cached: 3, output: 3, reasoning: 1 });
        assert_eq!(usage.value()["total_tokens"], 15);
    }
}
