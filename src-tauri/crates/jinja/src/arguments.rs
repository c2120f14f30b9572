//! Arguments of a call, and how functions take them.

use std::sync::Arc;

use crate::failure::{Result, invalid};
use crate::value::Value;
use crate::value::undefined_error;

/// Arguments that were evaluated.
#[derive(Default)]
pub struct CallArguments {
    pub positional: Vec<Value>,
    pub keywords: Vec<(Arc<str>, Value)>,
}

impl CallArguments {
    /// Orders arguments by the names of a function's parameters. Missing ones are `None`.
    ///
    /// Errors: too many, or of an unknown name.
    pub fn bind<const N: usize>(&self, function: &str, names: [&str; N]) -> Result<[Option<Value>; N]> {
        if self.positional.len() > N {
            return invalid(format!(
                "{function}() takes at most {N} arguments ({} given)",
                self.positional.len()
            ));
        }
        let mut bound = [const { None }; N];
        for (slot, value) in bound.iter_mut().zip(&self.positional) {
            *slot = Some(value.clone());
        }
        for (name, value) in &self.keywords {
            let Some(at) = names.iter().position(|known| **known == **name) else {
                return invalid(format!("{function}() got an unexpected keyword argument '{name}'"));
            };
            if bound[at].replace(value.clone()).is_some() {
                return invalid(format!("{function}() got multiple values for argument '{name}'"));
            }
        }
        Ok(bound)
    }
}

/// An integer argument, or its default.
pub fn int(value: &Option<Value>, default: i128) -> Result<i128> {
    match value {
        None => Ok(default),
        Some(value) => match value.as_int() {
            Some(int) => Ok(int),
            None if value.is_undefined() => Err(undefined_error(value)),
            None => invalid(format!("an integer is required, not {}", value.type_name())),
        },
    }
}

/// A flag, or its default.
pub fn flag(value: &Option<Value>, default: bool) -> bool {
    value.as_ref().map_or(default, Value::is_true)
}

/// A text, or its default.
pub fn text<'a>(value: &'a Option<Value>, default: &'a str) -> Result<&'a str> {
    match value {
        None => Ok(default),
        Some(value) => required_text(Some(value)),
    }
}

/// A text that has to be given.
pub fn required_text(value: Option<&Value>) -> Result<&str> {
    match value {
        Some(Value::Text(text)) => Ok(text.as_str()),
        Some(value) => invalid(format!("a text is required, not {}", value.type_name())),
        None => invalid("a text is required"),
    }
}
