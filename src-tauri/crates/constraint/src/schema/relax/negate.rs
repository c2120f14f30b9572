//! The opposite of a schema: what every instance satisfies that the schema refuses.

use serde_json::{Map, Value, json};

use super::Rewriter;
use crate::schema::pointer;

/// Depth of negated schemas and references from which on nothing is expressed.
const MAX_DEPTH: usize = 24;

const TYPES: [&str; 6] = ["null", "boolean", "number", "string", "array", "object"];

/// Returns the negation, for the grammar library. Where it has instances that `schema` accepts, the rewriter learns
/// that something was left out.
pub(super) fn negate(rewriter: &mut Rewriter, schema: &Value, depth: usize) -> Value {
    if depth > MAX_DEPTH {
        rewriter.is_inexact = true;
        return Value::Bool(true);
    }
    let map = match schema {
        Value::Bool(accepts) => return Value::Bool(!accepts),
        Value::Object(map) => map,
        // No schema.
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => return Value::Bool(false),
    };
    // An instance is refused where one of the keywords refuses it.
    let mut either = Vec::new();
    for (key, value) in map {
        match negate_keyword(rewriter, (key, value), map, depth) {
            Value::Bool(false) => {}
            negated => either.push(negated),
        }
    }
    if either.iter().any(|it| *it == Value::Bool(true)) {
        return Value::Bool(true);
    }
    match either.len() {
        0 => Value::Bool(false),
        1 => either.remove(0),
        _ => json!({ "anyOf": either }),
    }
}

fn negate_keyword(
    rewriter: &mut Rewriter,
    (key, value): (&str, &Value),
    map: &Map<String, Value>,
    depth: usize,
) -> Value {
    let mut about = |negated: Value| {
        rewriter.is_inexact = true;
        negated
    };
    match key {
        "type" => negate_type(rewriter, value),
        "const" => negate_values(rewriter, std::slice::from_ref(value)),
        "enum" => negate_values(rewriter, value.as_array().map_or(&[][..], Vec::as_slice)),
        "minimum" if map.get("exclusiveMinimum") == Some(&Value::Bool(true)) => {
            json!({ "type": "number", "maximum": value })
        }
        "maximum" if map.get("exclusiveMaximum") == Some(&Value::Bool(true)) => {
            json!({ "type": "number", "minimum": value })
        }
        "minimum" => json!({ "type": "number", "exclusiveMaximum": value }),
        "maximum" => json!({ "type": "number", "exclusiveMinimum": value }),
        "exclusiveMinimum" if value.is_number() => json!({ "type": "number", "maximum": value }),
        "exclusiveMaximum" if value.is_number() => json!({ "type": "number", "minimum": value }),
        "minLength" => below("string", "maxLength", value),
        "maxLength" => above("string", "minLength", value),
        "minItems" => below("array", "maxItems", value),
        "maxItems" => above("array", "minItems", value),
        "minProperties" => below("object", "maxProperties", value),
        "maxProperties" => above("object", "minProperties", value),
        "pattern" | "format" => about(json!({ "type": "string" })),
        "multipleOf" => about(json!({ "type": "number" })),
        "uniqueItems" if value == &Value::Bool(true) => about(json!({ "type": "array", "minItems": 2 })),
        "required"
        | "properties"
        | "items"
        | "prefixItems"
        | "additionalItems"
        | "contains"
        | "unevaluatedItems"
        | "propertyNames"
        | "patternProperties"
        | "additionalProperties"
        | "unevaluatedProperties"
        | "dependencies"
        | "dependentRequired"
        | "dependentSchemas" => negate_parts(rewriter, (key, value), depth),
        "allOf" => {
            let all = value.as_array().into_iter().flatten();
            let wrong: Vec<Value> = all.map(|schema| negate(rewriter, schema, depth + 1)).collect();
            either_of(wrong, None)
        }
        "anyOf" => {
            let any = value.as_array().into_iter().flatten();
            let all: Vec<Value> = any.map(|schema| negate(rewriter, schema, depth + 1)).collect();
            json!({ "allOf": all })
        }
        "not" => rewriter.rewrite(value, None, depth + 1),
        "$ref" => match value.as_str().and_then(|reference| pointer::resolve(rewriter.root, reference)) {
            Some((_, target)) => negate(rewriter, &target.clone(), depth + 1),
            None => about(Value::Bool(true)),
        },
        "oneOf" | "if" | "$dynamicRef" | "$recursiveRef" => about(Value::Bool(true)),
        // Annotations, and keywords that only change others.
        _ => Value::Bool(false),
    }
}

