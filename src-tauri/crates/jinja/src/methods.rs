//! Methods of Python's strings, lists and dictionaries.

use std::rc::Rc;

use crate::arguments::{CallArguments, flag, int, required_text};
use crate::failure::{Result, invalid};
use crate::meter::{Meter, TextBuilder};
use crate::render::Renderer;
use crate::value::{ListKind, Value};
use crate::{changes, format, ops, python};

const OF_TEXTS: &[&str] = &[
    "capitalize",
    "casefold",
    "center",
    "count",
    "endswith",
    "expandtabs",
    "find",
    "format",
    "index",
    "isalnum",
    "isalpha",
    "isascii",
    "isdecimal",
    "isdigit",
    "islower",
    "isnumeric",
    "isspace",
    "istitle",
    "isupper",
    "join",
    "ljust",
    "lower",
    "lstrip",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rindex",
    "rjust",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "swapcase",
    "title",
    "upper",
    "zfill",
];
const OF_LISTS: &[&str] = &["index", "count", "copy"];
const OF_DICTS: &[&str] = &["items", "keys", "values", "get", "copy"];
/// Methods that change their value: Python's sandbox refuses them too.
const CHANGING: &[&str] = &[
    "append",
    "extend",
    "insert",
    "pop",
    "remove",
    "sort",
    "reverse",
    "clear",
    "update",
    "setdefault",
    "popitem",
];

pub fn has(value: &Value, name: &str) -> bool {
    match value {
        Value::Text(_) => OF_TEXTS.contains(&name),
        Value::List(list) => match list.kind {
            ListKind::List => OF_LISTS.contains(&name) || CHANGING.contains(&name),
            ListKind::Tuple | ListKind::Range { .. } => ["index", "count"].contains(&name),
            ListKind::Generator | ListKind::View(_) => false,
        },
        Value::Dict(_) => {
            OF_DICTS.contains(&name) || ["pop", "clear", "update", "setdefault", "popitem"].contains(&name)
        }
        Value::Loop(_) => ["cycle", "changed"].contains(&name),
        Value::Cycler(_) => ["next", "reset"].contains(&name),
        _ => false,
    }
}

pub fn call(renderer: &Renderer<'_>, value: &Value, name: &str, given: CallArguments) -> Result<Value> {
    let meter = &renderer.meter;
    match value {
        Value::Text(text) => of_text(renderer, text.as_str(), name, &given),
        Value::List(list) => match name {
            "copy" => Ok(value.clone()),
            "count" => {
                let [wanted] = given.bind(name, ["value"])?;
                let wanted = wanted.unwrap_or(Value::undefined());
                let mut n = 0;
                for item in &list.items {
                    n += i128::from(ops::equal(meter, item, &wanted)?);
                }
                Ok(Value::Int(n))
            }
            "index" => {
                let [wanted] = given.bind(name, ["value"])?;
                let wanted = wanted.unwrap_or(Value::undefined());
                for (at, item) in list.items.iter().enumerate() {
                    if ops::equal(meter, item, &wanted)? {
                        return Ok(Value::Int(at as i128));
                    }
                }
                invalid("item not found")
            }
            _ => invalid(format!("'{name}' would change a list, which templates may not")),
        },
        Value::Dict(dict) => of_dict(meter, value, dict, name, &given),
        Value::Loop(state) => match name {
            "cycle" if given.positional.is_empty() => invalid("no items for cycling given"),
            "cycle" => Ok(given.positional[state.index.get() % given.positional.len()].clone()),
            _ => {
                let now = Value::list(meter, given.positional, ListKind::Tuple)?;
                let before = state.changed.take();
                let is_same = match &before {
                    Some(before) => ops::equal(meter, before, &now)?,
                    None => false,
                };
                *state.changed.borrow_mut() = Some(now).filter(|_| state.is_running.get());
                Ok(Value::Bool(!is_same))
            }
        },
        Value::Cycler(cycler) => {
            let at = cycler.at.get();
            if name == "reset" {
                cycler.at.set(0);
                return Ok(Value::None);
            }
            cycler.at.set((at + 1) % cycler.items.len());
            Ok(cycler.items[at].clone())
        }
        other => invalid(format!("'{}' object has no method '{name}'", other.type_name())),
    }
}

