//! Parses the body between a model's call tags, in every notation that models are trained to write.
//!
//! The text itself tells the notation: JSON, XML, Python, or a vendor's own. A body is parsed wholly or not at all.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::elements;
use super::literal::LiteralReader;
use super::styles;
use super::tool_call::{self, ToolCall, ToolSchemas, object};

/// Names of the field that holds the arguments.
pub const ARGUMENT_KEYS: [&str; 4] = ["arguments", "parameters", "args", "input"];

pub const DEEPSEEK_PREFIX: &str = "｜DSML｜";

/// Parses the calls of a body. `None` unless all of it is calls.
pub fn parse(body: &str, tools: &ToolSchemas) -> Option<Vec<ToolCall>> {
    let body = without_prefix(body);
    let body = body.trim();
    let calls = styles::read(body, tools)
        .or_else(|| json(body))
        .or_else(|| elements::xml(body, tools))
        .or_else(|| vendor(body))
        .or_else(|| elements::keyed(body, tools))
        .or_else(|| named(body))
        .or_else(|| python(body))?;
    (!calls.is_empty()).then_some(calls)
}

/// Returns the body without the prefix that DeepSeek writes in every tag. Other tags are part of an argument.
pub fn without_prefix(body: &str) -> Cow<'_, str> {
    if !body.contains(DEEPSEEK_PREFIX) {
        return Cow::Borrowed(body);
    }
    let mut body = body.to_owned();
    for tag in ["<", "</"].iter().flat_map(|open| ["invoke", "parameter"].map(|tag| (open, tag))) {
        let (open, tag) = tag;
        body = body.replace(&format!("{open}{DEEPSEEK_PREFIX}{tag}"), &format!("{open}{tag}"));
    }
    Cow::Owned(body)
}

/// Parses objects one after another, or in a list.
fn json(body: &str) -> Option<Vec<ToolCall>> {
    if !body.starts_with(['{', '[']) {
        return None;
    }
    let mut reader = LiteralReader::new(body);
    let mut calls = Vec::new();
    while !reader.is_done() {
        match strict(&mut reader).or_else(|| reader.value())? {
            Value::Array(items) => {
                for item in items {
                    calls.push(described(item)?);
                }
            }
            item => calls.push(described(item)?),
        }
        while reader.take(";") || reader.take(",") {}
    }
    Some(calls)
}

/// Reads a value of strict JSON, and the white space after it.
pub fn strict(reader: &mut LiteralReader<'_>) -> Option<Value> {
    let mut values = serde_json::Deserializer::from_str(reader.rest).into_iter::<Value>();
    let value = values.next()?.ok()?;
    reader.rest = reader.rest[values.byte_offset()..].trim_start();
    Some(value)
}

/// `{"name": …, "arguments": …}` with vendors' names for both, or `{"name": {…}}`.
pub fn described(value: Value) -> Option<ToolCall> {
    let Value::Object(mut map) = value else { return None };
    if let Some(Value::Object(function)) = map.get("function") {
        let id = map.get("id").and_then(Value::as_str).map(str::to_string);
        return Some(ToolCall { id, ..described(Value::Object(function.clone()))? });
    }
    let name =
        ["name", "tool_name", "function"].iter().find_map(|key| map.get(*key)?.as_str().map(str::to_string));
    let Some(name) = name else {
        let (name, arguments) = map.iter().next().filter(|_| map.len() == 1)?;
        return ToolCall::new(name, arguments.as_object()?.clone());
    };
    let arguments = ARGUMENT_KEYS.iter().find_map(|key| map.remove(*key)).unwrap_or(Value::Null);
    let id = ["id", "tool_call_id"].iter().find_map(|key| Some(map.get(*key)?.as_str()?.to_string()));
    Some(ToolCall { id, ..ToolCall::new(&name, object(arguments)?)? })
}

/// Calls between vendor tags, with a name, a separator and JSON: DeepSeek, Kimi, Mistral, Gemma.
fn vendor(body: &str) -> Option<Vec<ToolCall>> {
    if body.contains("<｜tool▁sep｜>") {
        return each(body, "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", deepseek);
    }
    if body.contains("<|tool_call_argument_begin|>") {
        return each(body, "<|tool_call_begin|>", "<|tool_call_end|>", kimi);
    }
    if let Some((head, arguments)) = body.split_once("[ARGS]") {
        let (name, id) = head.split_once("[CALL_ID]").map_or((head, None), |(name, id)| (name, Some(id)));
        let id = id.map(|id| id.trim().to_string());
        return Some(vec![ToolCall { id, ..tool_call::parse_arguments(name, arguments)? }]);
    }
    let mut reader = LiteralReader::new(body);
    let mut calls = Vec::new();
    while reader.take("call:") {
        let name = reader.name()?;
        let Value::Object(arguments) = reader.value()? else { return None };
        calls.push(ToolCall::new(name, arguments)?);
    }
    (!calls.is_empty() && reader.is_done()).then_some(calls)
}

