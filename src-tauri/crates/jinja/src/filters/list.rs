//! Filters of lists and dictionaries.

use std::rc::Rc;

use crate::arguments::{CallArguments, flag, int, required_text, text};
use crate::ast::Operator;
use crate::failure::{Result, invalid};
use crate::meter::TextBuilder;
use crate::ops;
use crate::render::Renderer;
use crate::sorting::{folded, sorted_indices};
use crate::value::{List, ListKind, Value, undefined_error};
use crate::{predicates, python};

/// Rows of `slice` and items of `batch`: no list is longer.
const MAX_ROWS: i128 = 100_000;

pub fn apply(
    renderer: &Renderer<'_>,
    name: &str,
    value: &Value,
    given: &CallArguments,
) -> Result<Option<Value>> {
    let meter = &renderer.meter;
    let list = |items| Value::list(meter, items, ListKind::List);
    Ok(Some(match name {
        "length" | "count" => Value::Int(length(renderer, value)?),
        "list" => {
            let items = renderer.iterate(value)?;
            meter.work(items.items.len() as u64)?;
            let _room = meter.charge(items.items.len() * size_of::<Value>())?;
            list(items.items.clone())?
        }
        "first" => renderer.iterate(value)?.items.first().cloned().unwrap_or(Value::undefined()),
        "last" => {
            if let Value::List(list) = value
                && list.kind == ListKind::Generator
            {
                return invalid("'generator' object is not reversible");
            }
            renderer.iterate(value)?.items.last().cloned().unwrap_or(Value::undefined())
        }
        "join" => join(renderer, value, given)?,
        "items" => match value {
            Value::Dict(dict) => Value::list(meter, dict.pairs(meter)?, ListKind::Generator)?,
            Value::Undefined(_) => Value::list(meter, Vec::new(), ListKind::Generator)?,
            _ => return invalid("Can only get item pairs from a mapping."),
        },
        "dictsort" => dictsort(renderer, value, given)?,
        "sort" => sort(renderer, value, given)?,
        "unique" => unique(renderer, value, given)?,
        "min" | "max" => extreme(renderer, value, given, name == "max")?,
        "sum" => sum(renderer, value, given)?,
        "reverse" => match value {
            Value::Text(_) => crate::slices::slice(meter, value, &[None, None, Some(Value::Int(-1))])?,
            _ => {
                let items = renderer.iterate(value)?;
                meter.work(items.items.len() as u64)?;
                let _room = meter.charge(items.items.len() * size_of::<Value>())?;
                Value::list(meter, items.items.iter().rev().cloned().collect(), ListKind::Generator)?
            }
        },
        "map" => map(renderer, value, given)?,
        "select" | "reject" | "selectattr" | "rejectattr" => select(renderer, name, value, given)?,
        "groupby" => groupby(renderer, value, given)?,
        "batch" | "slice" => rows(renderer, name, value, given)?,
        _ => return Ok(None),
    }))
}

fn length(renderer: &Renderer<'_>, value: &Value) -> Result<i128> {
    Ok(match value {
        Value::Undefined(_) => 0,
        Value::Text(text) => {
            renderer.meter.bytes_work(text.as_str().len())?;
            text.as_str().chars().count() as i128
        }
        Value::List(list) if list.kind != ListKind::Generator => list.items.len() as i128,
        Value::Dict(dict) => dict.entries.len() as i128,
        Value::Loop(state) => state.items.items.len() as i128,
        other => return invalid(format!("object of type '{}' has no len()", other.type_name())),
    })
}

/// `a.b.0` of a value.
fn path(renderer: &Renderer<'_>, value: &Value, path: &Value) -> Result<Value> {
    renderer.meter.work(1)?;
    let Value::Text(text) = path else { return renderer.item(value, path) };
    let mut found = value.clone();
    for part in text.as_str().split('.') {
        let index = match part.parse::<i128>() {
            Ok(index) if !part.is_empty() => Value::Int(index),
            _ => Value::text(&renderer.meter, part)?,
        };
        found = renderer.item(&found, &index)?;
    }
    Ok(found)
}

