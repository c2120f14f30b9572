//! Solar Open: `<|tool_call:begin|>id<|tool_call:name|>f<|tool_call:args|>{…}<|tool_call:end|>`, in a message between
//! those of reasoning and text.

use super::CallStyle;
use crate::reply::calls;
use crate::reply::literal::LiteralReader;
use crate::reply::tool_call::{ToolCall, ToolSchemas};

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
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (id, call) = rest.strip_prefix(OPEN)?.split_once(NAME)?;
        let (name, text) = call.split_once(ARGUMENTS)?;
        // Arguments may contain the tags, so their end is where the object ends.
        let mut reader = LiteralReader::new(text);
        let arguments = calls::arguments(&mut reader)?;
        if !reader.take(CLOSE) {
            return None;
        }
        let id = Some(id.trim()).filter(|id| !id.is_empty()).map(str::to_owned);
        found.push(ToolCall { id, ..ToolCall::new(name, arguments)? });
        rest = reader.rest;
    }
    (!found.is_empty()).then_some(found)
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
        check(&call("{\"x\": \"a <|tool_call:end|> b\"}"), &[r#"f({"x":"a <|tool_call:end|> b"})"#]);
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
