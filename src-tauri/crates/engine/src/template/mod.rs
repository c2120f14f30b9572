//! Messages to the text of a prompt, by the chat template that came with the model.

use std::ops::Range;

use serde_json::{Map, Value};
use weights::WeightFile;

use crate::error::Result;

/// What a template is given. Messages are objects as templates expect them: `role`, `content`, and what else
/// they know (`reasoning_content`, `tool_calls` …).
#[derive(Debug, Clone, Copy)]
pub struct RenderInput<'a> {
    pub messages: &'a [Value],
    /// A list of tools, or null.
    pub tools: &'a Value,
    /// More variables for the template, such as `add_generation_prompt`.
    pub kwargs: &'a Map<String, Value>,
    pub bos_token: &'a str,
    pub eos_token: &'a str,
    /// Local time as `2026-01-15T12:00:00`, for `strftime_now`.
    pub now: Option<&'a str>,
}

/// A stretch of rendered text that a message's `content` (or reasoning, or tool text) became.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentSpan {
    /// Index into the messages.
    pub message: usize,
    /// Bytes of the rendered text.
    pub range: Range<usize>,
    /// This is the message's whole `content` (not its reasoning or a tool's argument).
    pub is_content: bool,
}

/// A prompt and where in it the words of people, files and tools are: in order, without overlap.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rendered {
    pub text: String,
    pub content_spans: Vec<ContentSpan>,
}

/// A compiled chat template.
pub struct ChatTemplate {}

impl ChatTemplate {
    /// The template that a model file carries; None if it carries none.
    pub fn from_weights(file: &WeightFile) -> Result<Option<Self>> {
        unimplemented!()
    }

    pub fn from_source(source: &str) -> Result<Self> {
        unimplemented!()
    }

    /// Errors: `template.raised` with the template's own message, `template.failed` otherwise.
    pub fn render(&self, input: &RenderInput<'_>) -> Result<Rendered> {
        unimplemented!()
    }
}
