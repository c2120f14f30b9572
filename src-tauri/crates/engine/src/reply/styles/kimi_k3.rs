//! Kimi K3: elements between `<|open|>call tool="f" index="1"<|sep|>` and `<|close|>call<|sep|>` with typed
//! arguments, or one JSON element.

use serde_json::{Map, Value};

use super::{CallStyle, between, between_followed};
use crate::reply::tool_call::{self, ToolCall, ToolSchemas};

pub const STYLE: CallStyle = CallStyle {
    sign: "open_tag('call'",
    reasoning: Some(("<|open|>think<|sep|>", "<|close|>think<|sep|>")),
    calls: ("<|open|>tools<|sep|>", "<|close|>tools<|sep|>"),
    fences: &["<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>"],
    inner: &[],
    read,
};

const CALL: &str = "<|open|>call ";
const ARGUMENT: &str = "<|open|>argument ";

fn read(body: &str, _: &ToolSchemas) -> Option<Vec<ToolCall>> {
    let mut rest = body.trim();
    let mut calls = Vec::new();
    while !rest.is_empty() {
        let (call, after) = between_followed(rest, CALL, "<|close|>call<|sep|>", &[CALL])?;
        let (head, inner) = call.split_once("<|sep|>")?;
        let name = attribute(head, "tool")?;
        calls.push(match between(inner, "<|open|>json ", "<|close|>json<|sep|>") {
            Some((json, rest)) if rest.trim().is_empty() => {
                tool_call::parse_arguments(&name, json.split_once("<|sep|>")?.1)?
            }
            Some(_) => return None,
            None => ToolCall::new(&name, arguments(inner)?)?,
        });
        rest = after.trim_start();
    }
    (!calls.is_empty()).then_some(calls)
}

fn arguments(mut inner: &str) -> Option<Map<String, Value>> {
    let mut map = Map::new();
    while !inner.trim().is_empty() {
        let (argument, after) = between_followed(inner, ARGUMENT, "<|close|>argument<|sep|>", &[ARGUMENT])?;
        let (head, text) = argument.split_once("<|sep|>")?;
        let value = match attribute(head, "type")?.as_str() {
            "string" => Value::String(text.into()),
            _ => serde_json::from_str(text).ok()?,
        };
        map.insert(attribute(head, "key")?, value);
        inner = after;
    }
    Some(map)
}

/// Reads an attribute of ` key="a" type="b"`, as the template escapes it.
fn attribute(head: &str, name: &str) -> Option<String> {
    let mut rest = head;
    while let Some((key, tail)) = rest.split_once("=\"") {
        let (value, after) = tail.split_once('"')?;
        if key.trim() == name {
            return Some(value.replace("&quot;", "\"").replace("&amp;", "&"));
        }
        rest = after;
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::reply::styles::tests::check;

    #[test]
    fn calls_are_read() {
        let argument = |key: &str, kind: &str, text: &str| {
            format!("<|open|>argument key=\"{key}\" type=\"{kind}\"<|sep|>{text}<|close|>argument<|sep|>")
        };
        let call =
            |inner: &str| format!("<|open|>call tool=\"f\" index=\"1\"<|sep|>{inner}<|close|>call<|sep|>");
        let two = [argument("x", "string", "a \"b\" <c>\n"), argument("n", "number", "1")].concat();
        let expected = [r#"f({"n":1,"x":"a \"b\" <c>\n"})"#];
        check(&call(&two), &expected);
        check(&[call(&two), call(&two)].concat(), &[expected[0], expected[0]]);
        check(&call("<|open|>json type=\"object\"<|sep|>{\"n\": 1}<|close|>json<|sep|>"), &[r#"f({"n":1})"#]);
        check(&call(&argument("a&amp;&quot;b", "array", "[1, 2]")), &[r#"f({"a&\"b":[1,2]})"#]);
        check(&call(""), &["f({})"]);
        let tagged = argument("x", "string", "a <|close|>argument<|sep|> b <|close|>call<|sep|> c");
        check(&call(&tagged), &[r#"f({"x":"a <|close|>argument<|sep|> b <|close|>call<|sep|> c"})"#]);
        for half in [
            "<|open|>call tool=\"f\" index=\"1\"<|sep|>".to_owned(),
            call(&argument("n", "number", "one")),
            call(&argument("n", "number", "1").replace("<|close|>argument<|sep|>", "")),
            call("<|open|>json type=\"object\"<|sep|>{\"n\": <|close|>json<|sep|>"),
            call("words"),
            "<|open|>call index=\"1\"<|sep|><|close|>call<|sep|>".to_owned(),
        ] {
            check(&half, &[]);
        }
    }
}
