//! Reads a call that the end of the reply cut off: its name, and the beginning of its arguments.
//!
//! A call counts only once its whole name has come. What follows is passed on as the beginning of a JSON object: JSON
//! as the model wrote it, other notations with the arguments that came whole.

use serde_json::{Map, Value};

use super::calls::{self, ARGUMENT_KEYS};
use super::literal::LiteralReader;
use super::open_argument::is_open;
use super::tool_call::{ToolCall, ToolSchemas};

/// What the cut body of a call says.
#[derive(Debug, PartialEq, Eq)]
pub enum CutBody {
    /// Whole calls, then the one that was cut.
    Calls(Vec<ToolCall>),
    /// It ends before the name of a tool.
    NoName,
    /// No notation that is known here.
    Unreadable,
}

/// Separators between a name and its arguments as JSON.
const SEPARATORS: [&str; 3] = ["[ARGS]", "<｜tool▁sep｜>", "<|tool_call_argument_begin|>"];

/// What opens each call of a body with several.
const OPENINGS: [&str; 4] = ["<｜tool▁call▁begin｜>", "<|tool_call_begin|>", "<function", "<invoke"];

/// Ends of arguments between tags.
const ARGUMENT_ENDS: [&str; 3] = ["</parameter>", "</param>", "</arg_value>"];

/// Names of the field that holds the tool's name.
const NAME_KEYS: [&str; 3] = ["name", "tool_name", "function"];

/// Reads the body of a call up to where the reply was cut.
pub fn parse_cut(body: &str, tools: &ToolSchemas) -> CutBody {
    let body = calls::without_prefix(body);
    let body = body.trim();
    let is_known = |call: &ToolCall| tools.is_empty() || tools.names().any(|name| name == call.name);
    if body.starts_with(['{', '[']) && !begins_python(body) {
        let calls = json_calls(body, tools);
        return match calls.last() {
            None => CutBody::NoName,
            Some(last) if is_known(last) => CutBody::Calls(calls),
            Some(_) => CutBody::Unreadable,
        };
    }
    if is_ended(body)
        && let Some(calls) = calls::parse(body, tools)
    {
        return CutBody::Calls(calls);
    }
    let at = OPENINGS.iter().filter_map(|opening| body.rfind(opening)).max();
    let (whole, last) = body.split_at(at.unwrap_or(0));
    let whole = if whole.trim().is_empty() { Some(Vec::new()) } else { calls::parse(whole, tools) };
    match whole.zip(last_call(last, tools).filter(is_known)) {
        Some((mut calls, last)) => {
            calls.push(last);
            CutBody::Calls(calls)
        }
        None if is_beginning(body, tools) => CutBody::NoName,
        None => CutBody::Unreadable,
    }
}

/// Returns whether a body ends as a whole call does.
fn is_ended(body: &str) -> bool {
    let ends = ["}", "]", ")", "</function>", "</invoke>", "end｜>", "end|>"];
    ends.iter().any(|end| body.ends_with(end)) && !is_open(body)
}

/// Returns whether a list holds calls in Python's notation.
fn begins_python(body: &str) -> bool {
    body.strip_prefix('[')
        .is_some_and(|rest| rest.trim_start().starts_with(|c: char| c.is_alphabetic() || c == '_'))
}

/// Returns whether a body ends inside the name of a tool, or before it.
fn is_beginning(body: &str, tools: &ToolSchemas) -> bool {
    let body = body.trim_start_matches("call:").trim_start_matches("functions.").trim_start_matches('[');
    let is_tag = body.starts_with('<') && !body.contains('>');
    is_tag || body.is_empty() || tools.names().any(|name| name.starts_with(body))
}

/// Objects one after another, or in a list; the last one may be cut.
fn json_calls(body: &str, tools: &ToolSchemas) -> Vec<ToolCall> {
    let mut calls = Vec::new();
    let mut rest = body.strip_prefix('[').unwrap_or(body).trim_start();
    while !rest.is_empty() {
        let mut reader = LiteralReader::new(rest);
        let whole = calls::strict(&mut reader).or_else(|| {
            reader = LiteralReader::new(rest);
            reader.value()
        });
        match whole.and_then(calls::described) {
            Some(call) => calls.push(call),
            None => {
                calls.extend(object_call(rest, false, tools));
                break;
            }
        }
        while reader.take(";") || reader.take(",") {}
        rest = reader.rest;
    }
    calls
}