fn of_dict(
    meter: &Rc<Meter>,
    value: &Value,
    dict: &crate::value::Dict,
    name: &str,
    given: &CallArguments,
) -> Result<Value> {
    meter.work(dict.entries.len() as u64 / 8)?;
    match name {
        "get" => {
            let [key, default] = given.bind(name, ["key", "default"])?;
            let key = key.unwrap_or(Value::undefined());
            ops::check_hashable(&key)?;
            Ok(dict.counted_get(meter, &key)?.cloned().or(default).unwrap_or(Value::None))
        }
        "keys" => {
            let keys = dict.entries.iter().map(|(key, _)| key.clone()).collect();
            Value::list(meter, keys, ListKind::View("dict_keys"))
        }
        "values" => {
            let values = dict.entries.iter().map(|(_, value)| value.clone()).collect();
            Value::list(meter, values, ListKind::View("dict_values"))
        }
        "items" => Value::list(meter, dict.pairs(meter)?, ListKind::View("dict_items")),
        "copy" => Ok(value.clone()),
        _ => invalid(format!("'{name}' would change a dictionary, which templates may not")),
    }
}

fn of_text(renderer: &Renderer<'_>, text: &str, name: &str, given: &CallArguments) -> Result<Value> {
    let meter = &renderer.meter;
    meter.bytes_work(text.len())?;
    let first = given.positional.first();
    let new = |text: &str| Value::text(meter, text);
    let case = |change: fn(&str, &mut TextBuilder) -> Result<()>| changes::changed(meter, text, change);
    match name {
        "upper" => case(changes::upper),
        "lower" | "casefold" => case(changes::lower),
        "capitalize" => case(changes::capitalize),
        "title" => case(changes::python_title),
        "swapcase" => case(changes::swapcase),
        "strip" => new(trimmed(text, first, true, true)?),
        "lstrip" => new(trimmed(text, first, true, false)?),
        "rstrip" => new(trimmed(text, first, false, true)?),
        "removeprefix" => {
            let prefix = required_text(first)?;
            new(text.strip_prefix(prefix).unwrap_or(text))
        }
        "removesuffix" => {
            let suffix = required_text(first)?;
            new(text.strip_suffix(suffix).unwrap_or(text))
        }
        "split" | "rsplit" => split(meter, text, given, name == "rsplit"),
        "splitlines" => {
            let [keep] = given.bind(name, ["keepends"])?;
            let lines = python::lines(text, flag(&keep, false)).map(new).collect::<Result<Vec<_>>>()?;
            Value::list(meter, lines, ListKind::List)
        }
        "partition" | "rpartition" => partition(meter, text, required_text(first)?, name == "rpartition"),
        "startswith" | "endswith" => fits(text, name, given),
        "find" | "index" | "rfind" | "rindex" => find(text, name, given),
        "count" => {
            let part = required_text(first)?;
            let n = if part.is_empty() { text.chars().count() + 1 } else { text.matches(part).count() };
            Ok(Value::Int(n as i128))
        }
        "replace" => {
            let [from, to, n] = given.bind(name, ["old", "new", "count"])?;
            let (from, to) = (required_text(from.as_ref())?, required_text(to.as_ref())?);
            changes::replaced(meter, text, from, to, usize::try_from(int(&n, -1)?).ok())
        }
        "join" => {
            let items = renderer.iterate(first.unwrap_or(&Value::undefined()))?;
            let mut out = TextBuilder::new(meter);
            out.push_str("")?;
            for (at, item) in items.items.iter().enumerate() {
                out.push_str(if at > 0 { text } else { "" })?;
                let Some(item) = item.as_str() else {
                    return invalid(format!(
                        "sequence item {at}: expected str instance, {} found",
                        item.type_name()
                    ));
                };
                out.push_str(item)?;
            }
            Ok(Value::built(out))
        }
        "format" => format::braces(meter, text, given),
        "zfill" | "ljust" | "rjust" | "center" => padded(meter, text, name, given),
        "expandtabs" => {
            let [size] = given.bind(name, ["tabsize"])?;
            let size = int(&size, 8)?.clamp(0, 64) as usize;
            changes::replaced(meter, text, "\t", &" ".repeat(size), None)
        }
        _ => Ok(Value::Bool(is_kind(text, name))),
    }
}

