//! One field of a form: a text, a number, a flag, or a choice.

use serde_json::Value;

use crate::core::words;

/// Far beyond any list that a person chooses from.
const MAX_OPTIONS: usize = 256;

/// A field of a form.
#[derive(Debug, Clone, PartialEq)]
pub struct FormField {
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub is_required: bool,
    pub kind: FieldKind,
    /// Taken where the user gives no value.
    pub default: Option<Value>,
}

/// What a field takes.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldKind {
    Text { min_chars: Option<u64>, max_chars: Option<u64>, format: Option<TextFormat> },
    Number { is_integer: bool, min: Option<f64>, max: Option<f64> },
    Flag,
    Choice(Vec<ChoiceOption>),
    MultipleChoice { options: Vec<ChoiceOption>, min: Option<u64>, max: Option<u64> },
}

/// Formats of texts. They help the user; servers check them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextFormat {
    Email,
    Uri,
    Date,
    DateTime,
}

/// One option of a choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChoiceOption {
    pub value: String,
    /// For the user.
    pub title: String,
}

impl FormField {
    /// Parses a property of a form's schema.
    ///
    /// Errors: the rest of a sentence about the field.
    pub(super) fn parse(name: &str, schema: &Value, is_required: bool) -> Result<Self, String> {
        let text = |key: &str| schema[key].as_str().map(words).filter(|text| !text.is_empty());
        let kind = FieldKind::parse(schema)?;
        let mut field = Self {
            name: name.into(),
            title: text("title"),
            description: text("description"),
            is_required,
            kind,
            default: None,
        };
        // A default that the field itself forbids is none.
        field.default = Some(schema["default"].clone()).filter(|value| field.check(value).is_ok());
        Ok(field)
    }

    /// What the user knows it by.
    pub fn label(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }

    /// Checks a value. Errors: the rest of a sentence about the field.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        let is_within = |n: u64, min: Option<u64>, max: Option<u64>| {
            min.is_none_or(|min| n >= min) && max.is_none_or(|max| n <= max)
        };
        match &self.kind {
            FieldKind::Text { min_chars, max_chars, .. } => {
                let text = value.as_str().ok_or("must be a text")?;
                let n = text.chars().count() as u64;
                if is_within(n, *min_chars, *max_chars) { Ok(()) } else { Err("has a wrong length".into()) }
            }
            FieldKind::Number { is_integer, min, max } => {
                let number = value.as_f64().ok_or("must be a number")?;
                if *is_integer && number.fract() != 0.0 {
                    return Err("must be a whole number".into());
                }
                match (min, max) {
                    (Some(min), _) if number < *min => Err(format!("must be at least {min}")),
                    (_, Some(max)) if number > *max => Err(format!("must be at most {max}")),
                    _ => Ok(()),
                }
            }
            FieldKind::Flag => value.as_bool().map(drop).ok_or("must be true or false".into()),
            FieldKind::Choice(options) => check_option(options, value),
            FieldKind::MultipleChoice { options, min, max } => {
                let chosen = value.as_array().ok_or("must be a list")?;
                chosen.iter().try_for_each(|one| check_option(options, one))?;
                let n = chosen.len() as u64;
                if is_within(n, *min, *max) { Ok(()) } else { Err("has too few or too many options".into()) }
            }
        }
    }
}

fn check_option(options: &[ChoiceOption], value: &Value) -> Result<(), String> {
    let is_option = value.as_str().is_some_and(|text| options.iter().any(|option| option.value == text));
    if is_option { Ok(()) } else { Err(format!("has no option {value}")) }
}

impl FieldKind {
    fn parse(schema: &Value) -> Result<Self, String> {
        let count = |key: &str| schema[key].as_u64();
        match schema["type"].as_str() {
            Some("string") => match options(schema, "oneOf")? {
                Some(options) => Ok(Self::Choice(options)),
                None => Ok(Self::Text {
                    min_chars: count("minLength"),
                    max_chars: count("maxLength"),
                    format: schema["format"].as_str().and_then(TextFormat::of_name),
                }),
            },
            Some(kind @ ("number" | "integer")) => Ok(Self::Number {
                is_integer: kind == "integer",
                min: schema["minimum"].as_f64(),
                max: schema["maximum"].as_f64(),
            }),
            Some("boolean") => Ok(Self::Flag),
            Some("array") => match options(&schema["items"], "anyOf")? {
                Some(options) => {
                    Ok(Self::MultipleChoice { options, min: count("minItems"), max: count("maxItems") })
                }
                None => Err("is a list without options".into()),
            },
            Some(other) => Err(format!("has the type \"{other}\", which forms don't have")),
            None => Err("has no type".into()),
        }
    }
}