/// `{"name": …, "arguments": …` up to where it ends. `is_function`: it is the `function` of a call.
fn object_call(text: &str, is_function: bool, tools: &ToolSchemas) -> Option<ToolCall> {
    let mut reader = LiteralReader::new(text);
    reader.take("{").then_some(())?;
    let (mut name, mut id, mut arguments) = (None, None, None);
    while let Some(key) = reader.string() {
        if !reader.take(":") {
            break;
        }
        let rest = reader.rest;
        let is_new_name = name.is_none() && tools.names().any(|tool| tool == key);
        if rest.starts_with('{') && (ARGUMENT_KEYS.contains(&key.as_str()) || is_new_name) {
            if is_new_name {
                name = Some(key);
            }
            match calls::strict(&mut reader) {
                Some(whole) => arguments = Some(whole.to_string()),
                None => {
                    arguments = Some(object_beginning(rest));
                    break;
                }
            }
        } else if let Some(value) = calls::strict(&mut reader) {
            match value {
                Value::String(text) if NAME_KEYS.contains(&key.as_str()) => name = Some(text),
                Value::String(text) if matches!(key.as_str(), "id" | "tool_call_id") => id = Some(text),
                _ => {}
            }
        } else {
            // One function per call: models that loop nest thousands.
            if key == "function" && !is_function {
                return Some(ToolCall { id, ..object_call(rest, true, tools)? });
            }
            break;
        }
        reader.take(",");
    }
    Some(ToolCall { id, ..ToolCall::cut(&name?, arguments.unwrap_or_default())? })
}

/// The beginning of an object as JSON.
fn object_beginning(text: &str) -> String {
    let inner = text.strip_prefix('{').unwrap_or(text).trim_start();
    let is_json = inner.is_empty() || inner.starts_with('"');
    if is_json { text.trim_end().into() } else { beginning(&pairs(inner, ":")) }
}

/// `{…` of arguments that came whole; empty if none did.
fn beginning(arguments: &Map<String, Value>) -> String {
    let text = Value::Object(arguments.clone()).to_string();
    match arguments.is_empty() {
        true => String::new(),
        false => text.strip_suffix('}').unwrap_or(&text).into(),
    }
}

/// The whole pairs of a name and a value at the beginning of a text. A number or a word is whole only if a
/// comma follows.
fn pairs(text: &str, separator: &str) -> Map<String, Value> {
    let mut reader = LiteralReader::new(text);
    let mut map = Map::new();
    loop {
        let key = match reader.string() {
            Some(key) => Some(key),
            None => reader.name().map(str::to_string),
        };
        let Some(key) = key.filter(|_| reader.take(separator)) else { return map };
        let Some(value) = reader.value() else { return map };
        let goes_on = reader.take(",");
        if goes_on || value.is_string() || value.is_object() || value.is_array() {
            map.insert(key, value);
        }
        if !goes_on {
            return map;
        }
    }
}

/// A single call in a notation that is no JSON object.
fn last_call(text: &str, tools: &ToolSchemas) -> Option<ToolCall> {
    for opening in &OPENINGS[..2] {
        if let Some(rest) = text.strip_prefix(opening) {
            return last_call(rest.trim_start(), tools);
        }
    }
    if let Some((head, arguments)) = SEPARATORS.iter().find_map(|separator| text.split_once(separator)) {
        return separated(head, arguments);
    }
    if text.starts_with('<') {
        return element_call(text, tools);
    }
    let text = text.trim_start_matches('[').trim_start_matches("print(");
    let is_gemma = text.starts_with("call:");
    let mut reader = LiteralReader::new(text.trim_start_matches("call:"));
    let name = reader.name()?;
    let rest = reader.rest;
    match rest.chars().next()? {
        '<' if rest.starts_with("<arg_key>") => whole_elements(name, text, "", tools),
        '{' if is_gemma => ToolCall::cut(name, beginning(&pairs(&rest[1..], ":"))),
        '{' => ToolCall::cut(name, object_beginning(rest)),
        '(' => ToolCall::cut(name, beginning(&pairs(&rest[1..], "="))),
        _ => None,
    }
}

/// A name, perhaps with an id, and arguments as JSON.
fn separated(head: &str, arguments: &str) -> Option<ToolCall> {
    let (name, id) = match head.split_once("[CALL_ID]") {
        Some((name, id)) => (name, Some(id.trim().to_string())),
        None => (head, None),
    };
    let has_number = name.rsplit_once(':').filter(|(_, number)| number.chars().all(|c| c.is_ascii_digit()));
    let (name, id) = match has_number {
        Some((plain, _)) => (plain, Some(name.trim().to_string())),
        None => (name, id),
    };
    let (name, arguments) = match name.trim() {
        "function" => arguments.split_once("```json")?,
        name => (name, arguments),
    };
    let arguments = arguments.trim_start();
    let whole = calls::strict(&mut LiteralReader::new(arguments)).filter(Value::is_object);
    let arguments = whole.map_or_else(|| object_beginning(arguments), |whole| whole.to_string());
    Some(ToolCall { id, ..ToolCall::cut(name, arguments)? })
}

/// `<function=f>` or `<invoke name="f">`, and arguments in elements or as JSON.
fn element_call(text: &str, tools: &ToolSchemas) -> Option<ToolCall> {
    let (head, inner) = text.split_once('>')?;
    let name = head.split_once('=')?.1.trim().trim_matches(['"', '\'']);
    let inner = inner.trim_start();
    if inner.starts_with('{') {
        return ToolCall::cut(name, object_beginning(inner));
    }
    let close = if head.starts_with("<invoke") { "</invoke>" } else { "</function>" };
    whole_elements(name, text, close, tools)
}

