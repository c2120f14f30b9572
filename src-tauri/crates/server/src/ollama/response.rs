//! Converts a turn's events to Ollama's format: a JSON object per line, or one for the whole answer.

use contract::Error;
use contract::types::{ErrorInfo, Finish, TokenAlternatives, ToolCall, TurnEventKind, TurnStats};
use serde_json::{Value, json};

use super::request::AnswerKind;
use super::{created_at, line};
use crate::fault::full_text;
use crate::openai::logprobs_value;
use crate::partial_json::arguments_object;
use crate::running_turn::StreamFormat;
use crate::whole_answer::WholeAnswer;

const NS_PER_MS: f64 = 1e6;
const NS_PER_S: f64 = 1e9;

/// What the lines of an answer have in common.
#[derive(Debug, Clone)]
pub struct AnswerHead {
    pub model: String,
    pub kind: AnswerKind,
}

impl AnswerHead {
    fn piece(&self, text: &str, thinking: &str, calls: &[ToolCall]) -> Value {
        let mut value = json!({ "model": self.model, "created_at": created_at(), "done": false });
        let put = |target: &mut Value, text_name: &str| {
            target[text_name] = text.into();
            if !thinking.is_empty() {
                target["thinking"] = thinking.into();
            }
            if !calls.is_empty() {
                target["tool_calls"] = calls.iter().map(call_value).collect::<Vec<_>>().into();
            }
        };
        match self.kind {
            AnswerKind::Generate => put(&mut value, "response"),
            AnswerKind::Chat => {
                let mut message = json!({ "role": "assistant" });
                put(&mut message, "content");
                value["message"] = message;
            }
        }
        value
    }

    /// The answer to a request without a prompt.
    pub fn without_prompt(&self, reason: &str) -> Value {
        let mut value = self.piece("", "", &[]);
        value["done"] = true.into();
        value["done_reason"] = reason.into();
        value
    }
}

fn call_value(call: &ToolCall) -> Value {
    let arguments = arguments_object(&call.arguments).map_or_else(|| json!(call.arguments), Value::Object);
    json!({ "id": call.id, "function": { "name": call.name, "arguments": arguments } })
}

/// Marks the end, with counts and nanoseconds.
fn end(value: &mut Value, stats: &TurnStats) {
    let reason = match stats.finish {
        Finish::Stop | Finish::ToolCalls | Finish::Cancelled => "stop",
        Finish::Length | Finish::ContextFull | Finish::TimeUp => "length",
    };
    let computed = stats.prompt_tokens.saturating_sub(stats.reused_tokens);
    let took = |n: u32, rate: f64| if rate > 0.0 { f64::from(n) / rate * NS_PER_S } else { 0.0 };
    let prefill = took(computed, stats.prefill_tok_s);
    let decode = took(stats.generated_tokens.saturating_sub(1), stats.decode_tok_s);
    value["done"] = true.into();
    value["done_reason"] = reason.into();
    value["total_duration"] = whole(stats.ttft_ms * NS_PER_MS + decode);
    value["load_duration"] = whole(stats.load_ms * NS_PER_MS);
    value["prompt_eval_count"] = stats.prompt_tokens.into();
    value["prompt_eval_duration"] = whole(prefill);
    value["eval_count"] = stats.generated_tokens.into();
    value["eval_duration"] = whole(decode);
}

fn whole(ns: f64) -> Value {
    (ns.max(0.0) as u64).into()
}

/// An answer as one object.
pub fn object_of(answer: &WholeAnswer, head: &AnswerHead) -> Value {
    let mut value = head.piece(&answer.text, &answer.thinking, &answer.calls);
    put_logprobs(&mut value, &answer.logprobs);
    end(&mut value, &answer.stats);
    value
}

/// Writes a line for each piece of an answer.
#[derive(Debug)]
pub struct LineWriter {
    head: AnswerHead,
    /// Probabilities that go with the next piece of text.
    logprobs: Vec<TokenAlternatives>,
}

impl LineWriter {
    pub fn new(head: AnswerHead) -> Self {
        Self { head, logprobs: Vec::new() }
    }

    fn piece(&mut self, text: &str, thinking: &str, calls: &[ToolCall]) -> Value {
        let mut value = self.head.piece(text, thinking, calls);
        put_logprobs(&mut value, &std::mem::take(&mut self.logprobs));
        value
    }
}

impl StreamFormat for LineWriter {
    fn begin(&mut self) -> String {
        String::new()
    }

    fn write(&mut self, kind: TurnEventKind) -> String {
        match kind {
            TurnEventKind::Text { text, .. } if !text.is_empty() => line(&self.piece(&text, "", &[])),
            TurnEventKind::Reasoning { text, .. } if !text.is_empty() => line(&self.piece("", &text, &[])),
            // What was sent can't be taken back, but clients know the tag.
            TurnEventKind::Revised { text, .. } => line(&self.piece(&format!("</think>\n\n{text}"), "", &[])),
            TurnEventKind::Logprobs { tokens } => {
                self.logprobs.extend(tokens);
                String::new()
            }
            TurnEventKind::ToolCall { call } => line(&self.piece("", "", &[call])),
            TurnEventKind::Done { stats } => {
                let mut value = self.piece("", "", &[]);
                end(&mut value, &stats);
                line(&value)
            }
            TurnEventKind::Failed { error } => failed(error),
            TurnEventKind::Text { .. }
            | TurnEventKind::Reasoning { .. }
            | TurnEventKind::Queued { .. }
            | TurnEventKind::Loading { .. }
            | TurnEventKind::Prefill { .. }
            | TurnEventKind::Compacting { .. }
            | TurnEventKind::Compacted { .. }
            | TurnEventKind::Notice { .. } => String::new(),
        }
    }

    fn end(&mut self) -> String {
        String::new()
    }
}

fn put_logprobs(value: &mut Value, tokens: &[TokenAlternatives]) {
    if !tokens.is_empty() {
        value["logprobs"] = logprobs_value(tokens);
    }
}

fn failed(error: ErrorInfo) -> String {
    line(&json!({ "error": full_text(&Error::from(error)) }))
}