fn keys(renderer: &Renderer<'_>, items: &List, attribute: Option<&Value>) -> Result<Vec<Value>> {
    match attribute {
        None | Some(Value::None) => {
            renderer.meter.work(items.items.len() as u64)?;
            let _room = renderer.meter.charge(items.items.len() * size_of::<Value>())?;
            Ok(items.items.clone())
        }
        Some(attribute) => items.items.iter().map(|item| path(renderer, item, attribute)).collect(),
    }
}

fn join(renderer: &Renderer<'_>, value: &Value, given: &CallArguments) -> Result<Value> {
    let [separator, attribute] = given.bind("join", ["d", "attribute"])?;
    let items = renderer.iterate(value)?;
    let items = keys(renderer, &items, attribute.as_ref())?;
    let separator = match &separator {
        Some(separator) => python::to_text(&renderer.meter, separator)?,
        None => Value::text(&renderer.meter, "")?,
    };
    let mut out = TextBuilder::new(&renderer.meter);
    out.push_str("")?;
    for (n, item) in items.iter().enumerate() {
        renderer.meter.work(1)?;
        if n > 0 {
            python::write_str(&separator, &mut out)?;
        }
        python::write_str(item, &mut out)?;
    }
    Ok(Value::built(out))
}

fn dictsort(renderer: &Renderer<'_>, value: &Value, given: &CallArguments) -> Result<Value> {
    let [case_sensitive, by, reverse] = given.bind("dictsort", ["case_sensitive", "by", "reverse"])?;
    let Value::Dict(dict) = value else {
        return match value.is_undefined() {
            true => Err(undefined_error(value)),
            false => invalid(format!("'{}' object has no attribute 'items'", value.type_name())),
        };
    };
    let keys: Vec<Value> = match text(&by, "key")? {
        "key" => dict.entries.iter().map(|(key, _)| key.clone()).collect(),
        "value" => dict.entries.iter().map(|(_, value)| value.clone()).collect(),
        _ => return invalid("You can only sort by either \"key\" or \"value\""),
    };
    let order = sorted_indices(&renderer.meter, &keys, flag(&case_sensitive, false), flag(&reverse, false))?;
    let pairs = dict.pairs(&renderer.meter)?;
    Value::list(&renderer.meter, order.into_iter().map(|at| pairs[at].clone()).collect(), ListKind::List)
}

fn sort(renderer: &Renderer<'_>, value: &Value, given: &CallArguments) -> Result<Value> {
    let [reverse, case_sensitive, attribute] =
        given.bind("sort", ["reverse", "case_sensitive", "attribute"])?;
    let meter = &renderer.meter;
    let items = renderer.iterate(value)?;
    let _room = meter.charge(items.items.len() * size_of::<Value>() * 2)?;
    let keys = match &attribute {
        Some(Value::Text(text)) if text.as_str().contains(',') => {
            let parts: Vec<Value> =
                text.as_str().split(',').map(|part| Value::text(meter, part)).collect::<Result<_>>()?;
            let key = |item: &Value| {
                let parts =
                    parts.iter().map(|part| path(renderer, item, part)).collect::<Result<Vec<_>>>()?;
                Value::list(meter, parts, ListKind::Tuple)
            };
            items.items.iter().map(key).collect::<Result<Vec<_>>>()?
        }
        attribute => keys(renderer, &items, attribute.as_ref())?,
    };
    let order = sorted_indices(meter, &keys, flag(&case_sensitive, false), flag(&reverse, false))?;
    Value::list(meter, order.into_iter().map(|at| items.items[at].clone()).collect(), ListKind::List)
}

