//! Arguments between tags: XML of several vendors, and GLM's keys and values. What follows an
//! end tag shows whether it is the real one or part of an argument.

use serde_json::{Map, Value};

use super::tool_call::{self, ToolCall, ToolSchemas};

/// An element that holds an argument, and what may follow its end.
struct ArgumentTag {
    open: &'static str,
    close: &'static str,
    follow: &'static [&'static str],
}

const ARGUMENTS: &[ArgumentTag] = &[
    ArgumentTag { open: "<parameter", close: "</parameter>", follow: AFTER_PARAMETER },
    ArgumentTag { open: "<param ", close: "</param>", follow: AFTER_PARAMETER },
    ArgumentTag { open: "<arg_value>", close: "</arg_value>", follow: AFTER_VALUE },
    ArgumentTag {
        open: "<atem:parameter",
        close: "</atem:parameter>",
        follow: &["<atem:parameter", "</atem:invoke>"],
    },
    ArgumentTag {
        open: "<arg_value:opensource>",
        close: "</arg_value:opensource>",
        follow: &["<arg_key:opensource>", "</tool_call:opensource>"],
    },
];

const AFTER_PARAMETER: &[&str] = &["<parameter", "<param ", "</function>", "</invoke>"];
const AFTER_FUNCTION: &[&str] = &["<function", "<invoke"];
const AFTER_VALUE: &[&str] = &["<arg_key>"];

/// Ends of functions whose model left out the end of the last argument.
const FUNCTION_ENDS: [&str; 3] = ["</function>", "</invoke>", "</atem:invoke>"];

/// Splits a text at the end tag that one of `follow`, or nothing, follows. Where there is none, the first end tag counts.
pub fn split_at_end<'a>(text: &'a str, close: &str, follow: &[&str]) -> Option<(&'a str, &'a str)> {
    let is_end = |at: usize| {
        let after = text[at + close.len()..].trim_start();
        after.is_empty() || follow.iter().any(|tag| after.starts_with(tag))
    };
    let ends = text.match_indices(close).map(|(at, _)| at);
    let at = ends.clone().find(|at| is_end(*at)).or_else(|| ends.clone().next())?;
    Some((&text[..at], &text[at + close.len()..]))
}

/// Returns whether a body of elements ends inside an argument. None: it has no elements with arguments.
pub fn is_argument_open(body: &str) -> Option<bool> {
    let first = |text: &str| {
        text.match_indices('<').find_map(|(at, _)| {
            let tag = ARGUMENTS.iter().find(|tag| text[at..].starts_with(tag.open))?;
            Some((at, tag))
        })
    };
    let mut rest = body;
    first(rest)?;
    while let Some((at, tag)) = first(rest) {
        let inner = &rest[at + tag.open.len()..];
        let is_whole = |at: usize| {
            let after = inner[at + tag.close.len()..].trim_start();
            after.is_empty() || tag.follow.iter().any(|tag| after.starts_with(tag))
        };
        let Some((end, _)) = inner.match_indices(tag.close).find(|(at, _)| is_whole(*at)) else {
            return Some(!FUNCTION_ENDS.iter().any(|end| body.trim_end().ends_with(end)));
        };
        rest = &inner[end + tag.close.len()..];
    }
    Some(false)
}

/// `<function=f><parameter=x>1</parameter></function>`, `<invoke name="f"><parameter name="x">1</parameter></invoke>`,
/// and `<function=f>{"x": 1}</function>`.
pub fn xml(body: &str, tools: &ToolSchemas) -> Option<Vec<ToolCall>> {
    let mut rest = body;
    let mut calls = Vec::new();
    while !rest.is_empty() {
        let call_of =
            element(rest, "function", AFTER_FUNCTION).or_else(|| element(rest, "invoke", AFTER_FUNCTION))?;
        let call = match call_of.inner.trim() {
            inner if inner.starts_with('{') => tool_call::parse_arguments(call_of.name, inner)?,
            inner => ToolCall::new(call_of.name, parameters(call_of.name, inner, tools)?)?,
        };
        calls.push(call);
        rest = call_of.after.trim_start();
    }
    Some(calls)
}

fn parameters(function: &str, mut inner: &str, tools: &ToolSchemas) -> Option<Map<String, Value>> {
    let mut map = Map::new();
    while !inner.is_empty() {
        let XmlElement { name, attributes, inner: text, after } =
            element(inner, "parameter", AFTER_PARAMETER)
                .or_else(|| element(inner, "param", AFTER_PARAMETER))?;
        // A line break after the tag and before the next belongs to the notation.
        let text = text.strip_prefix('\n').unwrap_or(text);
        let text = text.strip_suffix('\n').unwrap_or(text);
        let data = text.trim().strip_prefix("<![CDATA[").and_then(|text| text.strip_suffix("]]>"));
        let value = match data {
            Some(text) => Value::String(text.into()),
            None if attributes.contains("string=\"true\"") => Value::String(text.into()),
            None => tools.value(function, name, text),
        };
        map.insert(name.into(), value);
        inner = after.trim_start();
    }
    Some(map)
}

/// `<tag=name>inner</tag>after` or `<tag name="name" attributes>inner</tag>after`.
struct XmlElement<'a> {
    name: &'a str,
    attributes: &'a str,
    inner: &'a str,
    after: &'a str,
}

/// Parses the element at the start of a text. The last end tag may be missing.
fn element<'a>(text: &'a str, tag: &str, follow: &[&str]) -> Option<XmlElement<'a>> {
    let rest = text.strip_prefix('<')?.strip_prefix(tag)?;
    let (head, rest) = rest.split_once('>')?;
    let head = head.strip_prefix('=').or_else(|| head.trim_start().strip_prefix("name="))?.trim();
    let quoted = head.strip_prefix('"').and_then(|head| head.split_once('"'));
    let (name, attributes) = quoted.unwrap_or((head.trim_matches('\''), ""));
    let close = format!("</{tag}>");
    let (inner, after) = split_at_end(rest, &close, follow).unwrap_or((rest, ""));
    Some(XmlElement { name, attributes, inner, after })
}

/// `name`, then `<arg_key>x</arg_key><arg_value>1</arg_value>` per argument: GLM.
pub fn keyed(body: &str, tools: &ToolSchemas) -> Option<Vec<ToolCall>> {
    let (name, mut rest) = body.split_at(body.find("<arg_key>")?);
    let mut map = Map::new();
    let between = |text: &mut &str, tag: &str, follow: &[&str]| -> Option<String> {
        let inner = text.trim_start().strip_prefix(&format!("<{tag}>"))?;
        let (inner, after) = split_at_end(inner, &format!("</{tag}>"), follow)?;
        *text = after;
        Some(inner.to_string())
    };
    while !rest.trim().is_empty() {
        let key = between(&mut rest, "arg_key", &["<arg_value>"])?.trim().to_string();
        let text = between(&mut rest, "arg_value", AFTER_VALUE)?;
        let value = tools.value(name.trim(), &key, &text);
        map.insert(key, value);
    }
    Some(vec![ToolCall::new(name, map)?])
}
