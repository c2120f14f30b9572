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

/// Tools in the form of chat completions.
pub fn chat_tools() -> Value {
    let fields = json!({ "type": { "const": "function" }, "function": function() });
    list_of(&object(fields, &["function"]))
}

/// Tools in the form of responses.
pub fn response_tools() -> Value {
    let fields = json!({ "type": { "const": "function" }, "name": name() });
    list_of(&object(fields, &["name"]))
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