fn each(
    body: &str,
    open: &str,
    close: &str,
    read: fn(&mut LiteralReader<'_>) -> Option<ToolCall>,
) -> Option<Vec<ToolCall>> {
    let mut reader = LiteralReader::new(body);
    let mut calls = Vec::new();
    while !reader.is_done() {
        reader.take(open);
        let call = read(&mut reader)?;
        let is_last = !reader.take(close) && !reader.rest.starts_with(open);
        calls.push(call);
        if is_last && !reader.is_done() {
            return None;
        }
    }
    Some(calls)
}

/// `name<sep>{…}`, or `function<sep>name` and JSON in a code block.
fn deepseek(reader: &mut LiteralReader<'_>) -> Option<ToolCall> {
    let head = before(reader, "<｜tool▁sep｜>")?;
    if reader.is_done() || reader.rest.starts_with(['{', '<']) {
        return ToolCall::new(head, arguments(reader)?);
    }
    let name = before(reader, "```json")?;
    let arguments = arguments(reader)?;
    reader.take("```");
    ToolCall::new(name, arguments)
}

/// `functions.name:0<argument>{…}`.
fn kimi(reader: &mut LiteralReader<'_>) -> Option<ToolCall> {
    let id = before(reader, "<|tool_call_argument_begin|>")?.trim();
    let name = id.rsplit_once(':').map_or(id, |(name, _)| name);
    Some(ToolCall { id: Some(id.to_string()), ..ToolCall::new(name, arguments(reader)?)? })
}

/// Reads up to a separator, and the separator.
fn before<'a>(reader: &mut LiteralReader<'a>, separator: &str) -> Option<&'a str> {
    let (before, after) = reader.rest.split_once(separator)?;
    reader.rest = after.trim_start();
    Some(before)
}

/// Reads an object. Its strings may contain tags. Nothing is an empty object.
pub fn arguments(reader: &mut LiteralReader<'_>) -> Option<Map<String, Value>> {
    if reader.is_done() || reader.rest.starts_with('<') {
        return Some(Map::new());
    }
    object(strict(reader).or_else(|| reader.value())?)
}

/// `name` and its arguments as JSON.
fn named(body: &str) -> Option<Vec<ToolCall>> {
    let mut reader = LiteralReader::new(body);
    let name = reader.name()?;
    if !reader.rest.starts_with('{') {
        return None;
    }
    Some(vec![tool_call::parse_arguments(name, reader.rest)?])
}

