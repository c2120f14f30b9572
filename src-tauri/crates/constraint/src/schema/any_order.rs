//! What texts may differ in that mean the same: the order of properties, and the spelling of numbers.

use serde_json::{Value, json};

/// A pattern that only this name matches.
pub fn pattern(name: &str) -> String {
    format!("^{}$", regex::escape(name))
}

/// A schema that all of these values satisfy, however they are written.
pub fn values(values: &[Value]) -> Value {
    let (mut single, mut types) = (Vec::new(), Vec::new());
    for value in values {
        let of_type = match value {
            Value::Null | Value::Bool(_) | Value::String(_) => {
                single.push(value.clone());
                continue;
            }
            Value::Number(_) => "number",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        if !types.contains(&of_type) {
            types.push(of_type);
        }
    }
    match (single.is_empty(), types.is_empty()) {
        (_, true) => json!({ "enum": single }),
        (true, false) => json!({ "type": types }),
        (false, false) => json!({ "anyOf": [{ "enum": single }, { "type": types }] }),
    }
}
