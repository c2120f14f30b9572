//! Tests: what stands after `is`.

use std::rc::Rc;

use crate::arguments::CallArguments;
use crate::ast::Comparison;
use crate::failure::{Result, invalid};
use crate::meter::Meter;
use crate::names;
use crate::ops;
use crate::value::undefined_error;
use crate::value::{ListKind, Value};

/// Tests that compare with their argument.
const COMPARISONS: &[(&str, Comparison)] = &[
    ("eq", Comparison::Equal),
    ("equalto", Comparison::Equal),
    ("==", Comparison::Equal),
    ("ne", Comparison::NotEqual),
    ("!=", Comparison::NotEqual),
    ("lt", Comparison::Less),
    ("lessthan", Comparison::Less),
    ("<", Comparison::Less),
    ("le", Comparison::LessOrEqual),
    ("<=", Comparison::LessOrEqual),
    ("gt", Comparison::Greater),
    ("greaterthan", Comparison::Greater),
    (">", Comparison::Greater),
    ("ge", Comparison::GreaterOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("in", Comparison::In),
];

pub fn is_known(name: &str) -> bool {
    names::TESTS.contains(&name) || COMPARISONS.iter().any(|(known, _)| *known == name)
}

pub fn apply(meter: &Rc<Meter>, name: &str, value: &Value, given: &CallArguments) -> Result<bool> {
    let argument = || given.positional.first().or(given.keywords.first().map(|(_, value)| value));
    if let Some((_, comparison)) = COMPARISONS.iter().find(|(known, _)| *known == name) {
        let Some(other) = argument() else { return invalid(format!("the test '{name}' needs a value")) };
        return ops::compare(meter, *comparison, value, other);
    }
    let is_case = |is_it: fn(char) -> bool, is_other: fn(char) -> bool| {
        let text = value.as_str().unwrap_or_default();
        text.chars().any(is_it) && !text.chars().any(is_other)
    };
    Ok(match name {
        "boolean" => matches!(value, Value::Bool(_)),
        "callable" => is_callable(value),
        "defined" => !value.is_undefined(),
        "undefined" => value.is_undefined(),
        "divisibleby" => remainder(value, argument())? == 0,
        "even" => remainder(value, Some(&Value::Int(2)))? == 0,
        "odd" => remainder(value, Some(&Value::Int(2)))? == 1,
        "escaped" => value.is_safe(),
        "false" => matches!(value, Value::Bool(false)),
        "true" => matches!(value, Value::Bool(true)),
        "filter" => value.as_str().is_some_and(|name| names::FILTERS.contains(&name)),
        "test" => value.as_str().is_some_and(is_known),
        "float" => matches!(value, Value::Float(_)),
        "integer" => matches!(value, Value::Int(_)),
        "iterable" => is_iterable(value),
        "lower" => is_case(char::is_lowercase, char::is_uppercase),
        "upper" => is_case(char::is_uppercase, char::is_lowercase),
        "mapping" => matches!(value, Value::Dict(_)),
        "none" => matches!(value, Value::None),
        "number" => value.as_number().is_some(),
        "sameas" => argument().is_some_and(|other| is_same(value, other)),
        // as in Python, whatever has a length and items: something undefined too
        "sequence" => match value {
            Value::List(list) => !matches!(list.kind, ListKind::Generator | ListKind::View(_)),
            other => matches!(other, Value::Dict(_) | Value::Text(_) | Value::Undefined(_)),
        },
        "string" => value.as_str().is_some(),
        _ => return invalid(format!("no test named '{name}'")),
    })
}

pub fn is_callable(value: &Value) -> bool {
    matches!(value, Value::Callable(_) | Value::Joiner(_) | Value::Loop(_) | Value::Undefined(_))
}

pub fn is_iterable(value: &Value) -> bool {
    matches!(value, Value::List(_) | Value::Dict(_) | Value::Text(_) | Value::Undefined(_) | Value::Loop(_))
}

fn remainder(value: &Value, by: Option<&Value>) -> Result<i128> {
    let Some(by) = by else { return invalid("a number to divide by is missing") };
    match (value.as_int(), by.as_int()) {
        (_, Some(0)) => invalid("division by zero"),
        (Some(value), Some(by)) => Ok(value.rem_euclid(by.saturating_abs())),
        _ => match (value.as_number(), by.as_number()) {
            (Some(value), Some(by)) => {
                let rest = value.rem_euclid(by.abs());
                Ok(if rest.fract() == 0.0 { rest as i128 } else { -1 })
            }
            _ if value.is_undefined() => Err(undefined_error(value)),
            _ => invalid(format!("a number is required, not {}", value.type_name())),
        },
    }
}

fn is_same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::None, Value::None) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Text(a), Value::Text(b)) => a.as_str() == b.as_str(),
        (Value::List(a), Value::List(b)) => Rc::ptr_eq(a, b),
        (Value::Dict(a), Value::Dict(b)) => Rc::ptr_eq(a, b),
        (Value::Namespace(a), Value::Namespace(b)) => Rc::ptr_eq(a, b),
        (Value::Undefined(_), Value::Undefined(_)) => false,
        _ => false,
    }
}
