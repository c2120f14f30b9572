//! The order in which filters sort.

use std::cmp::Ordering;
use std::rc::Rc;

use crate::changes::{changed, lower};
use crate::failure::Result;
use crate::meter::Meter;
use crate::ops;
use crate::value::{ListKind, Value};

/// What a value is compared by: texts without their case, unless it matters.
pub fn folded(meter: &Rc<Meter>, value: &Value, case_sensitive: bool) -> Result<Value> {
    match value {
        Value::Text(text) if !case_sensitive => changed(meter, text.as_str(), lower),
        Value::List(list) if list.kind == ListKind::Tuple || list.kind == ListKind::List => {
            let items = list.items.iter().map(|item| folded(meter, item, case_sensitive));
            Value::list(meter, items.collect::<Result<Vec<_>>>()?, list.kind)
        }
        other => Ok(other.clone()),
    }
}

/// The order that sorts these keys. Equal ones keep theirs.
pub fn sorted_indices(
    meter: &Rc<Meter>,
    keys: &[Value],
    case_sensitive: bool,
    reverse: bool,
) -> Result<Vec<usize>> {
    let _room = meter.charge(keys.len() * (size_of::<usize>() * 2 + size_of::<Value>()))?;
    let keys = keys.iter().map(|key| folded(meter, key, case_sensitive)).collect::<Result<Vec<_>>>()?;
    let mut order: Vec<usize> = (0..keys.len()).collect();
    let mut failed = None;
    order.sort_by(|a, b| {
        if failed.is_some() {
            return Ordering::Equal;
        }
        let (a, b) = if reverse { (b, a) } else { (a, b) };
        match ops::order(meter, &keys[*a], &keys[*b], "<") {
            Ok(order) => order.unwrap_or(Ordering::Equal),
            Err(failure) => {
                failed = Some(failure);
                Ordering::Equal
            }
        }
    });
    match failed {
        Some(failure) => Err(failure),
        None => Ok(order),
    }
}
