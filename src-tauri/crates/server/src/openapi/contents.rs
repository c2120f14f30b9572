//! Schemas of what messages, tools and forms of answers hold.
//!
//! What a schema can't describe is left out, and docs/HTTP.md has it: images, files, grammars, and choices that name a
//! function of the same request.

use serde_json::{Value, json};

use super::shapes::{self, object, text};

/// A text, or a list of texts whose parts have one of these types.
pub fn content(kinds: &[&str]) -> Value {
    let part = object(json!({ "type": { "enum": kinds }, "text": text() }), &["type", "text"]);
    json!({ "anyOf": [text(), { "type": "array", "items": part }] })
}

/// Messages in the form of chat completions, at least `min` of them.
pub fn messages(min: usize) -> Value {
    let message = |roles: &[&str], content: Value, required: &[&str]| {
        let fields = json!({ "role": { "enum": roles }, "content": content });
        object(fields, required)
    };
    let said = content(&["text", "input_text", "output_text"]);
    let others = ["system", "developer", "user", "tool", "function"];
    // Only answers may be without content.
    let answered = json!({ "anyOf": [said.clone(), { "type": "null" }] });
    let mut answer = message(&["assistant"], answered, &["role"]);
    answer["properties"]["tool_calls"] = json!({ "type": ["array", "null"], "items": call() });
    let items = json!({ "anyOf": [message(&others, said, &["role", "content"]), answer] });
    json!({ "type": "array", "items": items, "minItems": min, "maxItems": 10_000 })
}

fn call() -> Value {
    let arguments = json!({ "type": ["string", "object", "null"] });
    let function = object(json!({ "name": shapes::name(), "arguments": arguments }), &["name"]);
    object(json!({ "function": function }), &["function"])
}

/// Messages in Anthropic's form.
pub fn anthropic_messages() -> Value {
    let message = object(
        json!({ "role": { "enum": ["user", "assistant", "system"] }, "content": content(&["text"]) }),
        &["role", "content"],
    );
    json!({ "type": "array", "items": message, "minItems": 1, "maxItems": 100_000 })
}

/// An item of a response or a conversation.
pub fn item() -> Value {
    let said = content(&["input_text", "output_text", "text"]);
    let message = object(
        json!({
            "role": { "enum": ["user", "assistant", "system", "developer"] },
            "content": said,
        }),
        &["role", "content"],
    );
    let call = object(
        json!({ "type": { "const": "function_call" }, "call_id": text(), "name": text() }),
        &["type", "call_id", "name"],
    );
    let output = object(
        json!({ "type": { "const": "function_call_output" }, "call_id": text(), "output": text() }),
        &["type", "call_id", "output"],
    );
    json!({ "anyOf": [message, call, output] })
}

/// A form of the answer. `flat`: in the form of responses.
pub fn format(flat: bool) -> Value {
    let simple = object(json!({ "type": { "enum": ["text", "json_object"] } }), &["type"]);
    // Of any keywords: those that are not supported are refused by their names.
    let schema = json!({ "type": ["object", "boolean"] });
    let holder = object(json!({ "schema": schema }), &["schema"]);
    let kind = json!({ "const": "json_schema" });
    let with_schema = match flat {
        true => object(json!({ "type": kind, "schema": schema }), &["type", "schema"]),
        false => object(json!({ "type": kind, "json_schema": holder }), &["type", "json_schema"]),
    };
    json!({ "anyOf": [{ "type": "null" }, simple, with_schema] })
}

/// A request whose `tool_choice` demands a call has tools.
pub fn tools_where_demanded() -> Value {
    let free = json!({ "properties": { "tool_choice": { "enum": ["none", "auto", null] } } });
    json!({ "anyOf": [free, with_tools()] })
}

/// A request with at least one tool.
pub fn with_tools() -> Value {
    json!({ "properties": { "tools": { "type": "array", "minItems": 1 } }, "required": ["tools"] })
}
