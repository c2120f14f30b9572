//! Renders messages to a prompt by the model's chat template.
//!
//! Templates are Jinja as Python renders it. They come from files, so time, memory and depth are bounded.
//! Rendering also reports which spans are the words of people, files and tools, so that control tokens typed there
//! stay text.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use jinja::{Failure, RenderError, Template, Variable};
use serde_json::{Map, Value};
use weights::{Container, WeightFile};

use crate::error::{EngineError, Result};
use kernels::Interrupt;

mod budget;
mod spans;
mod strftime;

use budget::RenderBudget;

/// Input of a template. Messages are objects as templates expect them: `role`, `content`, and other known fields
/// (`reasoning_content`, `tool_calls` …).
#[derive(Debug, Clone, Copy)]
pub struct RenderInput<'a> {
    /// The conversation.
    pub messages: &'a [Value],
    /// A list of tools, or null.
    pub tools: &'a Value,
    /// Further template variables, such as `add_generation_prompt`.
    pub kwargs: &'a Map<String, Value>,
    /// Text of the begin-of-sequence token.
    pub bos_token: &'a str,
    /// Text of the end-of-sequence token.
    pub eos_token: &'a str,
    /// Local time as `2026-01-15T12:00:00`, for `strftime_now`.
    pub now: Option<&'a str>,
}

/// A span of rendered text that comes from a message's `content`, reasoning or tool text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentSpan {
    /// Index of the message. `None` for the description of a tool.
    pub message: Option<usize>,
    /// Bytes of the rendered text.
    pub range: Range<usize>,
    /// Whether it is the message's whole `content`, not its reasoning or a tool argument.
    pub is_content: bool,
}

/// A rendered prompt with its content spans, ordered and without overlap.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RenderedPrompt {
    /// The whole prompt.
    pub text: String,
    /// Spans of `text` that come from messages.
    pub content_spans: Vec<ContentSpan>,
}

/// A compiled chat template.
#[derive(Debug)]
pub struct ChatTemplate {
    template: Template,
    source: String,
}

/// A template has a few kilobytes; the longest known has 40.
const MAX_SOURCE_BYTES: usize = 1 << 20;

impl ChatTemplate {
    /// Compiles the template of a model file, if it has one. Errors as [`ChatTemplate::from_source`].
    pub fn from_weights(file: &WeightFile) -> Result<Option<Self>> {
        source_of(file)?.map(|source| Self::from_source(&source)).transpose()
    }

    /// Compiles a template.
    ///
    /// Errors: `template.syntax`, with the line.
    pub fn from_source(source: &str) -> Result<Self> {
        if source.len() > MAX_SOURCE_BYTES {
            let message =
                format!("the chat template has {} bytes, more than a template may have", source.len());
            return Err(EngineError::new("template.syntax", message, BROKEN));
        }
        let template = Template::parse(source).map_err(|error| {
            let message =
                format!("the chat template has a syntax error, line {}: {}", error.line, error.message);
            EngineError::new("template.syntax", message, BROKEN)
        })?;
        Ok(Self { template, source: source.to_string() })
    }

    /// Renders a prompt.
    ///
    /// Errors: `template.raised` with the template's own message, `template.limit` if it takes too long or too much
    /// memory, `template.failed` otherwise.
    pub fn render(&self, input: &RenderInput<'_>) -> Result<RenderedPrompt> {
        spans::render(self, input, None)
    }

    /// Renders a prompt as [`ChatTemplate::render`], until `interrupt` is requested.
    ///
    /// Errors: as there, and `template.cancelled`.
    pub fn render_until(&self, input: &RenderInput<'_>, interrupt: &Interrupt) -> Result<RenderedPrompt> {
        spans::render(self, input, Some(interrupt))
    }

    /// Returns the template's source.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the variables that the template reads and does not set.
    pub fn variables(&self) -> HashSet<String> {
        self.template.variables()
    }

    fn render_text(
        &self,
        input: &RenderInput<'_>,
        messages: &[Value],
        tools: &Value,
        budget: &RenderBudget,
    ) -> Result<String> {
        let now = input.now.and_then(strftime::LocalTime::parse);
        let mut variables: Vec<(&str, Variable<'_>)> =
            input.kwargs.iter().map(|(name, value)| (name.as_str(), Variable::Json(value))).collect();
        variables.extend([
            ("messages", Variable::List(messages)),
            ("tools", Variable::Json(tools)),
            ("documents", Variable::Json(&Value::Null)),
            ("bos_token", Variable::Text(input.bos_token)),
            ("eos_token", Variable::Text(input.eos_token)),
        ]);
        if let Some(now) = now {
            let format = Arc::new(move |format: &str| now.format(format));
            variables.push(("strftime_now", Variable::Function(format)));
        }
        let limits = budget.limits(input, messages, tools);
        let rendered = self.template.render(&variables, &limits).map_err(|error| failed(&error))?;
        budget.note(rendered.work);
        Ok(rendered.text)
    }
}

fn failed(error: &RenderError) -> EngineError {
    let limit = |what: &str, limit: String| {
        let message = format!("the chat template {what} and was stopped (limit: {limit})");
        EngineError::new("template.limit", message, BROKEN)
    };
    match &error.failure {
        Failure::Raised(message) => EngineError::new(
            "template.raised",
            message.clone(),
            "Change the conversation as the message says, or choose another model.",
        ),
        Failure::Invalid(message) => EngineError::new(
            "template.failed",
            format!("the chat template failed, line {}: {message}", error.line),
            "This model's template does not support such a conversation: start a new one, or choose another model.",
        ),
        Failure::TooSlow => limit("takes too long", format!("{} ms", budget::DEADLINE.as_millis())),
        Failure::TooLarge => limit("needs too much memory", format!("{} MB", budget::MAX_BYTES >> 20)),
        Failure::Cancelled => {
            EngineError::new("template.cancelled", "the answer was cancelled", "Ask again.")
        }
    }
}

const BROKEN: &str = "Set another template for this model in the settings, or choose another model.";

/// Formats a local time such as `2026-01-15T12:00:00` as Python's `strftime` does. `None`: it is no time.
pub fn format_time(time: &str, format: &str) -> Option<String> {
    Some(strftime::LocalTime::parse(time)?.format(format))
}

/// Returns the template source of a model file.
///
/// Errors: it is not text.
pub(crate) fn source_of(file: &WeightFile) -> Result<Option<String>> {
    Ok(match file.container() {
        Container::Gguf { .. } => file.metadata().opt_str("tokenizer.chat_template")?.map(str::to_string),
        Container::Safetensors => match file.side_file("chat_template.jinja") {
            Some(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            None => file.side_file("tokenizer_config.json").and_then(configured),
        },
    })
}

/// Reads `chat_template` of a `tokenizer_config.json`: a text, or the `default` of several.
fn configured(bytes: &[u8]) -> Option<String> {
    let config: Value = serde_json::from_slice(bytes).ok()?;
    match &config["chat_template"] {
        Value::String(source) => Some(source.clone()),
        Value::Array(named) => {
            let default = named.iter().find(|entry| entry["name"] == "default").or(named.first())?;
            default["template"].as_str().map(str::to_string)
        }
        _ => None,
    }
}
