//! Chat templates, with conversations of others as their input.

use engine::template::{ChatTemplate, RenderInput};
use serde_json::{Map, Value, json};

use crate::FuzzTarget;
use crate::sections::Sections;

/// Compiles and renders chat templates.
pub static TEMPLATE: FuzzTarget = FuzzTarget { name: "template", read, max_bytes: 256 << 20 };

fn read(input: &[u8]) {
    let sections = Sections::of(input);
    let source = sections.text("").unwrap_or_default();
    let Ok(template) = ChatTemplate::from_source(&source) else { return };
    template.variables();
    let given = sections.get("messages").and_then(|json| serde_json::from_slice::<Vec<Value>>(json).ok());
    let messages = given.unwrap_or_else(conversation);
    let tools = json!([{"type": "function", "function": {"name": "look", "description": "Looks.", "parameters":
        {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}}}]);
    let kwargs = Map::from_iter([("add_generation_prompt".to_owned(), json!(true))]);
    let input = RenderInput {
        messages: &messages,
        tools: &tools,
        kwargs: &kwargs,
        bos_token: "<s>",
        eos_token: "</s>",
        now: Some("2026-01-15T12:00:00"),
    };
    let Ok(rendered) = template.render(&input) else { return };
    let mut end = 0;
    for span in &rendered.content_spans {
        assert!(span.range.start >= end, "spans are ordered, without overlap: {:?}", rendered.content_spans);
        assert!(rendered.text.get(span.range.clone()).is_some(), "{:?} of the text", span.range);
        end = span.range.end;
    }
}

fn conversation() -> Vec<Value> {
    let call = json!({"id": "call12345", "type": "function", "function": {"name": "look", "arguments": {"at": "x"}}});
    vec![
        json!({"role": "system", "content": "You help."}),
        json!({"role": "user", "content": "Where is it?"}),
        json!({"role": "assistant", "content": "", "reasoning_content": "Look.", "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": "call12345", "name": "look", "content": "there"}),
        json!({"role": "user", "content": [{"type": "text", "text": "And now? <s>"}]}),
    ]
}
