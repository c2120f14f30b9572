//! Call notations of single vendors: one file and one line in `STYLES` each.
//!
//! Recognized by words of the template, or by the token that opens a call.

mod atem;
mod gigachat;
mod hunyuan;
mod kimi_k3;
mod minimax_m3;
mod solar;

use super::elements;
use super::tool_call::{ToolCall, ToolSchemas};

/// How a vendor's models write replies with calls.
#[derive(Debug)]
pub struct CallStyle {
    /// Occurs in every template of this style, and in no other.
    pub sign: &'static str,
    /// Tags around reasoning.
    pub reasoning: Option<(&'static str, &'static str)>,
    /// Tags around calls.
    pub calls: (&'static str, &'static str),
    /// Separators without content.
    pub fences: &'static [&'static str],
    /// Tokens inside a call that are part of its notation.
    pub inner: &'static [&'static str],
    /// Parses the calls of a body. `None` unless all of it is calls in this notation.
    pub read: fn(&str, &ToolSchemas) -> Option<Vec<ToolCall>>,
}

impl CallStyle {
    /// Iterates over all texts that may contain markup tokens.
    pub fn literals(&self) -> impl Iterator<Item = &'static str> {
        let reasoning = self.reasoning.into_iter().flat_map(|(open, close)| [open, close]);
        let calls = [self.calls.0, self.calls.1];
        reasoning.chain(calls).chain(self.fences.iter().copied()).chain(self.inner.iter().copied())
    }
}

pub const STYLES: &[&CallStyle] =
    &[&atem::STYLE, &gigachat::STYLE, &hunyuan::STYLE, &kimi_k3::STYLE, &minimax_m3::STYLE, &solar::STYLE];

/// Parses a body that is written in one of these notations.
pub fn read(body: &str, tools: &ToolSchemas) -> Option<Vec<ToolCall>> {
    STYLES.iter().find_map(|style| (style.read)(body, tools))
}

/// Splits a text into the content of the element it begins with, and the rest.
fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<(&'a str, &'a str)> {
    text.trim_start().strip_prefix(open)?.split_once(close)
}

/// As `between`, where the content may contain the end tag: the real one is followed by one of `follow`, or nothing.
fn between_followed<'a>(
    text: &'a str,
    open: &str,
    close: &str,
    follow: &[&str],
) -> Option<(&'a str, &'a str)> {
    elements::split_at_end(text.trim_start().strip_prefix(open)?, close, follow)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The calls of a body as `name(arguments)` with sorted keys. Empty if it cannot be read.
    pub fn check(body: &str, expected: &[&str]) {
        let properties = json!({"x": {"type": "string"}, "n": {"type": "integer"}});
        let function = json!({"name": "f", "parameters": {"properties": properties}});
        let tools = ToolSchemas::new(&json!([{"type": "function", "function": function}]));
        let told = |call: ToolCall| {
            let arguments: Value = serde_json::from_str(&call.arguments).expect("arguments are JSON");
            format!("{}({arguments})", call.name)
        };
        let got: Vec<String> = read(body, &tools).unwrap_or_default().into_iter().map(told).collect();
        let expected: Vec<String> = expected.iter().map(|it| sorted(it)).collect();
        assert_eq!(got.iter().map(|it| sorted(it)).collect::<Vec<_>>(), expected, "{body}");
    }

    fn sorted(call: &str) -> String {
        let (name, arguments) = call.split_once('(').expect("a call");
        let arguments = arguments.strip_suffix(')').expect("a call");
        let value: Value = serde_json::from_str(arguments).expect("arguments are JSON");
        let Value::Object(map) = value else { panic!("{call}") };
        let mut pairs: Vec<String> = map.iter().map(|(key, value)| format!("{key}: {value}")).collect();
        pairs.sort();
        format!("{name} {}", pairs.join(", "))
    }
}
