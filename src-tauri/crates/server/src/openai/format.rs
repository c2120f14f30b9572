//! The form that a client wants an answer to have: text, JSON, a schema, a regular expression or a grammar.

use contract::protocol::Constraint;
use serde_json::Value;

use super::fields::{Fields, Result, unsupported};
use crate::fault::OpenAiFault;

/// The constraint of a chat completion: `response_format`, or llama.cpp's and vLLM's fields for the same.
pub fn of_chat(fields: Fields<'_>) -> Result<Option<Constraint>> {
    if let Some(format) = fields.get("response_format") {
        return constraint(format, "response_format");
    }
    for name in ["json_schema", "guided_json"] {
        if let Some(value) = fields.get(name) {
            return schema(value, name).map(Some);
        }
    }
    if let Some(pattern) = fields.text("guided_regex")? {
        return Ok(Some(Constraint::Regex(pattern.into())));
    }
    if let Some(grammar) = fields.text("guided_grammar")? {
        return Ok(Some(Constraint::Lark(grammar.into())));
    }
    let grammar = fields.text("grammar")?.filter(|grammar| !grammar.is_empty());
    grammar.map(|grammar| gbnf(grammar, "grammar")).transpose()
}

/// A grammar in llama.cpp's form.
fn gbnf(grammar: &str, name: &'static str) -> Result<Constraint> {
    app::gbnf_constraint(grammar).map_err(|error| OpenAiFault::invalid(name, error.message()))
}

/// A format as an object with a type. `name` is the field that holds it.
pub fn constraint(format: &Value, name: &'static str) -> Result<Option<Constraint>> {
    let kind = format
        .get("type")
        .and_then(Value::as_str)
        .ok_or_else(|| OpenAiFault::invalid(name, format!("`{name}` must be an object with a type.")))?;
    let text = |key: &str| {
        format.get(key).and_then(Value::as_str).map(str::to_owned).ok_or_else(|| {
            OpenAiFault::invalid(name, format!("`{name}` of type {kind} needs a text in `{key}`."))
        })
    };
    match kind {
        "text" => Ok(None),
        "json_object" => match format.get("schema").filter(|value| !value.is_null()) {
            Some(value) => schema(value, name).map(Some),
            None => Ok(Some(Constraint::JsonObject)),
        },
        "json_schema" => {
            let holder = format.get("json_schema").unwrap_or(format);
            match holder.get("schema") {
                Some(value) => schema(value, name).map(Some),
                None => {
                    Err(OpenAiFault::invalid(name, format!("`{name}` of type json_schema needs a `schema`.")))
                }
            }
        }
        "regex" => Ok(Some(Constraint::Regex(text("pattern")?))),
        "grammar" => match format.get("syntax").and_then(Value::as_str) {
            Some("regex") => Ok(Some(Constraint::Regex(text("definition")?))),
            Some("lark") | None => Ok(Some(Constraint::Lark(text("definition")?))),
            Some("gbnf") => gbnf(&text("definition")?, name).map(Some),
            Some(syntax) => Err(unsupported(name, format!("`{name}` can't have the syntax {syntax}."))),
        },
        _ => Err(unsupported(
            name,
            format!("`{name}` must have the type text, json_object, json_schema, regex or grammar."),
        )),
    }
}

fn schema(value: &Value, name: &'static str) -> Result<Constraint> {
    match value {
        Value::Object(_) | Value::Bool(_) => Ok(Constraint::JsonSchema(value.clone())),
        _ => Err(OpenAiFault::invalid(name, format!("The schema in `{name}` must be an object."))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn formats_become_constraints() {
        let schema = json!({ "type": "object" });
        let with_schema = Some(Constraint::JsonSchema(schema.clone()));
        for (format, expected) in [
            (json!({ "type": "text" }), None),
            (json!({ "type": "json_object" }), Some(Constraint::JsonObject)),
            (json!({ "type": "json_object", "schema": schema }), with_schema.clone()),
            (
                json!({ "type": "json_schema", "json_schema": { "name": "x", "schema": schema } }),
                with_schema.clone(),
            ),
            (json!({ "type": "json_schema", "name": "x", "schema": schema }), with_schema.clone()),
            (json!({ "type": "regex", "pattern": "a+" }), Some(Constraint::Regex("a+".into()))),
            (
                json!({ "type": "grammar", "syntax": "lark", "definition": "start: \"a\"" }),
                Some(Constraint::Lark("start: \"a\"".into())),
            ),
        ] {
            assert_eq!(constraint(&format, "response_format").unwrap(), expected, "{format}");
        }
        for format in [
            json!("json"),
            json!({}),
            json!({ "type": "sound" }),
            json!({ "type": "json_object", "schema": 123 }),
            json!({ "type": "json_schema" }),
            json!({ "type": "regex" }),
            json!({ "type": "grammar", "syntax": "gbnf", "definition": "x" }),
        ] {
            let fault = constraint(&format, "response_format").unwrap_err();
            assert_eq!(fault.param.as_deref(), Some("response_format"), "{format}");
        }
        let other = json!({ "guided_regex": "a" });
        assert_eq!(of_chat(Fields(other.as_object().unwrap())).unwrap(), Some(Constraint::Regex("a".into())));
        let grammar = json!({ "grammar": "root ::= [ab]+" });
        let lark = of_chat(Fields(grammar.as_object().unwrap())).unwrap();
        assert!(matches!(lark, Some(Constraint::Lark(lark)) if lark.contains("u{61}")));
        let other = json!({ "json_schema": schema });
        assert_eq!(of_chat(Fields(other.as_object().unwrap())).unwrap(), with_schema);
    }
}