/// `[f(x=1), g(y="a")]`, or one such call per line, also inside `print(…)`.
fn python(body: &str) -> Option<Vec<ToolCall>> {
    let mut reader = LiteralReader::new(body);
    let is_list = reader.take("[");
    let mut calls = Vec::new();
    while !(reader.is_done() || is_list && reader.take("]")) {
        let prints = reader.take("print(");
        let name = reader.name()?;
        if !reader.take("(") {
            return None;
        }
        calls.push(ToolCall::new(name, reader.keywords()?)?);
        if prints && !reader.take(")") {
            return None;
        }
        while reader.take(",") || reader.take(";") {}
    }
    reader.is_done().then_some(calls)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tools() -> ToolSchemas {
        let properties = json!({"x": {"type": "string"}, "n": {"type": "integer"}});
        ToolSchemas::new(
            &json!([{"type": "function", "function": {"name": "f", "parameters": {"properties": properties}}}]),
        )
    }

    fn check(body: &str, expected: &[(&str, Value)]) {
        let calls = parse(body, &tools()).unwrap_or_default();
        let got: Vec<(String, Value)> = calls
            .into_iter()
            .map(|call| (call.name, serde_json::from_str(&call.arguments).expect("arguments are JSON")))
            .collect();
        let expected: Vec<(String, Value)> =
            expected.iter().map(|(name, it)| (name.to_string(), it.clone())).collect();
        assert_eq!(got, expected, "{body}");
    }

    #[test]
    fn every_call_notation_is_parsed() {
        let one = [("f", json!({"x": "a", "n": 1}))];
        check(r#"{"name": "f", "arguments": {"x": "a", "n": 1}}"#, &one);
        check(r#"{"type": "function", "name": "f", "parameters": {"x": "a", "n": 1}}"#, &one);
        check(r#"{"function": {"name": "f", "arguments": "{\"x\": \"a\", \"n\": 1}"}}"#, &one);
        check(r#"[{"tool_call_id": "0", "tool_name": "f", "parameters": {"x": "a", "n": 1}}]"#, &one);
        check(r#"[{"f": {"x": "a", "n": 1}}]"#, &one);
        check("{'name': 'f', 'arguments': {'x': 'a', 'n': 1}}", &one);
        check(
            "<function=f>\n<parameter=x>\na\n</parameter>\n<parameter=n>\n1\n</parameter>\n</function>",
            &one,
        );
        check(
            "<invoke name=\"f\"><parameter name=\"x\">a</parameter><parameter name=\"n\">1</parameter></invoke>",
            &one,
        );
        check("<function=f>{\"x\": \"a\", \"n\": 1}</function>", &one);
        check(
            "<function name=\"f\"><param name=\"x\"><![CDATA[a]]></param><param name=\"n\">1</param></function>",
            &one,
        );
        check(
            "<｜DSML｜invoke name=\"f\"><｜DSML｜parameter name=\"x\" string=\"true\">a</｜DSML｜parameter>\
            <｜DSML｜parameter name=\"n\" string=\"false\">1</｜DSML｜parameter></｜DSML｜invoke>",
            &one,
        );
        check("call:f{n:1,x:<|\"|>a<|\"|>}", &one);
        check("f[ARGS]{\"x\": \"a\", \"n\": 1}", &one);
        check(
            "f\n<arg_key>x</arg_key>\n<arg_value>a</arg_value>\n<arg_key>n</arg_key>\n<arg_value>1</arg_value>",
            &one,
        );
        check("[f(x=\"a\", n=1)]", &one);
        check("print(f(x='a', n=1))", &one);
        check("f\n{\"x\": \"a\", \"n\": 1}", &one);
        check(
            "<｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"x\": \"a\", \"n\": 1}\n```<｜tool▁call▁end｜>",
            &one,
        );
        check("<｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"x\": \"a\", \"n\": 1}<｜tool▁call▁end｜>", &one);
        check(
            "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{\"x\": \"a\", \"n\": 1}<|tool_call_end|>",
            &one,
        );
    }

    #[test]
    fn several_calls_or_none_are_parsed() {
        let two = [("f", json!({})), ("g", json!({"y": [1, 2]}))];
        check(r#"{"name": "f"}; {"name": "g", "parameters": {"y": [1, 2]}}"#, &two);
        check(r#"[{"name": "f", "arguments": {}}, {"name": "g", "arguments": {"y": [1, 2]}}]"#, &two);
        check("[f(), g(y=[1, 2])]", &two);
        check("<function=f></function><function=g><parameter=y>[1, 2]</parameter></function>", &two);
        for body in [
            "",
            "hello",
            "{",
            r#"{"name": "f", "arguments": 3}"#,
            "{\"a\": 1}",
            "[1]",
            "f(1)",
            "f(x=)",
            "<function=>",
            "{\"name\": \"f\"} and more",
            "call:f",
            "[f(x=1)] and",
            "f[ARGS]nothing",
        ] {
            check(body, &[]);
        }
    }

    #[test]
    fn tags_inside_arguments_are_text() {
        let check = |body: &str, text: &str| check(body, &[("f", json!({"x": text}))]);
        let parameter =
            |text: &str| format!("<function=f>\n<parameter=x>\n{text}\n</parameter>\n</function>");
        for text in [
            "a </tool_call> b",
            "a </parameter> b",
            "a </function> b",
            "<tool_call>{\"name\": \"g\"}</tool_call>",
            "<parameter=y>1</parameter> c",
        ] {
            check(&parameter(text), text);
            check(&format!("f\n<arg_key>x</arg_key>\n<arg_value>{text}</arg_value>\n"), text);
            let quoted = Value::from(text);
            check(&format!("{{\"name\": \"f\", \"arguments\": {{\"x\": {quoted}}}}}"), text);
            check(&format!("<function=f>{{\"x\": {quoted}}}</function>"), text);
            check(&format!("f(x={quoted})"), text);
        }
        check("f\n<arg_key>x</arg_key>\n<arg_value>a </arg_value> b</arg_value>", "a </arg_value> b");
        for text in
            ["a <｜tool▁call▁end｜> b", "a <｜tool▁call▁begin｜>g<｜tool▁sep｜>{} b", "```json\n{}\n```"]
        {
            let quoted = Value::from(text);
            check(
                &format!("<｜tool▁call▁begin｜>f<｜tool▁sep｜>{{\"x\": {quoted}}}<｜tool▁call▁end｜>"),
                text,
            );
            check(
                &format!(
                    "<｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{{\"x\": {quoted}}}\n```<｜tool▁call▁end｜>"
                ),
                text,
            );
        }
        check(
            "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{\"x\": \"<|tool_call_end|>\"}<|tool_call_end|>",
            "<|tool_call_end|>",
        );
    }

    #[test]
    fn text_arguments_stay_text() {
        check("<function=f><parameter=x>12</parameter></function>", &[("f", json!({"x": "12"}))]);
        check("<function=f><parameter=other>12</parameter></function>", &[("f", json!({"other": 12}))]);
        check("<function=f><parameter=n>twelve\n</parameter></function>", &[("f", json!({"n": "twelve"}))]);
    }
}
