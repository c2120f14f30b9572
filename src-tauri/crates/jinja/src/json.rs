//! Writes values as Python's `json.dumps` does.

use std::rc::Rc;

use crate::failure::{Result, invalid};
use crate::meter::{Limits, Meter, TextBuilder};
use crate::python::float_repr;
use crate::value::{ListKind, Value, from_json, undefined_error};

/// How JSON is written.
#[derive(Debug, Default)]
pub struct JsonStyle {
    /// What each level is indented by. `None`: all on one line.
    pub indent: Option<String>,
    /// Whether keys are sorted.
    pub sort_keys: bool,
    /// Whether everything beyond ASCII is escaped.
    pub ascii: bool,
    /// Between items, and after keys. `None`: Python's defaults.
    pub separators: Option<(String, String)>,
}

impl JsonStyle {
    fn between(&self) -> &str {
        let own = if self.indent.is_some() { "," } else { ", " };
        self.separators.as_ref().map_or(own, |(between, _)| between)
    }

    fn colon(&self) -> &str {
        self.separators.as_ref().map_or(": ", |(_, colon)| colon)
    }

    fn line(&self, depth: usize, out: &mut TextBuilder) -> Result<()> {
        let Some(indent) = &self.indent else { return Ok(()) };
        out.push('\n')?;
        (0..depth).try_for_each(|_| out.push_str(indent))
    }
}

/// Bytes that [`dumps`] may write: those of the longest conversation.
const MAX_JSON_BYTES: usize = 1 << 30;

/// Writes a JSON value as Python does.
///
/// Errors: it is nested too deeply, or too large.
pub fn dumps(json: &serde_json::Value, style: &JsonStyle) -> Result<String> {
    let meter = Meter::new(Limits::new(MAX_JSON_BYTES, u64::MAX));
    let mut out = TextBuilder::new(&meter);
    write(&meter, &from_json(&meter, json)?, style, 0, &mut out)?;
    Ok(out.into_parts().0)
}

/// Returns the text of a JSON string without its quotes.
pub fn escaped(text: &str) -> String {
    let meter = Meter::new(Limits::new(MAX_JSON_BYTES, u64::MAX));
    let mut out = TextBuilder::new(&meter);
    match write_string(text, false, &mut out) {
        Ok(()) => out.as_str()[1..out.as_str().len() - 1].to_owned(),
        Err(_) => text.to_owned(),
    }
}

pub fn write(
    meter: &Rc<Meter>,
    value: &Value,
    style: &JsonStyle,
    depth: usize,
    out: &mut TextBuilder,
) -> Result<()> {
    match value {
        Value::None => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Int(value) => out.push_str(&value.to_string()),
        Value::Float(value) => out.push_str(match float_repr(*value).as_str() {
            "nan" => "NaN",
            "inf" => "Infinity",
            "-inf" => "-Infinity",
            finite => finite,
        }),
        Value::Text(text) => write_string(text.as_str(), style.ascii, out),
        Value::List(list) if matches!(list.kind, ListKind::List | ListKind::Tuple) => {
            out.push('[')?;
            for (n, item) in list.items.iter().enumerate() {
                if n > 0 {
                    out.push_str(style.between())?;
                }
                style.line(depth + 1, out)?;
                write(meter, item, style, depth + 1, out)?;
            }
            if !list.items.is_empty() {
                style.line(depth, out)?;
            }
            out.push(']')
        }
        Value::Dict(dict) => {
            let mut entries: Vec<&(Value, Value)> = dict.entries.iter().collect();
            if style.sort_keys {
                let keys: Vec<Value> = entries.iter().map(|(key, _)| key.clone()).collect();
                let sorted = crate::sorting::sorted_indices(meter, &keys, true, false)?;
                entries = sorted.into_iter().map(|at| &dict.entries[at]).collect();
            }
            out.push('{')?;
            for (n, (key, value)) in entries.into_iter().enumerate() {
                if n > 0 {
                    out.push_str(style.between())?;
                }
                style.line(depth + 1, out)?;
                write_key(meter, key, style, out)?;
                out.push_str(style.colon())?;
                write(meter, value, style, depth + 1, out)?;
            }
            if !dict.entries.is_empty() {
                style.line(depth, out)?;
            }
            out.push('}')
        }
        Value::Undefined(_) => Err(undefined_error(value)),
        other => invalid(format!("Object of type {} is not JSON serializable", other.type_name())),
    }
}

fn write_key(meter: &Rc<Meter>, key: &Value, style: &JsonStyle, out: &mut TextBuilder) -> Result<()> {
    match key {
        Value::Text(text) => write_string(text.as_str(), style.ascii, out),
        Value::None | Value::Bool(_) | Value::Int(_) | Value::Float(_) => {
            out.push('"')?;
            write(meter, key, style, 0, out)?;
            out.push('"')
        }
        other => invalid(format!("keys must be str, int, float, bool or None, not {}", other.type_name())),
    }
}

fn write_string(text: &str, ascii: bool, out: &mut TextBuilder) -> Result<()> {
    out.push('"')?;
    let mut plain = 0;
    for (at, c) in text.char_indices() {
        let escaped = match c {
            '"' => "\\\"".to_owned(),
            '\\' => "\\\\".to_owned(),
            '\n' => "\\n".to_owned(),
            '\r' => "\\r".to_owned(),
            '\t' => "\\t".to_owned(),
            '\u{8}' => "\\b".to_owned(),
            '\u{c}' => "\\f".to_owned(),
            c if (c as u32) < 0x20 => format!("\\u{:04x}", c as u32),
            c if ascii && !c.is_ascii() => {
                c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
            }
            _ => continue,
        };
        out.push_str(&text[plain..at])?;
        out.push_str(&escaped)?;
        plain = at + c.len_utf8();
    }
    out.push_str(&text[plain..])?;
    out.push('"')
}
