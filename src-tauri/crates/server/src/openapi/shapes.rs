//! Shapes that the schemas of the OpenAPI document are built of.

use serde_json::{Value, json};

/// An object with these properties.
pub fn object(properties: Value, required: &[&str]) -> Value {
    let mut value = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        value["required"] = json!(required);
    }
    value
}

/// The properties of both; where they share a name, those of `others`.
pub fn merged(mut properties: Value, others: &Value) -> Value {
    for (name, schema) in others.as_object().into_iter().flatten() {
        properties[name] = schema.clone();
    }
    properties
}

/// Properties of DRY and XTC, by llama.cpp's names.
pub fn samplers() -> Value {
    json!({
        "dry_multiplier": number(0.0, 100.0), "dry_base": number(1.0, 100.0),
        "dry_allowed_length": integer(0, i64::from(u32::MAX)),
        "dry_penalty_last_n": integer(-1, i64::from(i32::MAX)),
        "dry_sequence_breakers": { "type": ["array", "null"], "items": text(), "maxItems": 64 },
        "xtc_probability": number(0.0, 1.0), "xtc_threshold": number(0.0, 1.0),
    })
}

/// A text.
pub fn text() -> Value {
    json!({ "type": "string" })
}

/// A value of this type, or null.
pub fn optional(kind: &str) -> Value {
    json!({ "type": [kind, "null"] })
}

/// A number of a range, or null.
pub fn number(min: f64, max: f64) -> Value {
    json!({ "type": ["number", "null"], "minimum": min, "maximum": max })
}

/// A whole number of a range, or null.
pub fn integer(min: i64, max: i64) -> Value {
    json!({ "type": ["integer", "null"], "minimum": min, "maximum": max })
}

/// A whole number from `min`, or null.
pub fn count(min: i64) -> Value {
    json!({ "type": ["integer", "null"], "minimum": min })
}

/// A name of a function: any text but an empty one.
pub fn name() -> Value {
    json!({ "type": "string", "minLength": 1 })
}

/// An object without other fields.
pub fn closed(properties: Value) -> Value {
    let names: Vec<Value> =
        properties.as_object().into_iter().flatten().map(|(name, _)| json!(name)).collect();
    json!({ "type": "object", "properties": properties, "required": names, "additionalProperties": false })
}

/// A function in the form of chat completions.
fn function() -> Value {
    object(json!({ "name": name() }), &["name"])
}

/// A tool in the form of chat completions, with its function in an object.
fn chat_tool() -> Value {
    object(json!({ "type": { "const": "function" }, "function": function() }), &["function"])
}

/// Tools in the form of chat completions.
pub fn chat_tools() -> Value {
    list_of(&chat_tool())
}

/// Tools in either of OpenAI's forms: of chat completions or of responses.
pub fn openai_tools() -> Value {
    let mut flat = object(json!({ "type": { "const": "function" }, "name": name() }), &["name"]);
    flat["not"] = json!({ "required": ["function"] });
    list_of(&json!({ "anyOf": [chat_tool(), flat] }))
}

/// Tools in Anthropic's form.
pub fn anthropic_tools() -> Value {
    let schema = json!({ "type": ["object", "null"] });
    list_of(&object(json!({ "name": name(), "input_schema": schema }), &["name"]))
}

/// A list whose entries have this schema, or null.
fn list_of(items: &Value) -> Value {
    let mut list = optional("array");
    list["items"] = items.clone();
    list
}
