//! Ways of writing calls that one vendor has for itself: a file each, and a line each in `STYLES`.
//!
//! They are told by words of the template, or by the token that a call opens with.

mod atem;
mod gigachat;
mod hunyuan;
mod kimi_k3;
mod minimax_m3;
mod solar;

use super::tool_call::{ToolCall, ToolSchemas};

/// How a vendor's models write replies with calls.
#[derive(Debug)]
pub struct CallStyle {
    /// Stands in every template of it, and in no other.
    pub sign: &'static str,
    /// What reasoning stands between.
    pub reasoning: Option<(&'static str, &'static str)>,
    /// What calls stand between.
    pub calls: (&'static str, &'static str),
    /// Part a reply and say nothing.
    pub fences: &'static [&'static str],
    /// Tokens inside a call that are part of how it is written.
    pub inner: &'static [&'static str],
    /// The calls of a body; None where it is not wholly made of them, or is written in another way.
    pub read: fn(&str, &ToolSchemas) -> Option<Vec<ToolCall>>,
}

impl CallStyle {
    /// Everything in which a token may have a meaning.
    pub fn literals(&self) -> impl Iterator<Item = &'static str> {
        let reasoning = self.reasoning.into_iter().flat_map(|(open, close)| [open, close]);
        let calls = [self.calls.0, self.calls.1];
        reasoning.chain(calls).chain(self.fences.iter().copied()).chain(self.inner.iter().copied())
    }
}

pub const STYLES: &[&CallStyle] =
    &[&atem::STYLE, &gigachat::STYLE, &hunyuan::STYLE, &kimi_k3::STYLE, &minimax_m3::STYLE, &solar::STYLE];

/// The calls of a body that is written in one of these ways.
pub fn read(body: &str, tools: &ToolSchemas) -> Option<Vec<ToolCall>> {
    STYLES.iter().find_map(|style| (style.read)(body, tools))
}

/// The inside of an element that a text begins with, and what follows it.
fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<(&'a str, &'a str)> {
    text.trim_start().strip_prefix(open)?.split_once(close)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The calls of a body, as `name(arguments)` with sorted keys; none: it isn't read.
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