fn fits(text: &str, name: &str, given: &CallArguments) -> Result<Value> {
    let text = sliced(text, given);
    let fits = |part: &str| if name == "startswith" { text.starts_with(part) } else { text.ends_with(part) };
    match given.positional.first() {
        Some(Value::List(list)) => {
            let parts =
                list.items.iter().map(|part| required_text(Some(part))).collect::<Result<Vec<_>>>()?;
            Ok(Value::Bool(parts.into_iter().any(fits)))
        }
        part => Ok(Value::Bool(fits(required_text(part)?))),
    }
}

/// Where a part stands, in characters.
fn find(text: &str, name: &str, given: &CallArguments) -> Result<Value> {
    let part = required_text(given.positional.first())?;
    let searched = sliced(text, given);
    let offset = searched.as_ptr() as usize - text.as_ptr() as usize;
    let at = if name.starts_with('r') { searched.rfind(part) } else { searched.find(part) };
    match at {
        Some(at) => Ok(Value::Int(text[..offset + at].chars().count() as i128)),
        None if name.ends_with("find") => Ok(Value::Int(-1)),
        None => invalid("substring not found"),
    }
}

/// The methods that ask what a text consists of.
fn is_kind(text: &str, name: &str) -> bool {
    let all = |is_it: fn(char) -> bool| !text.is_empty() && text.chars().all(is_it);
    let has = |is_it: fn(char) -> bool| text.chars().any(is_it);
    match name {
        "isdigit" | "isdecimal" => all(|c| c.is_ascii_digit()),
        "isnumeric" => all(char::is_numeric),
        "isalpha" => all(char::is_alphabetic),
        "isalnum" => all(char::is_alphanumeric),
        "isascii" => text.is_ascii(),
        "isspace" => all(python::is_space),
        "istitle" => is_title(text),
        "islower" => has(char::is_lowercase) && !has(char::is_uppercase),
        _ => has(char::is_uppercase) && !has(char::is_lowercase),
    }
}

fn is_title(text: &str) -> bool {
    let (mut after_letter, mut has_letter) = (false, false);
    for c in text.chars() {
        if c.is_uppercase() == after_letter && (c.is_uppercase() || c.is_lowercase()) {
            return false;
        }
        after_letter = c.is_uppercase() || c.is_lowercase();
        has_letter |= after_letter;
    }
    has_letter
}

/// The part from the second argument to the third, in characters.
fn sliced<'a>(text: &'a str, given: &CallArguments) -> &'a str {
    let bound = |at: usize| given.positional.get(at).and_then(Value::as_int);
    let (Some(start), end) = (bound(1), bound(2)) else { return text };
    let n = text.chars().count() as i128;
    let place = |bound: i128| (if bound < 0 { bound + n } else { bound }).clamp(0, n) as usize;
    let (start, end) = (place(start), end.map_or(n as usize, place));
    let byte = |at: usize| text.char_indices().nth(at).map_or(text.len(), |(at, _)| at);
    if start < end { &text[byte(start)..byte(end)] } else { &text[text.len()..] }
}

