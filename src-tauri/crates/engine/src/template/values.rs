//! Converts JSON to template values.

use minijinja::Value;
use serde_json::Map;

/// Converts a JSON value.
pub fn value(json: &serde_json::Value) -> Value {
    use serde_json::Value as Json;
    match json {
        Json::Null => Value::from(()),
        Json::Bool(flag) => Value::from(*flag),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(integer), _) => Value::from(integer),
            (None, Some(integer)) => Value::from(integer),
            (None, None) => Value::from(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => list(items),
        Json::Object(map) => Value::from_pairs(variables(map)),
    }
}

pub fn list(items: &[serde_json::Value]) -> Value {
    Value::from(items.iter().map(value).collect::<Vec<_>>())
}

pub fn variables(map: &Map<String, serde_json::Value>) -> Vec<(String, Value)> {
    map.iter().map(|(key, json)| (key.clone(), value(json))).collect()
}
