//! Operators: arithmetic, comparison and membership as in Python.

use std::cmp::Ordering;
use std::rc::Rc;

use crate::ast::{Comparison, Operator};
use crate::failure::{Result, invalid};
use crate::meter::{Meter, TextBuilder};
use crate::value::{List, ListKind, Value, is_equal, undefined_error};
use crate::{format, python};

pub fn arithmetic(meter: &Rc<Meter>, operator: Operator, left: &Value, right: &Value) -> Result<Value> {
    if let (Operator::Remainder, Some(_)) = (operator, left.as_str()) {
        return format::percent(meter, left, right);
    }
    if let Some(value) = [left, right].into_iter().find(|value| value.is_undefined()) {
        return Err(undefined_error(value));
    }
    if let (Some(a), Some(b)) = (left.as_int(), right.as_int()) {
        return integers(operator, a, b);
    }
    if let (Some(a), Some(b)) = (left.as_number(), right.as_number()) {
        return floats(operator, a, b);
    }
    match (operator, left, right) {
        (Operator::Add, Value::Text(_), Value::Text(_)) => add_texts(meter, left, right),
        (Operator::Add, Value::List(a), Value::List(b)) if is_addable(a, b) => {
            let n = a.items.len() + b.items.len();
            let _room = meter.charge(n * size_of::<Value>())?;
            let mut items = Vec::with_capacity(n);
            items.extend(a.items.iter().chain(&b.items).cloned());
            Value::list(meter, items, a.kind)
        }
        (Operator::Multiply, value, n) if n.as_int().is_some() => {
            repeat(meter, value, n.as_int().unwrap_or(0))
        }
        (Operator::Multiply, n, value) if n.as_int().is_some() => {
            repeat(meter, value, n.as_int().unwrap_or(0))
        }
        _ => unsupported(operator_sign(operator), left, right),
    }
}

fn is_addable(a: &List, b: &List) -> bool {
    a.kind == b.kind && matches!(a.kind, ListKind::List | ListKind::Tuple)
}

fn operator_sign(operator: Operator) -> &'static str {
    match operator {
        Operator::Add => "+",
        Operator::Subtract => "-",
        Operator::Multiply => "*",
        Operator::Divide => "/",
        Operator::FloorDivide => "//",
        Operator::Remainder => "%",
        Operator::Power => "**",
    }
}

fn unsupported<T>(sign: &str, left: &Value, right: &Value) -> Result<T> {
    let (left, right) = (left.type_name(), right.type_name());
    invalid(format!("unsupported operand type(s) for {sign}: '{left}' and '{right}'"))
}

fn integers(operator: Operator, a: i128, b: i128) -> Result<Value> {
    let is_division = matches!(operator, Operator::Divide | Operator::FloorDivide | Operator::Remainder);
    if is_division && b == 0 {
        return invalid("division by zero");
    }
    let found = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Divide => return Ok(Value::Float(a as f64 / b as f64)),
        Operator::FloorDivide => {
            a.checked_div(b).map(|q| if a % b != 0 && (a < 0) != (b < 0) { q - 1 } else { q })
        }
        Operator::Remainder => a.checked_rem(b).map(|r| if r != 0 && (r < 0) != (b < 0) { r + b } else { r }),
        Operator::Power if b < 0 => return floats(operator, a as f64, b as f64),
        Operator::Power => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
    };
    match found {
        Some(value) => Ok(Value::Int(value)),
        None => invalid("a number is too large"),
    }
}

fn floats(operator: Operator, a: f64, b: f64) -> Result<Value> {
    let is_division = matches!(operator, Operator::Divide | Operator::FloorDivide | Operator::Remainder);
    if (is_division && b == 0.0) || (operator == Operator::Power && a == 0.0 && b < 0.0) {
        return invalid("division by zero");
    }
    Ok(Value::Float(match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide => a / b,
        Operator::FloorDivide => (a / b).floor(),
        Operator::Remainder => {
            let rest = a % b;
            if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest }
        }
        Operator::Power => a.powf(b),
    }))
}