pub fn trimmed<'a>(text: &'a str, characters: Option<&Value>, left: bool, right: bool) -> Result<&'a str> {
    let characters = match characters {
        None | Some(Value::None) => None,
        some => Some(required_text(some)?),
    };
    let drops = |c: char| characters.map_or_else(|| python::is_space(c), |characters| characters.contains(c));
    let text = if left { text.trim_start_matches(drops) } else { text };
    Ok(if right { text.trim_end_matches(drops) } else { text })
}

fn split(meter: &Rc<Meter>, text: &str, given: &CallArguments, from_right: bool) -> Result<Value> {
    let [separator, max] = given.bind("split", ["sep", "maxsplit"])?;
    let max = usize::try_from(int(&max, -1)?).unwrap_or(usize::MAX - 1);
    let mut parts = Vec::new();
    let mut add = |part: &str| -> Result<()> {
        parts.push(Value::text(meter, part)?);
        Ok(())
    };
    match separator.filter(|separator| !matches!(separator, Value::None)) {
        Some(separator) => {
            let separator = required_text(Some(&separator))?;
            if separator.is_empty() {
                return invalid("empty separator");
            }
            match from_right {
                true => text.rsplitn(max + 1, separator).try_for_each(&mut add)?,
                false => text.splitn(max + 1, separator).try_for_each(&mut add)?,
            }
        }
        None => {
            let mut rest = trimmed(text, None, true, true)?;
            let mut n = 0;
            while !rest.is_empty() {
                let space =
                    if from_right { rest.rfind(python::is_space) } else { rest.find(python::is_space) };
                let Some(at) = space.filter(|_| n < max) else {
                    add(rest)?;
                    break;
                };
                let end = at + rest[at..].chars().next().map_or(1, char::len_utf8);
                let (part, left) =
                    if from_right { (&rest[end..], &rest[..at]) } else { (&rest[..at], &rest[end..]) };
                add(part)?;
                rest = trimmed(left, None, !from_right, from_right)?;
                n += 1;
            }
        }
    }
    if from_right {
        parts.reverse();
    }
    Value::list(meter, parts, ListKind::List)
}

fn partition(meter: &Rc<Meter>, text: &str, separator: &str, from_right: bool) -> Result<Value> {
    let found = if from_right { text.rsplit_once(separator) } else { text.split_once(separator) };
    let parts = match (found, from_right) {
        (Some((before, after)), _) => [before, separator, after],
        (None, false) => [text, "", ""],
        (None, true) => ["", "", text],
    };
    let parts = parts.into_iter().map(|part| Value::text(meter, part)).collect::<Result<Vec<_>>>()?;
    Value::list(meter, parts, ListKind::Tuple)
}

fn padded(meter: &Rc<Meter>, text: &str, name: &str, given: &CallArguments) -> Result<Value> {
    let [width, fill] = given.bind(name, ["width", "fillchar"])?;
    let fill = match &fill {
        Some(fill) => required_text(Some(fill))?,
        None => {
            if name == "zfill" {
                "0"
            } else {
                " "
            }
        }
    };
    let width = usize::try_from(int(&width, 0)?.max(0)).unwrap_or(usize::MAX);
    let missing = width.saturating_sub(text.chars().count());
    let before = match name {
        "rjust" | "zfill" => missing,
        // where both sides cannot be equal, Python's longer side depends on the width
        "center" => missing / 2 + (missing & width & 1),
        _ => 0,
    };
    let mut out = TextBuilder::new(meter);
    let (sign, digits) = match name {
        "zfill" => text.split_at(usize::from(text.starts_with(['-', '+']))),
        _ => ("", text),
    };
    out.push_str(sign)?;
    (0..before).try_for_each(|_| out.push_str(fill))?;
    out.push_str(digits)?;
    (before..missing).try_for_each(|_| out.push_str(fill))?;
    Ok(Value::built(out))
}