/// Negates what a schema says of the parts of objects and arrays.
fn negate_parts(rewriter: &mut Rewriter, (key, value): (&str, &Value), depth: usize) -> Value {
    let mut about = |negated: Value| {
        rewriter.is_inexact = true;
        negated
    };
    match key {
        "required" => {
            let names = value.as_array().into_iter().flatten().filter_map(Value::as_str);
            let missing: Vec<Value> = names.map(|name| json!({ "properties": { name: false } })).collect();
            either_of(missing, Some("object"))
        }
        "properties" => {
            let properties = value.as_object().into_iter().flatten();
            let wrong = properties.filter_map(|(name, schema)| match negate(rewriter, schema, depth + 1) {
                Value::Bool(false) => None,
                negated => Some(json!({ "required": [name], "properties": { name: negated } })),
            });
            let wrong: Vec<Value> = wrong.collect();
            either_of(wrong, Some("object"))
        }
        "items" | "prefixItems" | "additionalItems" | "contains" | "unevaluatedItems" => match value {
            Value::Bool(true) if key != "contains" => Value::Bool(false),
            _ if key == "contains" => about(json!({ "type": "array" })),
            _ => about(json!({ "type": "array", "minItems": 1 })),
        },
        "propertyNames" if value == &Value::Bool(false) => json!({ "type": "object", "minProperties": 1 }),
        "patternProperties" | "additionalProperties" | "propertyNames" | "unevaluatedProperties" => {
            match value {
                Value::Bool(true) => Value::Bool(false),
                _ => about(json!({ "type": "object", "minProperties": 1 })),
            }
        }
        "dependencies" | "dependentRequired" | "dependentSchemas" => {
            about(json!({ "type": "object", "minProperties": 1 }))
        }
        _ => Value::Bool(false),
    }
}

fn either_of(alternatives: Vec<Value>, of_type: Option<&str>) -> Value {
    if alternatives.is_empty() {
        return Value::Bool(false);
    }
    match of_type {
        Some(of_type) => json!({ "type": of_type, "anyOf": alternatives }),
        None => json!({ "anyOf": alternatives }),
    }
}

/// Refused by a least number: smaller ones.
fn below(of_type: &str, key: &str, least: &Value) -> Value {
    match least.as_u64() {
        Some(least) if least > 0 => json!({ "type": of_type, key: least - 1 }),
        Some(_) | None => Value::Bool(false),
    }
}

/// Refused by a largest number: larger ones.
fn above(of_type: &str, key: &str, largest: &Value) -> Value {
    match largest.as_u64() {
        Some(largest) => json!({ "type": of_type, key: largest + 1 }),
        None => Value::Bool(false),
    }
}

fn negate_type(rewriter: &mut Rewriter, value: &Value) -> Value {
    let names: Vec<&str> = match value {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return Value::Bool(false),
    };
    // Numbers that are no integers have no name.
    rewriter.is_inexact |= names.contains(&"integer") && !names.contains(&"number");
    let others: Vec<&str> = TYPES.into_iter().filter(|name| !names.contains(name)).collect();
    match others.is_empty() {
        true => Value::Bool(false),
        false => json!({ "type": others }),
    }
}

/// All values but these. Lists and objects are checked when they end.
fn negate_values(rewriter: &mut Rewriter, values: &[Value]) -> Value {
    let mut others: Vec<&str> = TYPES.to_vec();
    let mut either = Vec::new();
    if values.contains(&Value::Null) {
        others.retain(|name| *name != "null");
    }
    let left: Vec<bool> =
        [true, false].into_iter().filter(|flag| !values.contains(&Value::Bool(*flag))).collect();
    if left.len() < 2 {
        others.retain(|name| *name != "boolean");
        either.extend((!left.is_empty()).then(|| json!({ "enum": left })));
    }
    let texts: Vec<Vec<char>> =
        values.iter().filter_map(Value::as_str).map(|it| it.chars().collect()).collect();
    if !texts.is_empty() {
        others.retain(|name| *name != "string");
        let texts: Vec<&[char]> = texts.iter().map(Vec::as_slice).collect();
        either.push(json!({ "type": "string", "pattern": format!("^(?:{})$", other_texts(&texts)) }));
    }
    let mut numbers: Vec<&Value> = values.iter().filter(|value| value.is_number()).collect();
    if !numbers.is_empty() {
        others.retain(|name| *name != "number");
        numbers.sort_by(|a, b| a.as_f64().unwrap_or(0.0).total_cmp(&b.as_f64().unwrap_or(0.0)));
        either.push(json!({ "type": "number", "exclusiveMaximum": numbers[0] }));
        let between = numbers.windows(2).map(
            |pair| json!({ "type": "number", "exclusiveMinimum": pair[0], "exclusiveMaximum": pair[1] }),
        );
        either.extend(between.collect::<Vec<_>>());
        either.push(json!({ "type": "number", "exclusiveMinimum": numbers[numbers.len() - 1] }));
    }
    rewriter.is_inexact |= values.iter().any(|value| value.is_array() || value.is_object());
    either.push(json!({ "type": others }));
    either_of(either, None)
}

/// A regular expression of every text but these.
fn other_texts(texts: &[&[char]]) -> String {
    let mut firsts: Vec<char> = texts.iter().filter_map(|text| text.first().copied()).collect();
    firsts.sort_unstable();
    firsts.dedup();
    let mut either = Vec::new();
    if texts.iter().all(|text| !text.is_empty()) {
        either.push(String::new());
    }
    if firsts.is_empty() {
        return "(?s:.)+".into();
    }
    let class: String = firsts.iter().map(|first| format!("\\x{{{:x}}}", u32::from(*first))).collect();
    either.push(format!("[^{class}](?s:.)*"));
    for first in firsts {
        let rests: Vec<&[char]> =
            texts.iter().filter(|text| text.first() == Some(&first)).map(|text| &text[1..]).collect();
        either.push(format!("\\x{{{:x}}}(?:{})", u32::from(first), other_texts(&rests)));
    }
    either.join("|")
}
