//! Hunyuan 3: a name, then keys and values between tags that all end with `:opensource`.

use serde_json::Map;

use super::{CallStyle, between, between_followed};
use crate::reply::tool_call::{ToolCall, ToolSchemas};

pub const STYLE: CallStyle = CallStyle {
    sign: "'<tool_calls{}>'",
    reasoning: Some(("<think:opensource>", "</think:opensource>")),
    calls: ("<tool_calls:opensource>", "</tool_calls:opensource>"),
    fences: &[],
    inner: &[OPEN, CLOSE, SEP, KEY_OPEN, KEY_CLOSE, VALUE_OPEN, VALUE_CLOSE],
    read,
};

const OPEN: &str = "<tool_call:opensource>";
const CLOSE: &str = "</tool_call:opensource>";
const SEP: &str = "<tool_sep:opensource>";
const KEY_OPEN: &str = "<arg_key:opensource>";
const KEY_CLOSE: &str = "</arg_key:opensource>";
const VALUE_OPEN: &str = "<arg_value:opensource>";
const VALUE_CLOSE: &str = "</arg_value:opensource>";

fn read(body: &str, tools: &ToolSchemas) -> Option<Vec<ToolCall>> {
    let mut rest = body.trim();
    let mut calls = Vec::new();
    while !rest.is_empty() {
        let (call, after) = between_followed(rest, OPEN, CLOSE, &[OPEN])?;
        let (name, mut inner) = call.split_once(SEP)?;
        let mut arguments = Map::new();
        while !inner.trim().is_empty() {
            let (key, next) = between(inner, KEY_OPEN, KEY_CLOSE)?;
            let (text, next) = between_followed(next, VALUE_OPEN, VALUE_CLOSE, &[KEY_OPEN])?;
            arguments.insert(key.trim().into(), tools.value(name.trim(), key.trim(), text));
            inner = next;
        }
        calls.push(ToolCall::new(name, arguments)?);
        rest = after.trim_start();
    }
    (!calls.is_empty()).then_some(calls)
}

#[cfg(test)]
mod tests {
    use crate::reply::styles::tests::check;

    #[test]
    fn calls_are_read() {
        let one = "<tool_call:opensource>f<tool_sep:opensource>\n<arg_key:opensource>x</arg_key:opensource>\n\
                   <arg_value:opensource>12</arg_value:opensource>\n<arg_key:opensource>n</arg_key:opensource>\n\
                   <arg_value:opensource>12</arg_value:opensource>\n</tool_call:opensource>";
        let expected = [r#"f({"n":12,"x":"12"})"#];
        check(one, &expected);
        check(&format!("{one}\n{one}\n"), &[expected[0], expected[0]]);
        check("<tool_call:opensource>f<tool_sep:opensource>\n</tool_call:opensource>", &["f({})"]);
        let tagged = "<tool_call:opensource>f<tool_sep:opensource><arg_key:opensource>x</arg_key:opensource>\
                      <arg_value:opensource>a </arg_value:opensource> b</arg_value:opensource></tool_call:opensource>";
        check(tagged, &[r#"f({"x":"a </arg_value:opensource> b"})"#]);
        for half in [
            "<tool_call:opensource>f<tool_sep:opensource>",
            "<tool_call:opensource>f</tool_call:opensource>",
            "<tool_call:opensource>f<tool_sep:opensource><arg_key:opensource>x</arg_key:opensource></tool_call:opensource>",
            "<tool_call:opensource>f<tool_sep:opensource>x</tool_call:opensource>",
        ] {
            check(half, &[]);
        }
    }
}
