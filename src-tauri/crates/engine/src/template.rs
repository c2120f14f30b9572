//! Messages to the text of a prompt, by the chat template that came with the model.
//!
//! Templates are Jinja, as Python renders it. They come from files: instructions, recursion and output are
//! bounded. Beside the text, rendering tells which stretches of it are the words of people, files and tools, so
//! that control tokens typed there stay text.

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
    /// Index into the messages; None for the description of a tool.
    pub message: Option<usize>,
    /// Bytes of the rendered text.
    pub range: Range<usize>,
    /// This is the message's whole `content` (not its reasoning or a tool's argument).
    pub is_content: bool,
}

/// A prompt and where in it the words of people, files and tools are: in order, without overlap.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RenderedPrompt {
    pub text: String,
    pub content_spans: Vec<ContentSpan>,
}

/// A compiled chat template.
pub struct ChatTemplate {
    environment: Environment<'static>,
    source: String,
}

const NAME: &str = "chat_template";

/// A template is a few kilobytes; the longest known has 40.
const MAX_SOURCE_BYTES: usize = 1 << 20;

impl ChatTemplate {
    /// The template that a model file carries; None if it carries none. Errors as [`ChatTemplate::from_source`].
    pub fn from_weights(file: &WeightFile) -> Result<Option<Self>> {
        source_of(file)?.map(|source| Self::from_source(&source)).transpose()
    }

    /// Errors: `template.syntax`, with the line.
    pub fn from_source(source: &str) -> Result<Self> {
        if source.len() > MAX_SOURCE_BYTES {
            let message = format!("the chat template has {} bytes, too many for one", source.len());
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

    /// Errors: `template.raised` with the template's own message, `template.failed` otherwise.
    pub fn render(&self, input: &RenderInput<'_>) -> Result<RenderedPrompt> {
        spans::render(self, input)
    }

    /// The template as it stood in the file.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Names that it asks for: all that it is not given by itself.
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

const BROKEN: &str = "Name another template for this model in the settings, or choose another model.";

/// The template that a model file carries, as it stands there. Error: it is no text.
pub(crate) fn source_of(file: &WeightFile) -> Result<Option<String>> {
    Ok(match file.container() {
        Container::Gguf { .. } => file.metadata().opt_str("tokenizer.chat_template")?.map(str::to_string),
        Container::Safetensors => match file.side_file("chat_template.jinja") {
            Some(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            None => file.side_file("tokenizer_config.json").and_then(configured),
        },
    })
}

/// `chat_template` of a `tokenizer_config.json`: a text, or several by name of which `default` counts.
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