fn unique(renderer: &Renderer<'_>, value: &Value, given: &CallArguments) -> Result<Value> {
    let [case_sensitive, attribute] = given.bind("unique", ["case_sensitive", "attribute"])?;
    let meter = &renderer.meter;
    let items = renderer.iterate(value)?;
    let keys = keys(renderer, &items, attribute.as_ref())?;
    let (mut seen, mut kept): (Vec<Value>, Vec<Value>) = (Vec::new(), Vec::new());
    let _room = meter.charge(items.items.len() * size_of::<Value>() * 2)?;
    'items: for (item, key) in items.items.iter().zip(&keys) {
        ops::check_hashable(key)?;
        let key = folded(meter, key, flag(&case_sensitive, false))?;
        for other in &seen {
            meter.work(1)?;
            if ops::equal(meter, other, &key)? {
                continue 'items;
            }
        }
        seen.push(key);
        kept.push(item.clone());
    }
    Value::list(meter, kept, ListKind::Generator)
}

fn extreme(renderer: &Renderer<'_>, value: &Value, given: &CallArguments, is_max: bool) -> Result<Value> {
    let [case_sensitive, attribute] = given.bind("min", ["case_sensitive", "attribute"])?;
    let meter = &renderer.meter;
    let items = renderer.iterate(value)?;
    let keys = keys(renderer, &items, attribute.as_ref())?;
    let mut best: Option<(Value, usize)> = None;
    for (at, key) in keys.iter().enumerate() {
        let key = folded(meter, key, flag(&case_sensitive, false))?;
        let is_better = match &best {
            None => true,
            Some((known, _)) => {
                let order = ops::order(meter, &key, known, if is_max { ">" } else { "<" })?;
                order.is_some_and(|order| if is_max { order.is_gt() } else { order.is_lt() })
            }
        };
        if is_better {
            best = Some((key, at));
        }
    }
    Ok(best.map_or(Value::undefined(), |(_, at)| items.items[at].clone()))
}

fn sum(renderer: &Renderer<'_>, value: &Value, given: &CallArguments) -> Result<Value> {
    let [attribute, start] = given.bind("sum", ["attribute", "start"])?;
    let items = renderer.iterate(value)?;
    let mut total = start.unwrap_or(Value::Int(0));
    if total.as_str().is_some() {
        return invalid("sum() can't sum strings");
    }
    for item in keys(renderer, &items, attribute.as_ref())? {
        total = ops::arithmetic(&renderer.meter, Operator::Add, &total, &item)?;
    }
    Ok(total)
}

/// The items of a list. Python's filters take whatever is false for an empty one.
fn items_or_none(renderer: &Renderer<'_>, value: &Value) -> Result<Rc<List>> {
    renderer.iterate(if value.is_true() { value } else { &Value::Undefined(None) })
}

fn map(renderer: &Renderer<'_>, value: &Value, given: &CallArguments) -> Result<Value> {
    let meter = &renderer.meter;
    let items = items_or_none(renderer, value)?;
    let attribute = given.keywords.iter().find(|(name, _)| **name == *"attribute");
    let mapped = match (given.positional.first(), attribute) {
        (None, Some((_, attribute))) => {
            let default =
                given.keywords.iter().find(|(name, _)| **name == *"default").map(|(_, value)| value);
            let found = |item| {
                let found = path(renderer, item, attribute)?;
                Ok(default.filter(|_| found.is_undefined()).cloned().unwrap_or(found))
            };
            items.items.iter().map(found).collect::<Result<Vec<_>>>()?
        }
        (Some(name), _) => {
            let name = required_text(Some(name))?;
            if !crate::names::FILTERS.contains(&name) {
                return invalid(format!("No filter named '{name}'."));
            }
            let one = |item| {
                let (positional, keywords) = (given.positional[1..].to_vec(), given.keywords.clone());
                renderer.deeper(|| super::apply(renderer, name, item, CallArguments { positional, keywords }))
            };
            items.items.iter().map(one).collect::<Result<Vec<_>>>()?
        }
        (None, None) => return invalid("map requires a filter argument"),
    };
    Value::list(meter, mapped, ListKind::Generator)
}

