//! Hunyuan 3: a name, then keys and values between tags that all end with `:opensource`.

use serde_json::Map;

use super::{CallStyle, between};
use crate::reply::tool_call::{ToolCall, ToolSchemas};

pub const STYLE: CallStyle = CallStyle {
    sign: "'<tool_calls{}>'",
    reasoning: Some(("<think:opensource>", "</think:opensource>")),
    calls: ("<tool_calls:opensource>", "</tool_calls:opensource>"),
    fences: &[],
    inner: &[
        OPEN,
        CLOSE,
        SEP,
        "<arg_key:opensource>",
        "</arg_key:opensource>",
        "<arg_value:opensource>",
        "</arg_value:opensource>",
    ],
    read,
};

const OPEN: &str = "<tool_call:opensource>";
const CLOSE: &str = "</tool_call:opensource>";
const SEP: &str = "<tool_sep:opensource>";

fn read(body: &str, tools: &ToolSchemas) -> Option<Vec<ToolCall>> {
    let mut rest = body.trim();
    let mut calls = Vec::new();
    while !rest.is_empty() {
        let (call, after) = between(rest, OPEN, CLOSE)?;
        let (name, mut inner) = call.split_once(SEP)?;
        let mut arguments = Map::new();
        while !inner.trim().is_empty() {
            let (key, next) = between(inner, "<arg_key:opensource>", "</arg_key:opensource>")?;
            let (text, next) = between(next, "<arg_value:opensource>", "</arg_value:opensource>")?;
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
