//! Formats values as Python does: `str()` where a template prints, `repr()` inside lists and dictionaries.

use std::fmt::Write;
use std::rc::Rc;

use crate::failure::Result;
use crate::meter::{Limits, Meter, TextBuilder};
use crate::value::{Callable, List, ListKind, Value, from_json};

/// Bytes that [`repr_json`] may take: those of the longest conversation, written out.
const MAX_REPR_BYTES: usize = 1 << 30;

/// Python's `repr` of a JSON value. Empty where it would be too large.
pub fn repr_json(json: &serde_json::Value) -> String {
    let meter = Meter::new(Limits::new(MAX_REPR_BYTES, u64::MAX));
    let mut out = TextBuilder::new(&meter);
    match from_json(&meter, json).and_then(|value| write_repr(&value, &mut out)) {
        Ok(()) => out.into_parts().0,
        Err(_) => String::new(),
    }
}

/// Python's `str()`.
pub fn write_str(value: &Value, out: &mut TextBuilder) -> Result<()> {
    match value {
        Value::Text(text) => out.push_str(text.as_str()),
        Value::Undefined(_) => Ok(()),
        other => write_repr(other, out),
    }
}

/// Python's `str()` as a text.
pub fn to_text(meter: &Rc<Meter>, value: &Value) -> Result<Value> {
    if let Value::Text(_) = value {
        return Ok(value.clone());
    }
    let mut out = TextBuilder::new(meter);
    write_str(value, &mut out)?;
    Ok(Value::built(out))
}

pub fn write_repr(value: &Value, out: &mut TextBuilder) -> Result<()> {
    match value {
        Value::Undefined(_) => out.push_str("Undefined"),
        Value::None => out.push_str("None"),
        Value::Bool(flag) => out.push_str(if *flag { "True" } else { "False" }),
        Value::Int(value) => out.push_str(&value.to_string()),
        Value::Float(value) => out.push_str(&float_repr(*value)),
        Value::Text(text) => write_quoted(text.as_str(), out),
        Value::List(list) => write_list(list, out),
        Value::Dict(dict) => {
            out.push('{')?;
            for (n, (key, value)) in dict.entries.iter().enumerate() {
                if n > 0 {
                    out.push_str(", ")?;
                }
                write_repr(key, out)?;
                out.push_str(": ")?;
                write_repr(value, out)?;
            }
            out.push('}')
        }
        Value::Namespace(_) => out.push_str("<Namespace>"),
        Value::Callable(Callable::Macro(it)) => out.push_str(&format!("<Macro '{}'>", it.definition.name)),
        Value::Callable(_) => out.push_str("<function>"),
        Value::Loop(state) => {
            out.push_str(&format!("<LoopContext {}/{}>", state.index.get() + 1, state.items.items.len()))
        }
        Value::Cycler(_) => out.push_str("<Cycler>"),
        Value::Joiner(_) => out.push_str("<Joiner>"),
    }
}

fn write_list(list: &List, out: &mut TextBuilder) -> Result<()> {
    match list.kind {
        ListKind::Generator => return out.push_str("<generator object>"),
        ListKind::Range { start, stop, step: 1 } => return out.push_str(&format!("range({start}, {stop})")),
        ListKind::Range { start, stop, step } => {
            return out.push_str(&format!("range({start}, {stop}, {step})"));
        }
        ListKind::View(name) => {
            out.push_str(name)?;
            out.push_str("([")?;
        }
        ListKind::Tuple => out.push('(')?,
        ListKind::List => out.push('[')?,
    }
    for (n, item) in list.items.iter().enumerate() {
        if n > 0 {
            out.push_str(", ")?;
        }
        write_repr(item, out)?;
    }
    match (list.kind, list.items.len()) {
        (ListKind::View(_), _) => out.push_str("])"),
        (ListKind::Tuple, 1) => out.push_str(",)"),
        (ListKind::Tuple, _) => out.push(')'),
        _ => out.push(']'),
    }
}

/// Python's `repr` of a float: shortest round-trip digits, with an exponent from 1e16 and below 1e-4.
pub fn float_repr(x: f64) -> String {
    if x.is_nan() {
        return "nan".into();
    }
    if x.is_infinite() {
        return if x > 0.0 { "inf".into() } else { "-inf".into() };
    }
    let scientific = format!("{x:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if x != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    let plain = format!("{x}");
    if plain.contains('.') { plain } else { plain + ".0" }
}

fn write_quoted(text: &str, out: &mut TextBuilder) -> Result<()> {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote)?;
    let mut plain = 0;
    for (at, c) in text.char_indices() {
        let escaped = match c {
            '\\' => "\\\\".to_owned(),
            '\n' => "\\n".to_owned(),
            '\r' => "\\r".to_owned(),
            '\t' => "\\t".to_owned(),
            c if c == quote => format!("\\{c}"),
            c if is_printable(c) => continue,
            c => {
                let mut escaped = String::new();
                // Writing to a string cannot fail.
                let _ = match c as u32 {
                    code @ 0..=0xff => write!(escaped, "\\x{code:02x}"),
                    code @ 0x100..=0xffff => write!(escaped, "\\u{code:04x}"),
                    code => write!(escaped, "\\U{code:08x}"),
                };
                escaped
            }
        };
        out.push_str(&text[plain..at])?;
        out.push_str(&escaped)?;
        plain = at + c.len_utf8();
    }
    out.push_str(&text[plain..])?;
    out.push(quote)
}

/// Python's `str.isprintable`: no control, format, private or separator character except space. Unassigned characters
/// count as printable here.
fn is_printable(c: char) -> bool {
    const HIDDEN: &[(u32, u32)] = &[
        (0xa0, 0xa0),
        (0xad, 0xad),
        (0x600, 0x605),
        (0x61c, 0x61c),
        (0x6dd, 0x6dd),
        (0x70f, 0x70f),
        (0x890, 0x891),
        (0x8e2, 0x8e2),
        (0x1680, 0x1680),
        (0x180e, 0x180e),
        (0x2000, 0x200f),
        (0x2028, 0x202f),
        (0x205f, 0x206f),
        (0x3000, 0x3000),
        (0xe000, 0xf8ff),
        (0xfeff, 0xfeff),
        (0xfff9, 0xfffb),
        (0x1d173, 0x1d17a),
        (0xe0001, 0xe007f),
        (0xf0000, 0x10ffff),
    ];
    let code = c as u32;
    !c.is_control() && !HIDDEN.iter().any(|(from, to)| (*from..=*to).contains(&code))
}

/// Python's white space: Unicode's, and four ASCII separators.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// Python's `str.splitlines`.
pub fn lines(text: &str, keep_ends: bool) -> impl Iterator<Item = &str> {
    let ends_line = |c: char| {
        matches!(
            c,
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let Some(at) = rest.find(ends_line) else { return Some(std::mem::take(&mut rest)) };
        let end = match rest[at..].starts_with("\r\n") {
            true => 2,
            false => rest[at..].chars().next().map_or(1, char::len_utf8),
        };
        let line = &rest[..if keep_ends { at + end } else { at }];
        rest = &rest[at + end..];
        Some(line)
    })
}