/// The options of a choice: `enum`, with the names of earlier revisions, or titled ones under `titled_key`.
fn options(schema: &Value, titled_key: &str) -> Result<Option<Vec<ChoiceOption>>, String> {
    let option = |value: &str, title: Option<&str>| ChoiceOption {
        value: value.into(),
        title: words(title.unwrap_or(value)),
    };
    let all: Vec<ChoiceOption> = match (&schema[titled_key], &schema["enum"]) {
        (Value::Array(titled), _) => {
            let options =
                titled.iter().filter_map(|it| Some(option(it["const"].as_str()?, it["title"].as_str())));
            options.collect()
        }
        (_, Value::Array(values)) => {
            let named = values.iter().enumerate();
            let options =
                named.filter_map(|(at, it)| Some(option(it.as_str()?, schema["enumNames"][at].as_str())));
            options.collect()
        }
        _ => return Ok(None),
    };
    match all.len() {
        0 => Err("has no options".into()),
        n if n > MAX_OPTIONS => Err(format!("has more than {MAX_OPTIONS} options")),
        _ => Ok(Some(all)),
    }
}

impl TextFormat {
    fn of_name(name: &str) -> Option<Self> {
        match name {
            "email" => Some(Self::Email),
            "uri" => Some(Self::Uri),
            "date" => Some(Self::Date),
            "date-time" => Some(Self::DateTime),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field(schema: Value) -> FormField {
        FormField::parse("x", &schema, false).unwrap()
    }

    #[test]
    fn choices_of_every_kind_are_read() {
        let titles = |schema: Value| match field(schema).kind {
            FieldKind::Choice(options) | FieldKind::MultipleChoice { options, .. } => {
                options.into_iter().map(|it| format!("{}={}", it.value, it.title)).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        };
        let titled = json!([{ "const": "a", "title": "One" }, { "const": "b" }]);
        // The kinds of SEP-1330.
        for (schema, expected) in [
            (json!({ "type": "string", "enum": ["a", "b"] }), ["a=a", "b=b"]),
            (json!({ "type": "string", "enum": ["a", "b"], "enumNames": ["One"] }), ["a=One", "b=b"]),
            (json!({ "type": "string", "oneOf": titled }), ["a=One", "b=b"]),
            (json!({ "type": "array", "items": { "type": "string", "enum": ["a", "b"] } }), ["a=a", "b=b"]),
            (json!({ "type": "array", "items": { "anyOf": titled } }), ["a=One", "b=b"]),
        ] {
            assert_eq!(titles(schema.clone()), expected, "{schema}");
        }
    }

    #[test]
    fn values_are_checked() {
        let text = json!({ "type": "string", "minLength": 2, "maxLength": 3 });
        let number = json!({ "type": "number", "minimum": 1, "maximum": 2 });
        let list = json!({ "type": "array", "items": { "enum": ["a", "b"] }, "maxItems": 1 });
        for (schema, value, is_valid) in [
            (text.clone(), json!("äöü"), true),
            (text.clone(), json!("ä"), false),
            (text, json!("abcd"), false),
            (number.clone(), json!(1.5), true),
            (number.clone(), json!(0), false),
            (number, json!("1"), false),
            (json!({ "type": "integer" }), json!(2.0), true),
            (json!({ "type": "integer" }), json!(2.5), false),
            (json!({ "type": "boolean" }), json!(0), false),
            (json!({ "type": "string", "enum": ["a"] }), json!("b"), false),
            (list.clone(), json!(["b"]), true),
            (list.clone(), json!(["a", "b"]), false),
            (list, json!("a"), false),
        ] {
            assert_eq!(field(schema.clone()).check(&value).is_ok(), is_valid, "{schema} {value}");
        }
        assert_eq!(field(json!({ "type": "integer", "default": "many" })).default, None);
    }

    #[test]
    fn what_a_form_can_not_hold_is_refused() {
        for schema in [
            json!({}),
            json!({ "type": "object" }),
            json!({ "type": "array", "items": { "type": "string" } }),
            json!({ "type": "string", "enum": [] }),
            json!({ "type": "string", "enum": vec!["a"; MAX_OPTIONS + 1] }),
        ] {
            assert!(FormField::parse("x", &schema, false).is_err(), "{schema}");
        }
    }
}
