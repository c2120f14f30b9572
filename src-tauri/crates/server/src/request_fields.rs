//! Reads a JSON request field by field, so that every error names its field.

use contract::types::SamplerOptions;
use contract::{Error, Result, Sampling};
use prompt::sampler_options;
use serde_json::{Map, Value};

use crate::json_body;
use crate::whole_number::{self, written_whole};

/// Parses a body that must be a JSON object.
pub fn object(body: &[u8]) -> Result<Map<String, Value>> {
    match json_body::parse(body) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(invalid("The body must be a JSON object.")),
        Err(error) => Err(invalid(format!("The body is not JSON: {error}."))),
    }
}

/// A request that can't be used. `message` is a sentence that names the field.
pub fn invalid(message: impl Into<String>) -> Error {
    Error::input("request.invalid", message, "docs/HTTP.md lists the fields of each route.")
}

/// DRY and XTC, by llama.cpp's names. None: no field of theirs is there.
pub fn samplers(fields: &Map<String, Value>) -> Result<Option<SamplerOptions>> {
    const NAMES: [&str; 7] = [
        "dry_multiplier",
        "dry_base",
        "dry_allowed_length",
        "dry_penalty_last_n",
        "dry_sequence_breakers",
        "xtc_probability",
        "xtc_threshold",
    ];
    let mut found = None;
    for name in NAMES {
        let Some(value) = fields.get(name).filter(|value| !value.is_null()) else { continue };
        let one = Value::Object(Map::from_iter([(name.to_owned(), written_whole(value.clone()))]));
        // one at a time, so that an error names its field
        serde_json::from_value::<SamplerOptions>(one)
            .map_err(|error| invalid(format!("`{name}` can't be read: {error}.")))?;
        found.get_or_insert_with(Map::new).insert(name.to_owned(), written_whole(value.clone()));
    }
    let Some(found) = found else { return Ok(None) };
    let options = serde_json::from_value(Value::Object(found))
        .map_err(|error| invalid(format!("The samplers can't be read: {error}.")))?;
    // Routes that only count tokens refuse what is out of range too.
    sampler_options::apply(&options, &mut Sampling::default())?;
    Ok(Some(options))
}

/// Fields of an object; null counts as absent.
#[derive(Debug, Clone, Copy)]
pub struct RequestFields<'a>(pub &'a Map<String, Value>);

impl<'a> RequestFields<'a> {
    pub fn get(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub fn text(&self, name: &str) -> Result<Option<&'a str>> {
        self.typed(name, "a string", Value::as_str)
    }

    pub fn boolean(&self, name: &str) -> Result<Option<bool>> {
        self.typed(name, "true or false", Value::as_bool)
    }

    pub fn number(&self, name: &str) -> Result<Option<f64>> {
        self.typed(name, "a number", Value::as_f64)
    }

    pub fn object(&self, name: &str) -> Result<Option<RequestFields<'a>>> {
        Ok(self.typed(name, "an object", Value::as_object)?.map(RequestFields))
    }

    pub fn list(&self, name: &str) -> Result<Option<&'a Vec<Value>>> {
        self.typed(name, "a list", Value::as_array)
    }

    /// A number from `min` to `max`.
    pub fn number_within(&self, name: &str, min: f64, max: f64) -> Result<Option<f64>> {
        match self.number(name)? {
            Some(number) if !(min..=max).contains(&number) => {
                Err(invalid(format!("`{name}` must be from {min} to {max}.")))
            }
            number => Ok(number),
        }
    }

    /// A whole number, which may be negative.
    pub fn integer(&self, name: &str) -> Result<Option<i64>> {
        self.typed(name, "a whole number", whole_number::signed)
    }

    /// A non-negative integer.
    pub fn count(&self, name: &str) -> Result<Option<usize>> {
        match self.integer(name)? {
            None => Ok(None),
            Some(number) => match usize::try_from(number) {
                Ok(count) => Ok(Some(count)),
                Err(_) => Err(invalid(format!("`{name}` must be a whole number from 0."))),
            },
        }
    }

    /// One text or a list of at most `max` texts.
    pub fn texts(&self, name: &str, max: usize) -> Result<Vec<String>> {
        let fault = || invalid(format!("`{name}` must be a string or a list of at most {max} strings."));
        match self.get(name) {
            None => Ok(Vec::new()),
            Some(Value::String(one)) => Ok(vec![one.clone()]),
            Some(Value::Array(all)) if all.len() <= max => {
                all.iter().map(|one| one.as_str().map(str::to_owned).ok_or_else(fault)).collect()
            }
            Some(_) => Err(fault()),
        }
    }

    fn typed<T>(
        &self,
        name: &str,
        kind: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.get(name) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| invalid(format!("`{name}` must be {kind}.")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_name_their_field() {
        let value = json!({"a": "x", "b": true, "n": 1.0, "i": -1, "l": ["x", 1], "o": {"a": 1}, "z": null});
        let fields = RequestFields(value.as_object().unwrap());
        assert_eq!((fields.text("a").unwrap(), fields.text("z").unwrap()), (Some("x"), None));
        assert_eq!((fields.boolean("b").unwrap(), fields.count("n").unwrap()), (Some(true), Some(1)));
        assert_eq!(fields.integer("i").unwrap(), Some(-1));
        assert_eq!(fields.texts("a", 1).unwrap(), ["x"]);
        assert_eq!(fields.object("o").unwrap().unwrap().count("a").unwrap(), Some(1));
        let errors = [
            ("b", fields.text("b").map(drop)),
            ("a", fields.boolean("a").map(drop)),
            ("i", fields.count("i").map(drop)),
            ("a", fields.integer("a").map(drop)),
            ("l", fields.texts("l", 2).map(drop)),
            ("l", fields.texts("l", 1).map(drop)),
            ("n", fields.number_within("n", 0.0, 0.5).map(drop)),
            ("a", fields.object("a").map(drop)),
            ("o", fields.list("o").map(drop)),
        ];
        for (field, outcome) in errors {
            let error = outcome.unwrap_err();
            assert!(error.message().contains(&format!("`{field}`")), "{error}");
        }
        for body in ["", "{", "[]", "7"] {
            assert_eq!(object(body.as_bytes()).unwrap_err().code(), "request.invalid", "{body}");
        }
    }
}