/// Adds to a safe text: unsafe text is escaped, as Python's markupsafe does.
fn add_texts(meter: &Rc<Meter>, left: &Value, right: &Value) -> Result<Value> {
    let is_safe = left.is_safe() || right.is_safe();
    let mut out = TextBuilder::new(meter);
    for value in [left, right] {
        let text = value.as_str().unwrap_or_default();
        match is_safe && !value.is_safe() {
            true => escape(text, &mut out)?,
            false => out.push_str(text)?,
        }
    }
    Ok(if is_safe { safe(Value::built(out)) } else { Value::built(out) })
}

/// Marks a text as safe.
pub fn safe(mut value: Value) -> Value {
    if let Value::Text(text) = &mut value {
        text.is_safe = true;
    }
    value
}

pub fn escape(text: &str, out: &mut TextBuilder) -> Result<()> {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;")?,
            '<' => out.push_str("&lt;")?,
            '>' => out.push_str("&gt;")?,
            '\'' => out.push_str("&#39;")?,
            '"' => out.push_str("&#34;")?,
            c => out.push(c)?,
        }
    }
    Ok(())
}

fn repeat(meter: &Rc<Meter>, value: &Value, n: i128) -> Result<Value> {
    let n = usize::try_from(n.max(0)).unwrap_or(usize::MAX);
    match value {
        Value::Text(text) => {
            let bytes = text.as_str().len().saturating_mul(n);
            let _room = meter.charge(bytes)?;
            Value::string(meter, text.as_str().repeat(n))
        }
        Value::List(list) if matches!(list.kind, ListKind::List | ListKind::Tuple) => {
            let len = list.items.len().saturating_mul(n);
            let _room = meter.charge(len.saturating_mul(size_of::<Value>()))?;
            meter.work(len as u64)?;
            let mut items = Vec::with_capacity(len);
            (0..n)
                .take(if list.items.is_empty() { 0 } else { n })
                .for_each(|_| items.extend_from_slice(&list.items));
            Value::list(meter, items, list.kind)
        }
        other => unsupported("*", other, &Value::Int(0)),
    }
}

/// Joins texts of any values: the operator `~`.
pub fn concat(meter: &Rc<Meter>, values: &[Value]) -> Result<Value> {
    let mut out = TextBuilder::new(meter);
    values.iter().try_for_each(|value| python::write_str(value, &mut out))?;
    Ok(Value::built(out))
}

pub fn compare(meter: &Rc<Meter>, comparison: Comparison, left: &Value, right: &Value) -> Result<bool> {
    Ok(match comparison {
        Comparison::Equal => equal(meter, left, right)?,
        Comparison::NotEqual => !equal(meter, left, right)?,
        Comparison::In => contains(meter, right, left)?,
        Comparison::NotIn => !contains(meter, right, left)?,
        Comparison::Less => order(meter, left, right, "<")? == Some(Ordering::Less),
        Comparison::Greater => order(meter, left, right, ">")? == Some(Ordering::Greater),
        Comparison::LessOrEqual => {
            matches!(order(meter, left, right, "<=")?, Some(Ordering::Less | Ordering::Equal))
        }
        Comparison::GreaterOrEqual => {
            matches!(order(meter, left, right, ">=")?, Some(Ordering::Greater | Ordering::Equal))
        }
    })
}