/// The arguments whose elements have ended.
fn whole_elements(name: &str, text: &str, close: &str, tools: &ToolSchemas) -> Option<ToolCall> {
    let ends = ARGUMENT_ENDS.iter().filter_map(|end| Some(text.rfind(end)? + end.len()));
    let Some(end) = ends.max() else { return ToolCall::cut(name, String::new()) };
    let whole = calls::parse(&format!("{}{close}", &text[..end]), tools)?.pop()?;
    let Ok(Value::Object(arguments)) = serde_json::from_str(&whole.arguments) else { return None };
    ToolCall::cut(name, beginning(&arguments))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tools() -> ToolSchemas {
        let properties = json!({"x": {"type": "string"}, "n": {"type": "integer"}});
        let function =
            |name: &str| json!({"function": {"name": name, "parameters": {"properties": properties}}});
        ToolSchemas::new(&json!([function("f"), function("get")]))
    }

    fn check(body: &str, expected: &[&str]) {
        let CutBody::Calls(calls) = parse_cut(body, &tools()) else { panic!("no calls: {body}") };
        let told: Vec<String> =
            calls.iter().map(|call| format!("{}({})", call.name, call.arguments)).collect();
        assert_eq!(told, expected, "{body}");
    }

    #[test]
    fn json_is_passed_on_as_it_came() {
        check(r#"{"name": "f", "arguments": {"x": "a b"#, &[r#"f({"x": "a b)"#]);
        check(r#"{"name": "f", "parameters": {"x": "a", "n": 1"#, &[r#"f({"x": "a", "n": 1)"#]);
        check(r#"{"name": "f", "arguments": {"x": "a"}"#, &[r#"f({"x":"a"})"#]);
        check(r#"{"name": "f", "argum"#, &["f()"]);
        check(r#"{"name": "f""#, &["f()"]);
        check(r#"{"id": "c1", "function": {"name": "f", "arguments": {"n": 1"#, &[r#"f({"n": 1)"#]);
        check(r#"[{"f": {"x": "a"#, &[r#"f({"x": "a)"#]);
        check("{\"name\": \"f\", \"arguments\": {'x': 'a', 'n': 1", &[r#"f({"x":"a")"#]);
        check(
            r#"[{"name": "f", "arguments": {"x": "a"}}, {"name": "get", "arguments": {"x"#,
            &[r#"f({"x":"a"})"#, r#"get({"x)"#],
        );
        check(r#"f[ARGS]{"x": "a"#, &[r#"f({"x": "a)"#]);
        check("<function=f>{\"x\": \"a", &[r#"f({"x": "a)"#]);
        check("f\n{\"x\": \"a", &[r#"f({"x": "a)"#]);
        check("<｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"x\": \"a", &[r#"f({"x": "a)"#]);
        check(
            "<｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"n\": 1}<｜tool▁call▁end｜><｜tool▁call▁begin｜>get<｜tool▁sep｜>{\"x\": \"a",
            &[r#"f({"n":1})"#, r#"get({"x": "a)"#],
        );
        check("<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{\"x\": \"a", &[r#"f({"x": "a)"#]);
    }

    #[test]
    fn whole_arguments_of_other_notations_are_kept() {
        check("<function=f>\n<parameter=x>\na\n</parameter>\n<parameter=n>\n1", &[r#"f({"x":"a")"#]);
        check(
            "<function=f>\n<parameter=x>\na\n</parameter>\n</function>\n<function=get>\n<para",
            &[r#"f({"x":"a"})"#, "get()"],
        );
        check("<function=f>\n<parameter=x>\na\n</parameter>\n</function>", &[r#"f({"x":"a"})"#]);
        check("[f(x=\"a\")", &[r#"f({"x":"a"})"#]);
        check("<invoke name=\"f\"><parameter name=\"x\">a</parameter>", &[r#"f({"x":"a")"#]);
        check("f\n<arg_key>x</arg_key>\n<arg_value>a</arg_value>\n<arg_key>n", &[r#"f({"x":"a")"#]);
        check("call:f{x:<|\"|>a<|\"|>,n:1", &[r#"f({"x":"a")"#]);
        check("[f(x=\"a\", n=1", &[r#"f({"x":"a")"#]);
        check("f(x=\"a\", n=[1], ", &[r#"f({"x":"a","n":[1])"#]);
    }

    #[test]
    fn a_call_without_its_whole_name_is_none() {
        for body in
            ["", "{", "{\"na", "{\"name\": \"ge", "[", "ge", "<function=f", "<fun", "call:", "call:ge"]
        {
            assert_eq!(parse_cut(body, &tools()), CutBody::NoName, "{body}");
        }
        let nested = "{\"function\": ".repeat(100_000);
        assert_eq!(parse_cut(&nested, &tools()), CutBody::NoName);
        for body in ["hello there", "{\"name\": \"Ada\", \"age\": 3", "<b>bold</b>", "fly(x="] {
            assert_eq!(parse_cut(body, &tools()), CutBody::Unreadable, "{body}");
        }
    }
}
