//! Methods of Python's strings, lists and dictionaries that minijinja's own set lacks.

use minijinja::value::{ValueKind, from_args};
use minijinja::{Error, ErrorKind, State, Value};
use minijinja_contrib::pycompat::unknown_method_callback;

use super::python;

/// Calls `value.name(arguments)`.
pub fn call(state: &mut State, value: &Value, name: &str, arguments: &[Value]) -> Result<Value, Error> {
    let ours = match (value.as_str(), value.kind()) {
        (Some(text), _) => of_string(text, name, arguments)?,
        (None, ValueKind::Map) if name == "copy" => Some(value.clone()),
        (None, ValueKind::Seq) => of_list(value, name, arguments)?,
        (None, _) => None,
    };
    match ours {
        Some(result) => Ok(result),
        None => unknown_method_callback(state, value, name, arguments),
    }
}

fn of_string(text: &str, name: &str, arguments: &[Value]) -> Result<Option<Value>, Error> {
    let result = match name {
        "removeprefix" => {
            let (prefix,): (&str,) = from_args(arguments)?;
            Value::from(text.strip_prefix(prefix).unwrap_or(text))
        }
        "removesuffix" => {
            let (suffix,): (&str,) = from_args(arguments)?;
            Value::from(text.strip_suffix(suffix).unwrap_or(text))
        }
        "partition" => {
            let (separator,): (&str,) = from_args(arguments)?;
            let (before, after) = text.split_once(separator).unwrap_or((text, ""));
            let found = if text.contains(separator) { separator } else { "" };
            Value::from(vec![before, found, after].into_iter().map(Value::from).collect::<Vec<_>>())
        }
        "rpartition" => {
            let (separator,): (&str,) = from_args(arguments)?;
            let (before, after) = text.rsplit_once(separator).unwrap_or(("", text));
            let found = if text.contains(separator) { separator } else { "" };
            Value::from(vec![before, found, after].into_iter().map(Value::from).collect::<Vec<_>>())
        }
        "rsplit" => {
            let (separator, max_splits): (Option<&str>, Option<i64>) = from_args(arguments)?;
            rsplit(text, separator, max_splits)
        }
        "zfill" => {
            let (width,): (usize,) = from_args(arguments)?;
            let (sign, digits) = text.split_at(usize::from(text.starts_with(['-', '+'])));
            Value::from(format!("{sign}{}{digits}", "0".repeat(missing(text, width))))
        }
        "ljust" => {
            let (width, fill): (usize, Option<&str>) = from_args(arguments)?;
            Value::from(format!("{text}{}", fill.unwrap_or(" ").repeat(missing(text, width))))
        }
        "rjust" => {
            let (width, fill): (usize, Option<&str>) = from_args(arguments)?;
            Value::from(format!("{}{text}", fill.unwrap_or(" ").repeat(missing(text, width))))
        }
        "splitlines" => {
            let (keep_ends,): (Option<bool>,) = from_args(arguments)?;
            let lines = python::lines(text, keep_ends.unwrap_or(false));
            Value::from(lines.into_iter().map(Value::from).collect::<Vec<_>>())
        }
        "strip" if arguments.is_empty() => Value::from(text.trim_matches(python::is_space)),
        "lstrip" if arguments.is_empty() => Value::from(text.trim_start_matches(python::is_space)),
        "rstrip" if arguments.is_empty() => Value::from(text.trim_end_matches(python::is_space)),
        "casefold" => Value::from(text.to_lowercase()),
        "index" => {
            let (part,): (&str,) = from_args(arguments)?;
            let at = text.find(part).ok_or_else(|| not_found("substring"))?;
            Value::from(text[..at].chars().count())
        }
        _ => return Ok(None),
    };
    Ok(Some(result))
}

/// Bound on padding: no prompt could hold more.
const MAX_WIDTH: usize = 1 << 20;

fn missing(text: &str, width: usize) -> usize {
    width.min(MAX_WIDTH).saturating_sub(text.chars().count())
}

fn not_found(what: &str) -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("{what} not found"))
}

fn rsplit(text: &str, separator: Option<&str>, max_splits: Option<i64>) -> Value {
    let max_splits = max_splits.and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX - 1);
    let mut parts: Vec<&str> = match separator {
        Some(separator) => text.rsplitn(max_splits + 1, separator).collect(),
        None => {
            let mut rest = text.trim_end();
            let mut parts = Vec::new();
            while parts.len() < max_splits
                && let Some(at) = rest.rfind(char::is_whitespace)
            {
                let space = rest[at..].chars().next().map_or(1, char::len_utf8);
                parts.push(&rest[at + space..]);
                rest = rest[..at].trim_end();
            }
            parts.extend(Some(rest.trim_start()).filter(|rest| !rest.is_empty()));
            parts
        }
    };
    parts.reverse();
    Value::from(parts.into_iter().map(Value::from).collect::<Vec<_>>())
}

fn of_list(value: &Value, name: &str, arguments: &[Value]) -> Result<Option<Value>, Error> {
    if name != "index" {
        return Ok(None);
    }
    let (wanted,): (&Value,) = from_args(arguments)?;
    let at = value.try_iter()?.position(|item| item == *wanted);
    at.map(|at| Some(Value::from(at))).ok_or_else(|| not_found("item"))
}
