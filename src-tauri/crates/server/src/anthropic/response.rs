//! Converts a turn's events to Anthropic's format, as one message or as a stream of events.

use contract::Error;
use contract::types::{ErrorInfo, Finish, ToolCall, TurnEventKind, TurnStats};
use serde_json::{Value, json};

use super::fault::AnthropicFault;
use super::request::ShownBlocks;
use crate::partial_json::arguments_object;
use crate::running_turn::StreamFormat;
use crate::whole_answer::WholeAnswer;

/// Fields of the message that are known before its content.
#[derive(Debug, Clone)]
pub struct MessageHead {
    pub id: String,
    pub model: String,
    /// Stop sequences of the request.
    pub stops: Vec<String>,
    pub show: ShownBlocks,
}

impl MessageHead {
    fn stop(&self, stats: &TurnStats) -> Value {
        let found = stats.stop_index.and_then(|at| self.stops.get(at as usize));
        let reason = match stats.finish {
            Finish::Stop if found.is_some() => "stop_sequence",
            Finish::Stop | Finish::Cancelled => "end_turn",
            Finish::ToolCalls => "tool_use",
            Finish::Length | Finish::TimeUp => "max_tokens",
            Finish::ContextFull => "model_context_window_exceeded",
        };
        json!({ "stop_reason": reason, "stop_sequence": found })
    }

    fn message(&self, content: &Value, stop: &Value, usage: &Value) -> Value {
        json!({
            "id": self.id, "type": "message", "role": "assistant", "model": self.model, "content": content,
            "stop_reason": stop["stop_reason"], "stop_sequence": stop["stop_sequence"], "usage": usage,
        })
    }
}

/// Tokens that came from the context cache count as read from it, as in Anthropic's API.
fn usage(prompt_tokens: u32, reused_tokens: u32, output_tokens: u32) -> Value {
    json!({
        "input_tokens": prompt_tokens.saturating_sub(reused_tokens),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": reused_tokens,
        "output_tokens": output_tokens,
    })
}

fn usage_of(stats: &TurnStats) -> Value {
    usage(stats.prompt_tokens, stats.reused_tokens, stats.generated_tokens)
}

/// The arguments of a call as an object. Text that begins no object becomes the field `arguments`.
fn input(call: &ToolCall) -> Value {
    arguments_object(&call.arguments).map_or_else(|| json!({ "arguments": call.arguments }), Value::Object)
}

/// An answer as one message.
pub fn message_of(answer: &WholeAnswer, head: &MessageHead) -> Value {
    let mut content = Vec::new();
    if !answer.thinking.is_empty() {
        let thinking = if head.show.thinking { answer.thinking.as_str() } else { "" };
        content.push(json!({ "type": "thinking", "thinking": thinking, "signature": "" }));
    }
    // Clients expect at least one block.
    if !answer.text.is_empty() || (answer.calls.is_empty() && content.is_empty()) {
        content.push(json!({ "type": "text", "text": answer.text, "citations": null }));
    }
    let n_calls = if head.show.parallel_calls { answer.calls.len() } else { 1 };
    let calls = answer.calls.iter().take(n_calls);
    content.extend(
        calls.map(|it| json!({ "type": "tool_use", "id": it.id, "name": it.name, "input": input(it) })),
    );
    head.message(&content.into(), &head.stop(&answer.stats), &usage_of(&answer.stats))
}

/// The kind of the block that is open in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenBlock {
    Text,
    Thinking,
}

/// Writes a stream: the head, the blocks with their pieces, and why the message ended.
#[derive(Debug)]
pub struct EventWriter {
    head: MessageHead,
    /// The head is written with the first event that knows the prompt's length.
    has_begun: bool,
    open: Option<OpenBlock>,
    n_blocks: usize,
    n_calls: usize,
    has_failed: bool,
}

impl EventWriter {
    pub fn new(head: MessageHead) -> Self {
        Self { head, has_begun: false, open: None, n_blocks: 0, n_calls: 0, has_failed: false }
    }

    fn start(&mut self, prompt_tokens: u32) -> String {
        if std::mem::replace(&mut self.has_begun, true) {
            return String::new();
        }
        let message = self.head.message(&json!([]), &Value::Null, &usage(prompt_tokens, 0, 0));
        event(&json!({ "type": "message_start", "message": message })) + &event(&json!({ "type": "ping" }))
    }