fn select(renderer: &Renderer<'_>, name: &str, value: &Value, given: &CallArguments) -> Result<Value> {
    let meter = &renderer.meter;
    let items = items_or_none(renderer, value)?;
    let (keeps, by_attribute) = (name.starts_with("select"), name.ends_with("attr"));
    let mut arguments = given.positional.iter();
    let attribute = if by_attribute { arguments.next() } else { None };
    if by_attribute && attribute.is_none() {
        return invalid("Missing parameter for attribute name");
    }
    let test = arguments.next().map(|test| required_text(Some(test))).transpose()?;
    if let Some(test) = test
        && !predicates::is_known(test)
    {
        return invalid(format!("No test named '{test}'."));
    }
    let given = CallArguments { positional: arguments.cloned().collect(), keywords: given.keywords.clone() };
    let mut kept = Vec::new();
    for item in &items.items {
        meter.work(1)?;
        let looked =
            attribute.map_or_else(|| Ok(item.clone()), |attribute| path(renderer, item, attribute))?;
        let holds = match test {
            Some(test) => predicates::apply(meter, test, &looked, &given)?,
            None => looked.is_true(),
        };
        if holds == keeps {
            kept.push(item.clone());
        }
    }
    Value::list(meter, kept, ListKind::Generator)
}

fn groupby(renderer: &Renderer<'_>, value: &Value, given: &CallArguments) -> Result<Value> {
    let [attribute, default, case_sensitive] =
        given.bind("groupby", ["attribute", "default", "case_sensitive"])?;
    let meter = &renderer.meter;
    let case_sensitive = flag(&case_sensitive, false);
    let items = renderer.iterate(value)?;
    let found = keys(renderer, &items, attribute.as_ref())?;
    let with_default = |key: Value| match (&default, key.is_undefined()) {
        (Some(default), true) => default.clone(),
        _ => key,
    };
    let keys: Vec<Value> = found.into_iter().map(with_default).collect();
    let order = sorted_indices(meter, &keys, case_sensitive, false)?;
    let mut groups: Vec<(Value, Value, Vec<Value>)> = Vec::new();
    for at in order {
        let key = folded(meter, &keys[at], case_sensitive)?;
        match groups.last_mut() {
            Some((known, _, group)) if ops::equal(meter, known, &key)? => group.push(items.items[at].clone()),
            _ => groups.push((key, keys[at].clone(), vec![items.items[at].clone()])),
        }
    }
    let group = |(_, key, items)| {
        let pair = vec![key, Value::list(meter, items, ListKind::List)?];
        Value::list(meter, pair, ListKind::Tuple)
    };
    Value::list(meter, groups.into_iter().map(group).collect::<Result<Vec<_>>>()?, ListKind::List)
}

fn rows(renderer: &Renderer<'_>, name: &str, value: &Value, given: &CallArguments) -> Result<Value> {
    let [n, fill] = given.bind(name, ["n", "fill_with"])?;
    let meter = &renderer.meter;
    let n = int(&n, 0)?;
    if !(1..=MAX_ROWS).contains(&n) {
        return invalid(format!("{name} needs a number from 1 to {MAX_ROWS}"));
    }
    let n = n as usize;
    let fill = fill.filter(|fill| !matches!(fill, Value::None));
    let items = renderer.iterate(value)?;
    meter.work(items.items.len() as u64 + n as u64)?;
    let row = |items: Vec<Value>| Value::list(meter, items, ListKind::List);
    let mut found = Vec::new();
    if name == "batch" {
        for chunk in items.items.chunks(n) {
            let mut chunk = chunk.to_vec();
            if let Some(fill) = &fill {
                let _room = meter.charge(n * size_of::<Value>())?;
                chunk.resize(n, fill.clone());
            }
            found.push(row(chunk)?);
        }
    } else {
        let (per_row, longer) = (items.items.len() / n, items.items.len() % n);
        let mut at = 0;
        for index in 0..n {
            let len = per_row + usize::from(index < longer);
            let mut chunk = items.items[at..at + len].to_vec();
            at += len;
            chunk.extend(fill.iter().filter(|_| index >= longer && longer > 0).cloned());
            found.push(row(chunk)?);
        }
    }
    Value::list(meter, found, ListKind::Generator)
}
