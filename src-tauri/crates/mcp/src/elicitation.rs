//! Elicitation in form mode: a server asks the user for some values (MCP 2025-11-25, "Elicitation").
//!
//! Forms are flat. Fields that the user leaves out take their defaults, and no value is sent that its field forbids.

mod field;
mod request;

use std::sync::Arc;

use serde_json::{Map, Value, json};

pub use field::{ChoiceOption, FieldKind, FormField, TextFormat};
pub(crate) use request::{Answer, ElicitationRequest, OpenElicitations};

/// Far beyond any form that a person fills in.
const MAX_FIELDS: usize = 64;

/// Longest message of a form that is shown.
const MAX_MESSAGE_CHARS: usize = 4000;

/// A form that a server wants the user to fill in.
#[derive(Debug, Clone, PartialEq)]
pub struct ElicitationForm {
    /// Name of the server that asks.
    pub server: String,
    /// Why it asks, in its own words.
    pub message: String,
    pub fields: Vec<FormField>,
}

/// What the user did with a form.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitationAnswer {
    /// Values by the name of their field. Fields that are missing take their defaults.
    Accepted(Map<String, Value>),
    /// The user does not want to answer.
    Declined,
    /// The user closed the form.
    Canceled,
}

/// Shows a form and waits for the user, on a thread that may wait. The second argument says whether the form is no longer
/// wanted: its server has ended or taken it back, or the user has stopped the call.
pub type ElicitationHandler =
    Arc<dyn Fn(&ElicitationForm, &dyn Fn() -> bool) -> ElicitationAnswer + Send + Sync>;

impl ElicitationForm {
    /// Parses the parameters of `elicitation/create`.
    ///
    /// Errors: why they are no form.
    pub fn parse(server: &str, params: &Value) -> Result<Self, String> {
        if let Some(mode) = params["mode"].as_str().filter(|mode| *mode != "form") {
            return Err(format!("elicitation in the mode \"{mode}\" is not supported"));
        }
        let schema = &params["requestedSchema"];
        let Some(properties) = schema["properties"].as_object() else {
            return Err("requestedSchema has no properties".into());
        };
        if properties.len() > MAX_FIELDS {
            return Err(format!("a form has at most {MAX_FIELDS} fields"));
        }
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let field = |(name, schema): (&String, &Value)| {
            let is_required = required.contains(&name.as_str());
            FormField::parse(name, schema, is_required).map_err(|why| format!("the field {name} {why}"))
        };
        let fields = properties.iter().map(field).collect::<Result<_, _>>()?;
        let message =
            params["message"].as_str().unwrap_or_default().chars().take(MAX_MESSAGE_CHARS).collect();
        Ok(Self { server: server.into(), message, fields })
    }

    /// Adds the defaults to the user's values, and checks all.
    ///
    /// Errors: what is missing or not allowed.
    pub fn complete(&self, mut values: Map<String, Value>) -> Result<Map<String, Value>, String> {
        let mut complete = Map::new();
        for field in &self.fields {
            match values.remove(&field.name).filter(|value| !value.is_null()).or(field.default.clone()) {
                Some(value) => {
                    field.check(&value).map_err(|why| format!("{} {why}", field.label()))?;
                    complete.insert(field.name.clone(), value);
                }
                None if field.is_required => return Err(format!("{} is missing", field.label())),
                None => {}
            }
        }
        match values.keys().next() {
            Some(other) => Err(format!("the form has no field {other}")),
            None => Ok(complete),
        }
    }

    /// The result of `elicitation/create` for an answer.
    ///
    /// Errors: what of the answer the form does not allow.
    pub fn result(&self, answer: ElicitationAnswer) -> Result<Value, String> {
        Ok(match answer {
            ElicitationAnswer::Accepted(values) => {
                json!({ "action": "accept", "content": self.complete(values)? })
            }
            ElicitationAnswer::Declined => json!({ "action": "decline" }),
            ElicitationAnswer::Canceled => json!({ "action": "cancel" }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(properties: Value, required: Value) -> ElicitationForm {
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        ElicitationForm::parse("lab", &json!({ "message": "Who?", "requestedSchema": schema })).unwrap()
    }

    fn values(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn omitted_fields_take_their_defaults() {
        // The fields of SEP-1034.
        let all = json!({
            "name": { "type": "string", "default": "John Doe" },
            "age": { "type": "integer", "default": 30 },
            "score": { "type": "number", "default": 95.5 },
            "status": { "type": "string", "enum": ["active", "inactive"], "default": "active" },
            "verified": { "type": "boolean", "default": true },
            "note": { "type": "string" },
        });
        let form = form(all, json!([]));
        let expected =
            json!({ "name": "John Doe", "age": 30, "score": 95.5, "status": "active", "verified": true });
        assert_eq!(form.complete(Map::new()), Ok(values(expected)));
        let own = values(json!({ "name": "Jane", "verified": false, "age": null }));
        let completed = form.complete(own).unwrap();
        assert_eq!((&completed["name"], &completed["verified"]), (&json!("Jane"), &json!(false)));
        assert_eq!(completed["age"], 30);
    }

    #[test]
    fn answers_that_a_form_forbids_are_not_sent() {
        let form = form(json!({ "name": { "type": "string", "title": "Your name" } }), json!(["name"]));
        for (answer, expected) in [
            (json!({}), "Your name is missing"),
            (json!({ "name": 3 }), "Your name must be a text"),
            (json!({ "name": "a", "x": 1 }), "the form has no field x"),
        ] {
            assert_eq!(form.result(ElicitationAnswer::Accepted(values(answer))), Err(expected.into()));
        }
        assert_eq!(form.result(ElicitationAnswer::Declined), Ok(json!({ "action": "decline" })));
        assert_eq!(form.result(ElicitationAnswer::Canceled), Ok(json!({ "action": "cancel" })));
    }

    #[test]
    fn what_is_no_form_is_refused() {
        let nested = json!({ "properties": { "a": { "type": "object" } } });
        let many: Map<String, Value> =
            (0..=MAX_FIELDS).map(|at| (at.to_string(), json!({ "type": "string" }))).collect();
        for (params, expected) in [
            (json!({ "mode": "url", "url": "https://a.example" }), "the mode \"url\""),
            (json!({}), "no properties"),
            (json!({ "requestedSchema": nested }), "the field a"),
            (json!({ "requestedSchema": { "properties": many } }), "at most 64 fields"),
        ] {
            let why = ElicitationForm::parse("lab", &params).unwrap_err();
            assert!(why.contains(expected), "{why}");
        }
    }
}
