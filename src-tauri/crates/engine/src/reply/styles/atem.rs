//! Muse: `<atem:invoke name="f"><atem:parameter name="x">1</atem:parameter></atem:invoke>`, in a message whose header
//! also names the function (`harmony.rs`).

use serde_json::Map;

use super::{CallStyle, between_followed};
use crate::reply::tool_call::{ToolCall, ToolSchemas};

pub const STYLE: CallStyle = CallStyle {
    sign: "<atem:function_calls>",
    reasoning: None,
    calls: ("<atem:function_calls>", "</atem:function_calls>"),
    fences: &[],
    inner: &[],
    read,
};

const INVOKE: &str = "<atem:invoke name=\"";
const PARAMETER: &str = "<atem:parameter name=\"";

fn read(body: &str, tools: &ToolSchemas) -> Option<Vec<ToolCall>> {
    let body = body.trim();
    let body = body.strip_prefix(STYLE.calls.0).unwrap_or(body);
    let mut rest = body.strip_suffix(STYLE.calls.1).unwrap_or(body).trim();
    let mut calls = Vec::new();
    while !rest.is_empty() {
        let (inner, after) = between_followed(rest, INVOKE, "</atem:invoke>", &[INVOKE])?;
        let (name, mut inner) = inner.split_once("\">")?;
        let mut arguments = Map::new();
        while !inner.trim().is_empty() {
            let (parameter, next) = between_followed(inner, PARAMETER, "</atem:parameter>", &[PARAMETER])?;
            let (key, text) = parameter.split_once("\">")?;
            // White space is part of a text.
            arguments.insert(key.into(), tools.value(name, key, text));
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
        let one = "<atem:invoke name=\"f\">\n<atem:parameter name=\"x\"> a <c>\n</atem:parameter>\n\
                   <atem:parameter name=\"n\">1</atem:parameter>\n</atem:invoke>";
        let expected = [r#"f({"n":1,"x":" a <c>\n"})"#];
        check(one, &expected);
        check(&format!("<atem:function_calls>\n{one}\n</atem:function_calls>"), &expected);
        check(&format!("{one}\n{one}"), &[expected[0], expected[0]]);
        check("<atem:invoke name=\"f\">\n</atem:invoke>", &["f({})"]);
        check(
            &one.replace(" a <c>", " a </atem:parameter> <c>"),
            &[r#"f({"n":1,"x":" a </atem:parameter> <c>\n"})"#],
        );
        for half in [
            "<atem:invoke name=\"f\">",
            "<atem:invoke name=\"f\"><atem:parameter name=\"x\">a",
            "<atem:invoke name=\"f\"><atem:parameter name=\"x\">a</atem:parameter>",
            "<atem:invoke name=\"f\">x</atem:invoke>",
            "<atem:function_calls></atem:function_calls>",
            "<atem:invoke></atem:invoke>",
        ] {
            check(half, &[]);
        }
    }
}