    fn close(&mut self) -> String {
        match self.open.take() {
            None => String::new(),
            Some(_) => event(&json!({ "type": "content_block_stop", "index": self.n_blocks - 1 })),
        }
    }

    fn open(&mut self, block: &Value) -> String {
        let text = self.close();
        let started =
            json!({ "type": "content_block_start", "index": self.n_blocks, "content_block": block });
        self.n_blocks += 1;
        text + &event(&started)
    }

    fn delta(&self, delta: &Value) -> String {
        event(&json!({ "type": "content_block_delta", "index": self.n_blocks - 1, "delta": delta }))
    }

    fn text(&mut self, piece: &str) -> String {
        let mut text = String::new();
        if self.open != Some(OpenBlock::Text) {
            text.push_str(&self.open(&json!({ "type": "text", "text": "", "citations": null })));
            self.open = Some(OpenBlock::Text);
        }
        if !piece.is_empty() {
            text.push_str(&self.delta(&json!({ "type": "text_delta", "text": piece })));
        }
        text
    }

    fn thinking(&mut self, piece: &str) -> String {
        let mut text = String::new();
        if self.open != Some(OpenBlock::Thinking) {
            text.push_str(&self.open(&json!({ "type": "thinking", "thinking": "", "signature": "" })));
            self.open = Some(OpenBlock::Thinking);
        }
        if self.head.show.thinking {
            text.push_str(&self.delta(&json!({ "type": "thinking_delta", "thinking": piece })));
        }
        text
    }

    fn call(&mut self, call: &ToolCall) -> String {
        self.n_calls += 1;
        if self.n_calls > 1 && !self.head.show.parallel_calls {
            return String::new();
        }
        let block = json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": {} });
        let partial = &call.arguments;
        let text =
            self.open(&block) + &self.delta(&json!({ "type": "input_json_delta", "partial_json": partial }));
        text + &event(&json!({ "type": "content_block_stop", "index": self.n_blocks - 1 }))
    }

    fn done(&mut self, stats: &TurnStats) -> String {
        let mut text = String::new();
        if self.n_blocks == 0 {
            text.push_str(&self.text(""));
        }
        text.push_str(&self.close());
        let delta =
            json!({ "type": "message_delta", "delta": self.head.stop(stats), "usage": usage_of(stats) });
        text.push_str(&event(&delta));
        text
    }

    fn failed(&mut self, error: ErrorInfo) -> String {
        self.has_failed = true;
        event(&AnthropicFault::from(Error::from(error)).body())
    }
}

impl StreamFormat for EventWriter {
    fn begin(&mut self) -> String {
        String::new()
    }

    fn write(&mut self, kind: TurnEventKind) -> String {
        let started = match &kind {
            TurnEventKind::Prefill { total, .. } => return self.start(*total),
            TurnEventKind::Done { stats } => self.start(stats.prompt_tokens),
            TurnEventKind::Text { .. }
            | TurnEventKind::Reasoning { .. }
            | TurnEventKind::Revised { .. }
            | TurnEventKind::ToolCall { .. } => self.start(0),
            TurnEventKind::Queued { .. }
            | TurnEventKind::Loading { .. }
            | TurnEventKind::Compacting { .. }
            | TurnEventKind::Compacted { .. }
            | TurnEventKind::Logprobs { .. }
            | TurnEventKind::Notice { .. }
            | TurnEventKind::Failed { .. } => String::new(),
        };
        started
            + &match kind {
                TurnEventKind::Text { text, .. } if !text.is_empty() => self.text(&text),
                TurnEventKind::Reasoning { text, .. } if !text.is_empty() => self.thinking(&text),
                // What was sent can't be taken back; the rest of the text goes on in a new block.
                TurnEventKind::Revised { text, .. } if !text.is_empty() => {
                    let closed = self.close();
                    closed + &self.text(&text)
                }
                TurnEventKind::ToolCall { call } => self.call(&call),
                TurnEventKind::Done { stats } => self.done(&stats),
                TurnEventKind::Failed { error } => self.failed(error),
                _ => String::new(),
            }
    }

    /// A failed stream ends with its error.
    fn end(&mut self) -> String {
        if self.has_failed { String::new() } else { event(&json!({ "type": "message_stop" })) }
    }
}

/// One server-sent event, named by its type.
fn event(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default())
}
