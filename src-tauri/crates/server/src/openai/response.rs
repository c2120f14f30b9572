//! Converts a turn's events to OpenAI's format, as chunks or one completion.

use axum::http::StatusCode;
use contract::Error;
use contract::types::{ErrorInfo, Finish, ToolCall, TurnEvent, TurnEventKind, TurnStats};
use serde_json::{Value, json};

use crate::fault::OpenAiFault;
use crate::stream::event;

/// Fields that every chunk of an answer repeats.
#[derive(Debug, Clone)]
pub struct Identity {
    pub id: String,
    /// Unix time in seconds.
    pub created: i64,
    pub model: String,
}

/// Error of a turn that has already started.
pub fn failed(error: &ErrorInfo) -> OpenAiFault {
    let fault = OpenAiFault::from(Error::from(error.clone()));
    match fault.status {
        // Clients can't fix the server's memory, and most don't know status 507.
        StatusCode::INSUFFICIENT_STORAGE => OpenAiFault { status: StatusCode::SERVICE_UNAVAILABLE, ..fault },
        _ => fault,
    }
}

fn finish_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop | Finish::Cancelled => "stop",
        Finish::ToolCalls => "tool_calls",
        Finish::Length | Finish::ContextFull | Finish::TimeUp => "length",
    }
}

fn call_value(call: &ToolCall) -> Value {
    let function = json!({ "name": call.name, "arguments": call.arguments });
    json!({ "id": call.id, "type": "function", "function": function })
}

fn usage(stats: &TurnStats) -> Value {
    json!({
        "prompt_tokens": stats.prompt_tokens,
        "completion_tokens": stats.generated_tokens,
        "total_tokens": stats.prompt_tokens.saturating_add(stats.generated_tokens),
        "prompt_tokens_details": { "cached_tokens": stats.reused_tokens },
        "completion_tokens_details": {
            "accepted_prediction_tokens": stats.accepted_tokens,
            "rejected_prediction_tokens": stats.drafted_tokens.saturating_sub(stats.accepted_tokens),
        },
    })
}

/// Writes a stream: the role, the chunks, one `finish_reason`, the usage if requested, and `[DONE]`.
pub struct StreamWriter {
    identity: Identity,
    include_usage: bool,
    n_calls: usize,
    has_failed: bool,
}

impl StreamWriter {
    pub fn new(identity: Identity, include_usage: bool) -> Self {
        Self { identity, include_usage, n_calls: 0, has_failed: false }
    }

    /// Writes the first chunk and the events so far.
    pub fn begin(&mut self, events: Vec<TurnEvent>) -> String {
        let mut text = self.chunk(&json!({ "role": "assistant", "content": "" }), None);
        events.into_iter().for_each(|event| text.push_str(&self.write(event.kind)));
        text
    }

    pub fn write(&mut self, kind: TurnEventKind) -> String {
        match kind {
            TurnEventKind::Queued { .. }
            | TurnEventKind::Loading { .. }
            | TurnEventKind::Prefill { .. }
            | TurnEventKind::Compacting { .. }
            | TurnEventKind::Compacted { .. }
            | TurnEventKind::Notice { .. } => String::new(),
            TurnEventKind::Text { text, .. } if text.is_empty() => String::new(),
            TurnEventKind::Text { text, .. } => self.chunk(&json!({ "content": text }), None),
            TurnEventKind::Reasoning { text, .. } => self.chunk(&json!({ "reasoning_content": text }), None),
            // What was sent can't be taken back, but clients know the tag.
            TurnEventKind::Revised { text, .. } => {
                self.chunk(&json!({ "content": format!("</think>\n\n{text}") }), None)
            }
            TurnEventKind::ToolCall { call } => {
                let mut delta = call_value(&call);
                delta["index"] = self.n_calls.into();
                self.n_calls += 1;
                self.chunk(&json!({ "tool_calls": [delta] }), None)
            }
            TurnEventKind::Done { stats } => {
                let mut text = self.chunk(&json!({}), Some(finish_reason(stats.finish)));
                if self.include_usage {
                    text.push_str(&self.envelope(&json!([]), &usage(&stats)));
                }
                text
            }
            TurnEventKind::Failed { error } => {
                self.has_failed = true;
                event(&failed(&error).body())
            }
        }
    }

    /// Writes `[DONE]`; a failed stream closes without it, since clients have the error.
    pub fn end(&self) -> String {
        if self.has_failed { String::new() } else { "data: [DONE]\n\n".into() }
    }

    fn chunk(&self, delta: &Value, finish: Option<&str>) -> String {
        let choice = json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish });
        self.envelope(&json!([choice]), &Value::Null)
    }

    fn envelope(&self, choices: &Value, usage: &Value) -> String {
        let Identity { id, created, model } = &self.identity;
        let mut chunk = json!({
            "id": id, "object": "chat.completion.chunk", "created": created, "model": model,
            "system_fingerprint": null, "choices": choices,
        });
        if self.include_usage {
            chunk["usage"] = usage.clone();
        }
        event(&chunk)
    }
}

/// Collects an answer that is sent as one completion.
#[derive(Default)]
pub struct CompletionBuilder {
    text: String,
    reasoning: String,
    calls: Vec<Value>,
    stats: Option<TurnStats>,
}

