//! Reads a JSON request field by field, so that every error names its field.

use serde_json::{Map, Value};

use crate::fault::OpenAiFault;
use crate::json_body;
use crate::whole_number;

pub type Result<T> = std::result::Result<T, OpenAiFault>;

/// Parses a body that must be a JSON object. An empty body is an object without fields.
pub fn object(body: &[u8]) -> Result<Map<String, Value>> {
    if body.is_empty() {
        return Ok(Map::new());
    }
    match json_body::parse(body) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(OpenAiFault::invalid(None, "The body must be a JSON object.")),
        Err(error) => Err(OpenAiFault::invalid(None, format!("The body is not JSON: {error}."))),
    }
}

/// Fields of an object; null counts as absent.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a>(pub &'a Map<String, Value>);

impl<'a> Fields<'a> {
    pub fn get(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub fn text(&self, name: &'static str) -> Result<Option<&'a str>> {
        self.typed(name, "a string", Value::as_str)
    }

    pub fn boolean(&self, name: &'static str) -> Result<Option<bool>> {
        self.typed(name, "true or false", Value::as_bool)
    }

    /// Whether a field is true; an absent one is not.
    pub fn is_set(&self, name: &'static str) -> Result<bool> {
        Ok(self.boolean(name)?.unwrap_or(false))
    }

    pub fn number(&self, name: &'static str) -> Result<Option<f64>> {
        self.typed(name, "a number", Value::as_f64)
    }

    pub fn number_within(&self, name: &'static str, min: f64, max: f64) -> Result<Option<f64>> {
        match self.number(name)? {
            Some(number) if !(min..=max).contains(&number) => {
                Err(OpenAiFault::invalid(name, format!("`{name}` must be from {min} to {max}.")))
            }
            number => Ok(number),
        }
    }

    pub fn object(&self, name: &'static str) -> Result<Option<Fields<'a>>> {
        Ok(self.typed(name, "an object", Value::as_object)?.map(Fields))
    }

    pub fn list(&self, name: &'static str) -> Result<Option<&'a Vec<Value>>> {
        self.typed(name, "a list", Value::as_array)
    }

    /// A non-negative integer.
    pub fn count(&self, name: &'static str) -> Result<Option<u64>> {
        self.typed(name, "a whole number from 0", whole_number::unsigned)
    }

    /// A non-negative integer that is at most `max`.
    pub fn count_within(&self, name: &'static str, min: u64, max: u64) -> Result<Option<u64>> {
        match self.count(name)? {
            Some(count) if !(min..=max).contains(&count) => {
                Err(OpenAiFault::invalid(name, format!("`{name}` must be from {min} to {max}.")))
            }
            count => Ok(count),
        }
    }

    pub fn typed<T>(
        &self,
        name: &'static str,
        kind: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.get(name) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| OpenAiFault::invalid(name, format!("`{name}` must be {kind}.")))
    }
}

/// Rejects a field that would change the answer but can't be followed.
pub fn unsupported(name: &'static str, message: impl Into<String>) -> OpenAiFault {
    OpenAiFault { code: Some("unsupported_parameter".into()), ..OpenAiFault::invalid(name, message) }
}

/// `text` with a capital letter at its beginning.
pub fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    first + chars.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_name_their_field() {
        let value =
            json!({ "a": "x", "b": true, "n": 1.0, "i": -1, "l": ["x", 1], "o": { "a": 1 }, "z": null });
        let fields = Fields(value.as_object().unwrap());
        assert_eq!((fields.text("a").unwrap(), fields.text("z").unwrap()), (Some("x"), None));
        assert_eq!((fields.is_set("b").unwrap(), fields.count("n").unwrap()), (true, Some(1)));
        assert_eq!(fields.object("o").unwrap().unwrap().count("a").unwrap(), Some(1));
        let errors = [
            ("b", fields.text("b").map(drop)),
            ("a", fields.boolean("a").map(drop)),
            ("i", fields.count("i").map(drop)),
            ("n", fields.count_within("n", 2, 3).map(drop)),
            ("n", fields.number_within("n", 0.0, 0.5).map(drop)),
            ("a", fields.object("a").map(drop)),
            ("o", fields.list("o").map(drop)),
        ];
        for (field, outcome) in errors {
            let fault = outcome.unwrap_err();
            assert_eq!(fault.param.as_deref(), Some(field));
            assert!(fault.message.contains(&format!("`{field}`")), "{}", fault.message);
        }
        for body in ["{", "[]", "7"] {
            assert_eq!(super::object(body.as_bytes()).unwrap_err().status.as_u16(), 400, "{body}");
        }
        assert!(super::object(b"").unwrap().is_empty());
    }
}
