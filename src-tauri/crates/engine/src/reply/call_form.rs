//! The form of a reply that is a tool call. Families that write JSON between markup have their own notation; for others
//! it is the JSON that the reply parser reads between any tags.

use serde_json::{Value, json};

use super::ReplyFormat;
use super::format::TagPair;
use crate::constraint::{TextForm, TextPart};
use crate::error::{EngineError, Result};
use crate::tokenizer::Tokenizer;

/// Returns the form of a call of the tool `name`, or of any of `tools`. `prompt` is the rendered prompt.
///
/// Errors: `constraint.tool_unknown`, `constraint.no_tools`, `constraint.tool_notation`.
pub fn call_form(
    format: &ReplyFormat,
    prompt: &str,
    tools: &Value,
    name: Option<&str>,
    tokenizer: &Tokenizer,
) -> Result<TextForm> {
    let writer = CallWriter { tokenizer };
    let functions = callable_functions(tools, name)?;
    let sequences = functions.iter().map(|function| match format {
        _ if format.is_harmony() => Ok(writer.harmony(function, prompt)),
        _ if format.has_messages() => Err(unknown_notation()),
        _ if format.has_recipients => Ok(writer.recipient(function, prompt)),
        _ => match format.calls.iter().find(|tag| !tag.keeps_open && tag.open_text != PYTHON_TAG) {
            Some(tag) if !format.bare_calls => Ok(writer.tagged(function, tag)),
            Some(_) | None => Ok(writer.bare(function)),
        },
    });
    Ok(TextForm::Sequences(sequences.collect::<Result<_>>()?))
}

/// Opens calls of Python code, which is no JSON.
const PYTHON_TAG: &str = "<|python_tag|>";

struct CallableFunction {
    name: String,
    parameters: Value,
}

fn callable_functions(tools: &Value, name: Option<&str>) -> Result<Vec<CallableFunction>> {
    let described = tools.as_array().into_iter().flatten().map(|tool| tool.get("function").unwrap_or(tool));
    let functions: Vec<CallableFunction> = described
        .filter_map(|function| {
            let parameters = function.get("parameters").filter(|it| it.is_object()).cloned();
            let parameters = parameters.unwrap_or_else(|| json!({ "type": "object" }));
            Some(CallableFunction { name: function.get("name")?.as_str()?.to_owned(), parameters })
        })
        .filter(|function| name.is_none_or(|name| function.name == name))
        .collect();
    match (functions.is_empty(), name) {
        (false, _) => Ok(functions),
        (true, Some(name)) => Err(EngineError::new(
            "constraint.tool_unknown",
            format!("The request demands a call of {name}, which is not among its tools"),
            "Name one of the request's tools.",
        )),
        (true, None) => Err(EngineError::new(
            "constraint.no_tools",
            "The request demands a tool call and has no tools",
            "Add tools to the request.",
        )),
    }
}

fn unknown_notation() -> EngineError {
    EngineError::new(
        "constraint.tool_notation",
        "This model's notation of tool calls cannot be demanded",
        "Let the model choose whether it calls a tool.",
    )
}

struct CallWriter<'a> {
    tokenizer: &'a Tokenizer,
}

impl CallWriter<'_> {
    /// A text whose markup is tokens.
    fn literal(&self, text: &str) -> Vec<TextPart> {
        if let Some(token) = self.tokenizer.markup_token(text).filter(|_| !text.is_empty()) {
            return vec![TextPart::Token(token)];
        }
        let (mut parts, mut from) = (Vec::new(), 0);
        for (range, token) in self.tokenizer.marks_in(text) {
            parts.extend(plain(&text[from..range.start]));
            parts.push(TextPart::Token(token));
            from = range.end;
        }
        parts.extend(plain(&text[from..]));
        parts
    }

    /// Text, the function's arguments, text.
    fn around(&self, before: &str, function: &CallableFunction, after: &str) -> Vec<TextPart> {
        let mut parts = self.literal(before);
        parts.push(TextPart::Json(function.parameters.clone()));
        parts.extend(self.literal(after));
        parts
    }

    /// `{"name": …, KEY: …}`.
    fn object(&self, function: &CallableFunction, key: &str) -> Vec<TextPart> {
        let name = Value::from(function.name.as_str());
        let mut parts = vec![TextPart::Literal(format!("{{\"name\": {name}, \"{key}\": "))];
        parts.push(TextPart::Json(function.parameters.clone()));
        parts.push(TextPart::Literal("}".into()));
        parts
    }

    fn bare(&self, function: &CallableFunction) -> Vec<TextPart> {
        self.object(function, "parameters")
    }

    fn recipient(&self, function: &CallableFunction, prompt: &str) -> Vec<TextPart> {
        let begun = if prompt.trim_end().ends_with(">>>") { "" } else { ">>>" };
        self.around(&format!("{begun}{}\n", function.name), function, "")
    }

    /// A message for the function, perhaps after one of reasoning.
    fn harmony(&self, function: &CallableFunction, prompt: &str) -> Vec<TextPart> {
        let mut parts = Vec::new();
        let is_begun = prompt.ends_with("<|channel|>analysis<|message|>");
        let mut reasoning =
            if is_begun { Vec::new() } else { self.literal("<|channel|>analysis<|message|>") };
        reasoning.push(TextPart::AnyText);
        reasoning.extend(self.literal("<|end|><|start|>assistant"));
        match is_begun {
            true => parts.extend(reasoning),
            false => parts.push(TextPart::Optional(reasoning)),
        }
        let head =
            format!("<|channel|>commentary to=functions.{} <|constrain|>json<|message|>", function.name);
        parts.extend(self.around(&head, function, ""));
        parts
    }

    fn tagged(&self, function: &CallableFunction, tag: &TagPair) -> Vec<TextPart> {
        let name = &function.name;
        let has = |text: &str| self.tokenizer.markup_token(text).is_some();
        let (open, close) = (tag.open_text.as_str(), tag.close_text.as_str());
        match open {
            "[TOOL_CALLS]" if has("[ARGS]") => self.around(&format!("{open}{name}[ARGS]"), function, close),
            "<｜tool▁calls▁begin｜>" => {
                let head = format!("{open}<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>");
                self.around(&head, function, &format!("<｜tool▁call▁end｜>{close}"))
            }
            "<|tool_calls_section_begin|>" => {
                let head = format!("{open}<|tool_call_begin|>functions.{name}:0<|tool_call_argument_begin|>");
                self.around(&head, function, &format!("<|tool_call_end|>{close}"))
            }
            _ => {
                let is_list = open == "[TOOL_CALLS]";
                let mut parts = self.literal(open);
                parts.push(TextPart::Literal(if is_list { "[" } else { "\n" }.into()));
                parts.extend(self.object(function, "arguments"));
                parts.push(TextPart::Literal(if is_list { "]" } else { "\n" }.into()));
                parts.extend(self.literal(close));
                parts
            }
        }
    }
}

fn plain(text: &str) -> Option<TextPart> {
    (!text.is_empty()).then(|| TextPart::Literal(text.into()))
}
