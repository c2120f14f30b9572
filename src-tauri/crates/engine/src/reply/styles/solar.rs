//! Solar Open: `<|tool_call:begin|>id<|tool_call:name|>f<|tool_call:args|>{…}<|tool_call:end|>`, in a message between
//! those of reasoning and text.

use super::{CallStyle, between};
use crate::reply::tool_call::{self, ToolCall, ToolSchemas};

pub const STYLE: CallStyle = CallStyle {
    sign: "<|tool_call:args|>",
    reasoning: Some(("<|think|>", "<|end|>")),
    calls: ("<|tool_calls|>", "<|calls|>"),
    fences: &["<|begin|>assistant", "<|content|>", "<|end|>"],
    inner: &[OPEN, NAME, ARGUMENTS, CLOSE],
    read,
};

const OPEN: &str = "<|tool_call:begin|>";
const NAME: &str = "<|tool_call:name|>";
const ARGUMENTS: &str = "<|tool_call:args|>";
const CLOSE: &str = "<|tool_call:end|>";

fn read(body: &str, _: &ToolSchemas) -> Option<Vec<ToolCall>> {
    let mut rest = body.trim();
    let mut calls = Vec::new();
    while !rest.is_empty() {
        let (call, after) = between(rest, OPEN, CLOSE)?;
        let (id, call) = call.split_once(NAME)?;
        let (name, arguments) = call.split_once(ARGUMENTS)?;
        let id = Some(id.trim()).filter(|id| !id.is_empty()).map(str::to_owned);
        calls.push(ToolCall { id, ..tool_call::parse_arguments(name, arguments)? });
        rest = after.trim_start();
    }
    (!calls.is_empty()).then_some(calls)
}

#[cfg(test)]
mod tests {
    use crate::reply::styles::tests::check;

    #[test]
    fn calls_are_read() {
        let call = |arguments: &str| {
            format!(
                "<|tool_call:begin|>a1b2c3d4e5<|tool_call:name|>f<|tool_call:args|>{arguments}<|tool_call:end|>"
            )
        };
        let one = call("{\"x\": \"a\", \"n\": 1}");
        let expected = [r#"f({"n":1,"x":"a"})"#];
        check(&one, &expected);
        check(&[one.clone(), one].concat(), &[expected[0], expected[0]]);
        check(&call(""), &["f({})"]);
        for half in [
            call("{\"x\": "),
            call("3"),
            "<|tool_call:begin|>a<|tool_call:name|>f<|tool_call:args|>{}".to_owned(),
            "<|tool_call:begin|>a<|tool_call:args|>{}<|tool_call:end|>".to_owned(),
        ] {
            check(&half, &[]);
        }
    }
}
