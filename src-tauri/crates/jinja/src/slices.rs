//! Positions and slices, counted as in Python.

use std::rc::Rc;

use crate::failure::{Result, invalid};
use crate::meter::{Meter, TextBuilder};
use crate::value::undefined_error;
use crate::value::{ListKind, Value};

/// The place that an index means, if it is inside.
pub fn position(index: i128, n: usize) -> Option<usize> {
    let at = if index < 0 { index + n as i128 } else { index };
    usize::try_from(at).ok().filter(|at| *at < n)
}

/// `value[start:stop:step]`.
pub fn slice(meter: &Rc<Meter>, value: &Value, bounds: &[Option<Value>; 3]) -> Result<Value> {
    let mut numbers = [None; 3];
    for (number, bound) in numbers.iter_mut().zip(bounds) {
        *number = match bound {
            None | Some(Value::None) => None,
            Some(bound) => match bound.as_int() {
                Some(int) => Some(int),
                None if bound.is_undefined() => {
                    return invalid("a slice needs numbers, not something undefined");
                }
                None => return invalid(format!("a slice needs numbers, not {}", bound.type_name())),
            },
        };
    }
    match value {
        Value::Text(text) => {
            let text = text.as_str();
            meter.bytes_work(text.len())?;
            let _room = meter.charge(text.len() * size_of::<char>())?;
            let chars: Vec<char> = text.chars().collect();
            let _indices = meter.charge(chars.len() * size_of::<usize>())?;
            let mut out = TextBuilder::new(meter);
            out.push_str("")?;
            for at in indices(chars.len(), numbers)? {
                out.push(chars[at])?;
            }
            Ok(Value::built(out))
        }
        Value::List(list) if !matches!(list.kind, ListKind::Generator | ListKind::View(_)) => {
            let _indices = meter.charge(list.items.len() * size_of::<usize>())?;
            let chosen = indices(list.items.len(), numbers)?;
            meter.work(chosen.len() as u64)?;
            let _room = meter.charge(chosen.len() * size_of::<Value>())?;
            let kind = if list.kind == ListKind::Tuple { ListKind::Tuple } else { ListKind::List };
            Value::list(meter, chosen.into_iter().map(|at| list.items[at].clone()).collect(), kind)
        }
        Value::Undefined(_) => Err(undefined_error(value)),
        other => invalid(format!("'{}' object cannot be sliced", other.type_name())),
    }
}

fn indices(n: usize, [start, stop, step]: [Option<i128>; 3]) -> Result<Vec<usize>> {
    let step = step.unwrap_or(1);
    if step == 0 {
        return invalid("slice step cannot be zero");
    }
    let n = n as i128;
    let clamp = |bound: i128| {
        let bound = if bound < 0 { bound.saturating_add(n) } else { bound };
        if step > 0 { bound.clamp(0, n) } else { bound.clamp(-1, n - 1) }
    };
    let (first, last) = if step > 0 { (0, n) } else { (n - 1, -1) };
    let (mut at, stop) = (start.map_or(first, clamp), stop.map_or(last, clamp));
    let mut found = Vec::new();
    while if step > 0 { at < stop } else { at > stop } {
        found.push(at as usize);
        at = at.saturating_add(step);
    }
    Ok(found)
}