impl CompletionBuilder {
    pub fn take(&mut self, kind: TurnEventKind) -> Result<(), OpenAiFault> {
        match kind {
            TurnEventKind::Queued { .. }
            | TurnEventKind::Loading { .. }
            | TurnEventKind::Prefill { .. }
            | TurnEventKind::Compacting { .. }
            | TurnEventKind::Compacted { .. }
            | TurnEventKind::Notice { .. } => {}
            TurnEventKind::ToolCall { call } => self.calls.push(call_value(&call)),
            TurnEventKind::Text { text, .. } => self.text.push_str(&text),
            TurnEventKind::Reasoning { text, .. } => self.reasoning.push_str(&text),
            TurnEventKind::Revised { text, reasoning } => (self.text, self.reasoning) = (text, reasoning),
            TurnEventKind::Done { stats } => self.stats = Some(stats),
            TurnEventKind::Failed { error } => return Err(failed(&error)),
        }
        Ok(())
    }

    pub fn into_value(self, identity: &Identity) -> Result<Value, OpenAiFault> {
        let stats =
            self.stats.ok_or_else(|| OpenAiFault::from(Error::bug("an answer ended without an end")))?;
        let mut message = json!({ "role": "assistant", "content": &self.text, "refusal": null });
        if !self.reasoning.is_empty() {
            message["reasoning_content"] = self.reasoning.into();
        }
        if !self.calls.is_empty() {
            if self.text.is_empty() {
                message["content"] = Value::Null;
            }
            message["tool_calls"] = self.calls.into();
        }
        let finish = finish_reason(stats.finish);
        Ok(json!({
            "id": identity.id, "object": "chat.completion", "created": identity.created, "model": identity.model,
            "system_fingerprint": null,
            "choices": [{ "index": 0, "message": message, "logprobs": null, "finish_reason": finish }],
            "usage": usage(&stats),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events() -> Vec<TurnEventKind> {
        let call =
            |id: &str| ToolCall { id: id.into(), name: "look".into(), arguments: "{}".into(), run: None };
        let stats = TurnStats {
            finish: Finish::ToolCalls,
            prompt_tokens: 3,
            reused_tokens: 0,
            generated_tokens: 2,
            drafted_tokens: 0,
            accepted_tokens: 0,
            context_tokens: 5,
            context_limit: 64,
            load_ms: 0.0,
            ttft_ms: 1.0,
            prefill_tok_s: 1.0,
            decode_tok_s: 1.0,
            is_about: false,
            thought_ms: 0.0,
            answered_by: None,
            once: None,
        };
        vec![
            TurnEventKind::Reasoning { text: "Hm.".into(), ids: vec![1] },
            TurnEventKind::ToolCall { call: call("a") },
            TurnEventKind::ToolCall { call: call("b") },
            TurnEventKind::Done { stats },
        ]
    }

    #[test]
    fn text_that_was_reasoning_is_told_apart_afterwards() {
        let identity = Identity { id: "x".into(), created: 1, model: "m".into() };
        let revised = || TurnEventKind::Revised { text: String::new(), reasoning: "Hm.".into() };
        let text = |text: &str| TurnEventKind::Text { text: text.into(), ids: Vec::new() };
        let stats = events().pop().unwrap();
        let mut whole = CompletionBuilder::default();
        for event in [text("Hm."), revised(), text("Yes."), stats] {
            whole.take(event).unwrap();
        }
        let message = &whole.into_value(&identity).unwrap()["choices"][0]["message"];
        assert_eq!((&message["content"], &message["reasoning_content"]), (&json!("Yes."), &json!("Hm.")));
        let mut writer = StreamWriter::new(identity, false);
        assert!(writer.write(revised()).contains("</think>"), "what was sent can't be taken back");
    }

    #[test]
    fn calls_come_whole_and_in_pieces() {
        let identity = Identity { id: "x".into(), created: 1, model: "m".into() };
        let mut whole = CompletionBuilder::default();
        events().into_iter().for_each(|event| whole.take(event).unwrap());
        let whole = whole.into_value(&identity).unwrap();
        let choice = &whole["choices"][0];
        assert_eq!(
            (&choice["finish_reason"], &choice["message"]["content"]),
            (&json!("tool_calls"), &Value::Null)
        );
        assert_eq!(choice["message"]["reasoning_content"], "Hm.");
        let function = json!({ "name": "look", "arguments": "{}" });
        let first = json!({ "id": "a", "type": "function", "function": function });
        assert_eq!(
            (&choice["message"]["tool_calls"][0], choice["message"]["tool_calls"].as_array().map(Vec::len)),
            (&first, Some(2))
        );
        let mut writer = StreamWriter::new(identity, false);
        let text: String = events().into_iter().map(|event| writer.write(event)).collect();
        let chunks: Vec<Value> = text
            .split("\n\n")
            .filter_map(|it| it.strip_prefix("data: "))
            .map(|it| serde_json::from_str(it).unwrap())
            .collect();
        let deltas: Vec<&Value> =
            chunks.iter().map(|chunk| &chunk["choices"][0]["delta"]["tool_calls"][0]).collect();
        assert_eq!(
            (&deltas[1]["index"], &deltas[2]["index"], &deltas[2]["id"]),
            (&json!(0), &json!(1), &json!("b"))
        );
        assert_eq!(chunks[3]["choices"][0]["finish_reason"], "tool_calls");
    }
}
