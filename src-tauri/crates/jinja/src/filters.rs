//! Filters: what stands after `|`.

use std::rc::Rc;
use std::sync::Arc;

use crate::arguments::{CallArguments, flag, int};
use crate::failure::{Result, invalid};
use crate::json::{self, JsonStyle};
use crate::meter::{Meter, TextBuilder};
use crate::python;
use crate::render::Renderer;
use crate::value::{Value, undefined_error};

mod list;
mod text;

pub fn apply(renderer: &Renderer<'_>, name: &str, value: &Value, given: CallArguments) -> Result<Value> {
    let meter = &renderer.meter;
    if let Some(done) = text::apply(renderer, name, value, &given)? {
        return Ok(done);
    }
    if let Some(done) = list::apply(renderer, name, value, &given)? {
        return Ok(done);
    }
    match name {
        "abs" => match (value.as_int(), value) {
            (Some(int), _) => Ok(Value::Int(int.saturating_abs())),
            (None, Value::Float(float)) => Ok(Value::Float(float.abs())),
            _ => invalid(format!("bad operand type for abs(): '{}'", value.type_name())),
        },
        "attr" => {
            let [wanted] = given.bind(name, ["name"])?;
            let wanted: Arc<str> = crate::arguments::required_text(wanted.as_ref())?.into();
            match value {
                Value::Dict(_) if !crate::methods::has(value, &wanted) => Ok(Value::Undefined(Some(wanted))),
                _ => renderer.attribute(value, &wanted),
            }
        }
        "default" | "d" => {
            let [default, boolean] = given.bind(name, ["default_value", "boolean"])?;
            let is_missing = value.is_undefined() || (flag(&boolean, false) && !value.is_true());
            match (is_missing, default) {
                (false, _) => Ok(value.clone()),
                (true, Some(default)) => Ok(default),
                (true, None) => Value::text(meter, ""),
            }
        }
        "float" => {
            let [default] = given.bind(name, ["default"])?;
            let default = default.unwrap_or(Value::Float(0.0));
            match value {
                Value::Undefined(_) => Err(undefined_error(value)),
                Value::Text(text) => {
                    let text = text.as_str().trim().replace('_', "");
                    let is_word = text.starts_with(|c: char| c.is_alphabetic());
                    let named = ["inf", "infinity", "nan"].contains(&text.to_lowercase().as_str());
                    let number = text.parse().ok().filter(|_| !is_word || named);
                    Ok(number.map_or(default, Value::Float))
                }
                other => Ok(other.as_number().map_or(default, Value::Float)),
            }
        }
        "int" => {
            let [default, base] = given.bind(name, ["default", "base"])?;
            to_int(value, default.unwrap_or(Value::Int(0)), int(&base, 10)?)
        }
        "round" => round(value, &given),
        "tojson" => tojson(meter, value, &given),
        _ => invalid(format!("no filter named '{name}'")),
    }
}

fn to_int(value: &Value, default: Value, base: i128) -> Result<Value> {
    Ok(match value {
        Value::Undefined(_) => return Err(undefined_error(value)),
        Value::Text(text) => {
            let text = text.as_str().trim().replace('_', "");
            let base = u32::try_from(base).ok().filter(|base| (2..=36).contains(base)).unwrap_or(10);
            let digits = match base {
                16 => text.trim_start_matches("0x"),
                8 => text.trim_start_matches("0o"),
                2 => text.trim_start_matches("0b"),
                _ => &text,
            };
            let whole = i128::from_str_radix(digits, base).ok();
            let cut = || text.parse::<f64>().ok().filter(|x| x.is_finite()).map(|x| x as i128);
            whole.or_else(cut).map_or(default, Value::Int)
        }
        Value::Float(float) if float.is_finite() => Value::Int(float.trunc() as i128),
        Value::Float(_) => default,
        other => other.as_int().map_or(default, Value::Int),
    })
}

fn round(value: &Value, given: &CallArguments) -> Result<Value> {
    let [precision, method] = given.bind("round", ["precision", "method"])?;
    let precision = i32::try_from(int(&precision, 0)?.clamp(-300, 300)).unwrap_or(0);
    let method = crate::globals::text_or(&method, "common")?.to_owned();
    let Some(number) = value.as_number() else {
        return match value.is_undefined() {
            true => Err(undefined_error(value)),
            false => invalid(format!("type {} doesn't define __round__ method", value.type_name())),
        };
    };
    let factor = 10f64.powi(precision);
    Ok(match (method.as_str(), value.as_int()) {
        ("common", Some(int)) if precision >= 0 => Value::Int(int),
        ("common", Some(_)) => Value::Int(((number * factor).round_ties_even() / factor) as i128),
        ("common", _) => match usize::try_from(precision) {
            // digits are rounded as they are written: exactly, half to even
            Ok(precision) => Value::Float(format!("{number:.precision$}").parse().unwrap_or(number)),
            Err(_) => Value::Float((number * factor).round_ties_even() / factor),
        },
        ("ceil", _) => Value::Float((number * factor).ceil() / factor),
        ("floor", _) => Value::Float((number * factor).floor() / factor),
        _ => return invalid("method must be common, ceil or floor"),
    })
}

fn tojson(meter: &Rc<Meter>, value: &Value, given: &CallArguments) -> Result<Value> {
    // As the tokenizer library that most templates are written for defines it.
    let [ascii, indent, separators, sort_keys] =
        reordered(given)?.bind("tojson", ["ensure_ascii", "indent", "separators", "sort_keys"])?;
    let indent = match indent {
        None | Some(Value::None) => None,
        Some(Value::Text(text)) => Some(text.as_str().to_owned()),
        Some(n) => Some(" ".repeat(int(&Some(n), 0)?.clamp(0, MAX_INDENT) as usize)),
    };
    let separators = match separators {
        None | Some(Value::None) => None,
        Some(Value::List(list)) => match &list.items[..] {
            [Value::Text(a), Value::Text(b)] => Some((a.as_str().to_owned(), b.as_str().to_owned())),
            _ => return invalid("separators are two texts"),
        },
        Some(_) => return invalid("separators are two texts"),
    };
    let style =
        JsonStyle { indent, sort_keys: flag(&sort_keys, false), ascii: flag(&ascii, false), separators };
    let mut out = TextBuilder::new(meter);
    json::write(meter, value, &style, 0, &mut out)?;
    Ok(Value::built(out))
}

/// Jinja's own `tojson` takes the indentation as its only argument: a lone number or text is that.
fn reordered(given: &CallArguments) -> Result<CallArguments> {
    let (mut positional, mut keywords) = (given.positional.clone(), given.keywords.clone());
    if let [only] = &positional[..]
        && !matches!(only, Value::Bool(_))
    {
        keywords.push(("indent".into(), only.clone()));
        positional.clear();
    }
    Ok(CallArguments { positional, keywords })
}

/// Spaces per level. No prompt indents so far.
pub const MAX_INDENT: i128 = 1024;

/// Python's `str()` of a value, for filters that take any.
pub fn text_of(meter: &Rc<Meter>, value: &Value) -> Result<Value> {
    python::to_text(meter, value)
}
