//! Schemas that were written for an older draft without saying so, and counts that were written with a decimal point.

use serde_json::{Map, Value, json};

const DRAFT_4: &str = "http://json-schema.org/draft-04/schema#";
const DRAFT_7: &str = "http://json-schema.org/draft-07/schema#";

/// Keywords whose members are named by the schema's author.
const NAMED_SCHEMAS: [&str; 7] = [
    "properties",
    "patternProperties",
    "definitions",
    "$defs",
    "dependencies",
    "dependentSchemas",
    "dependentRequired",
];

/// Keywords whose values are instances, not schemas.
const INSTANCES: [&str; 5] = ["enum", "const", "default", "examples", "required"];

/// Keywords that count.
const COUNTS: [&str; 8] = [
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minContains",
    "maxContains",
    "minProperties",
    "maxProperties",
];

/// A schema as the libraries read it: counts are integers, and a schema without `$schema` that uses what only an older
/// draft allows names that draft.
pub fn normalized(schema: &Value) -> Value {
    let mut schema = schema.clone();
    let mut oldest = None;
    if let Value::Object(map) = &mut schema {
        normalize(map, &mut oldest);
        if let Some(draft) = oldest.filter(|_| !map.contains_key("$schema")) {
            map.insert("$schema".into(), json!(draft));
        }
    }
    schema
}

fn normalize(map: &mut Map<String, Value>, oldest: &mut Option<&'static str>) {
    for (keyword, value) in map {
        if INSTANCES.contains(&keyword.as_str()) {
            continue;
        }
        if COUNTS.contains(&keyword.as_str()) {
            make_integer(value);
        }
        match draft_of(keyword, value) {
            Some(DRAFT_4) => *oldest = Some(DRAFT_4),
            Some(draft) => {
                oldest.get_or_insert(draft);
            }
            None => {}
        }
        let is_named = NAMED_SCHEMAS.contains(&keyword.as_str());
        match value {
            Value::Object(named) if is_named => {
                for schema in named.values_mut().filter_map(Value::as_object_mut) {
                    normalize(schema, oldest);
                }
            }
            Value::Object(schema) => normalize(schema, oldest),
            Value::Array(list) => {
                for schema in list.iter_mut().filter_map(Value::as_object_mut) {
                    normalize(schema, oldest);
                }
            }
            _ => {}
        }
    }
}

/// The newest draft that has this keyword with such a value, if later ones do without it.
fn draft_of(keyword: &str, value: &Value) -> Option<&'static str> {
    match (keyword, value) {
        ("exclusiveMinimum" | "exclusiveMaximum", Value::Bool(_)) | ("id", Value::String(_)) => Some(DRAFT_4),
        ("items", Value::Array(_)) => Some(DRAFT_7),
        ("$id", Value::String(id)) if id.starts_with('#') => Some(DRAFT_7),
        _ => None,
    }
}

/// `2.0` counts as `2`.
fn make_integer(value: &mut Value) {
    if let Some(count) =
        value.as_f64().filter(|it| it.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(it))
    {
        *value = json!(count as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_integers_and_instances_stay() {
        let schema = json!({"maxItems": 2.0, "items": {"minLength": 1.5}, "const": {"maxItems": 2.0}});
        let expected = json!({"maxItems": 2, "items": {"minLength": 1.5}, "const": {"maxItems": 2.0}});
        assert_eq!(normalized(&schema).to_string(), expected.to_string());
    }

    #[test]
    fn an_older_draft_is_recognized_by_what_only_it_has() {
        let draft = |schema: Value| normalized(&schema).get("$schema").cloned();
        assert_eq!(draft(json!({"items": [{}]})), Some(json!(DRAFT_7)));
        assert_eq!(draft(json!({"definitions": {"a": {"$id": "#a"}}})), Some(json!(DRAFT_7)));
        assert_eq!(
            draft(json!({"allOf": [{"exclusiveMinimum": true}], "items": [{}]})),
            Some(json!(DRAFT_4))
        );
        assert_eq!(draft(json!({"items": {}, "exclusiveMinimum": 3})), None);
    }

    #[test]
    fn names_of_properties_say_nothing_of_the_draft() {
        let schema =
            json!({"properties": {"id": {"const": {"id": "a"}}}, "dependentRequired": {"items": ["id"]}});
        assert_eq!(normalized(&schema), schema);
    }

    #[test]
    fn a_draft_that_is_named_stays() {
        let schema = json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "items": [{}]});
        assert_eq!(normalized(&schema), schema);
    }
}
