//! Renders messages to a prompt by the model's chat template.
//!
//! Templates are Jinja as Python renders it. They come from files, so instructions, recursion and output are bounded.
//! Rendering also reports which spans are the words of people, files and tools, so that control tokens typed there
//! stay text.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use minijinja::Environment;
use serde_json::{Map, Value};
use weights::{Container, WeightFile};

use crate::error::{EngineError, Result};

mod environment;
mod json;
mod methods;
mod python;
mod rewrite;
mod spans;
mod strftime;
mod values;

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
pub struct ChatTemplate {
    environment: Environment<'static>,
    source: String,
}

const NAME: &str = "chat_template";

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
        let mut environment = environment::new();
        let text = rewrite::rewrite(source);
        environment.add_template_owned(NAME, text).map_err(|error| {
            let line = error.line().map_or(String::new(), |line| format!(", line {line}"));
            let message =
                format!("the chat template has a syntax error{line}: {}", environment::cause(&error));
            EngineError::new("template.syntax", message, BROKEN)
        })?;
        Ok(Self { environment, source: source.to_string() })
    }

    /// Renders a prompt.
    ///
    /// Errors: `template.raised` with the template's own message, `template.failed` otherwise.
    pub fn render(&self, input: &RenderInput<'_>) -> Result<RenderedPrompt> {
        spans::render(self, input)
    }

    /// Returns the template's source.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the variables that the template reads and does not set.
    pub fn variables(&self) -> HashSet<String> {
        let template = self.environment.get_template(NAME);
        template.map(|template| template.undeclared_variables(false)).unwrap_or_default()
    }

    fn render_text(&self, input: &RenderInput<'_>, messages: &[Value], tools: &Value) -> Result<String> {
        let template = self.environment.get_template(NAME).map_err(|error| environment::failure(&error))?;
        let mut variables = values::variables(input.kwargs);
        variables.extend([
            ("messages".into(), values::list(messages)),
            ("tools".into(), values::value(tools)),
            ("documents".into(), minijinja::Value::from(())),
            ("bos_token".into(), input.bos_token.into()),
            ("eos_token".into(), input.eos_token.into()),
            ("strftime_now".into(), environment::strftime_now(input.now)),
        ]);
        let variables = minijinja::Value::from_pairs(variables);
        environment::render(&template, variables)
    }
}

impl fmt::Debug for ChatTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatTemplate").field("source", &self.source).finish()
    }
}

const BROKEN: &str = "Set another template for this model in the settings, or choose another model.";

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