/// `left == right`, with its work counted.
pub fn equal(meter: &Rc<Meter>, left: &Value, right: &Value) -> Result<bool> {
    match (left, right) {
        (Value::Text(a), Value::Text(b)) => {
            meter.bytes_work(a.as_str().len().min(b.as_str().len()))?;
            Ok(a.as_str() == b.as_str())
        }
        (Value::List(a), Value::List(b)) => {
            let is_same_kind = std::mem::discriminant(&a.kind) == std::mem::discriminant(&b.kind);
            if !is_same_kind || a.kind == ListKind::Generator || a.items.len() != b.items.len() {
                return Ok(Rc::ptr_eq(a, b));
            }
            for (a, b) in a.items.iter().zip(&b.items) {
                meter.work(1)?;
                if !equal(meter, a, b)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Value::Dict(a), Value::Dict(b)) => {
            if a.entries.len() != b.entries.len() {
                return Ok(false);
            }
            for (key, value) in &a.entries {
                match b.counted_get(meter, key)? {
                    Some(other) if equal(meter, value, other)? => {}
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }
        _ => Ok(is_equal(left, right)),
    }
}

/// Orders two values. `None`: one is not a number.
///
/// Errors: types without an order.
pub fn order(meter: &Rc<Meter>, left: &Value, right: &Value, sign: &str) -> Result<Option<Ordering>> {
    meter.work(1)?;
    if let (Some(a), Some(b)) = (left.as_int(), right.as_int()) {
        return Ok(Some(a.cmp(&b)));
    }
    if let (Some(a), Some(b)) = (left.as_number(), right.as_number()) {
        return Ok(a.partial_cmp(&b));
    }
    match (left, right) {
        (Value::Text(a), Value::Text(b)) => {
            meter.bytes_work(a.as_str().len().min(b.as_str().len()))?;
            Ok(Some(a.as_str().cmp(b.as_str())))
        }
        (Value::List(a), Value::List(b)) if is_addable(a, b) => {
            for (a, b) in a.items.iter().zip(&b.items) {
                if !equal(meter, a, b)? {
                    return order(meter, a, b, sign);
                }
            }
            Ok(Some(a.items.len().cmp(&b.items.len())))
        }
        (Value::Undefined(_), _) => Err(undefined_error(left)),
        (_, Value::Undefined(_)) => Err(undefined_error(right)),
        _ => {
            let (left, right) = (left.type_name(), right.type_name());
            invalid(format!("'{sign}' not supported between instances of '{left}' and '{right}'"))
        }
    }
}

/// `item in container`.
pub fn contains(meter: &Rc<Meter>, container: &Value, item: &Value) -> Result<bool> {
    match (container, item) {
        (Value::Text(text), Value::Text(part)) => {
            meter.bytes_work(text.as_str().len())?;
            Ok(text.as_str().contains(part.as_str()))
        }
        (Value::Text(_), Value::Undefined(_)) => Err(undefined_error(item)),
        (Value::Text(_), other) => {
            invalid(format!("'in <string>' requires string as left operand, not {}", other.type_name()))
        }
        (Value::Dict(dict), _) => {
            check_hashable(item)?;
            Ok(dict.counted_get(meter, item)?.is_some())
        }
        (Value::List(list), _) => {
            for other in &list.items {
                meter.work(1)?;
                if equal(meter, other, item)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        (Value::Undefined(_), _) => Ok(false),
        (other, _) => invalid(format!("argument of type '{}' is not iterable", other.type_name())),
    }
}

/// Values of a tuple that is a key. Keys are compared again and again.
const MAX_KEY_VALUES: usize = 64;

/// Checks that a value may be a dictionary's key. Of tuples, only short ones of plain values may.
pub fn check_hashable(value: &Value) -> Result<()> {
    match value {
        Value::Dict(_) => invalid("unhashable type: 'dict'"),
        Value::List(list) if list.kind == ListKind::List => invalid("unhashable type: 'list'"),
        Value::List(list) => {
            let is_plain = |item: &Value| !matches!(item, Value::List(_) | Value::Dict(_));
            match list.items.len() <= MAX_KEY_VALUES && list.items.iter().all(is_plain) {
                true => Ok(()),
                false => invalid("a key is too complex"),
            }
        }
        _ => Ok(()),
    }
}

pub fn negative(value: &Value) -> Result<Value> {
    match (value.as_int(), value) {
        (Some(int), _) => {
            int.checked_neg().map_or_else(|| invalid("a number is too large"), |n| Ok(Value::Int(n)))
        }
        (None, Value::Float(float)) => Ok(Value::Float(-float)),
        (None, Value::Undefined(_)) => Err(undefined_error(value)),
        _ => invalid(format!("bad operand type for unary -: '{}'", value.type_name())),
    }
}

pub fn positive(value: &Value) -> Result<Value> {
    match (value.as_int(), value) {
        (Some(int), _) => Ok(Value::Int(int)),
        (None, Value::Float(float)) => Ok(Value::Float(*float)),
        (None, Value::Undefined(_)) => Err(undefined_error(value)),
        _ => invalid(format!("bad operand type for unary +: '{}'", value.type_name())),
    }
}
