//! Writes values as Python's `json.dumps(…, ensure_ascii=False)` does.

use std::fmt::Write;

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};

#[derive(Debug, Default)]
pub struct JsonStyle {
    /// Spaces per level. `None`: all on one line.
    pub indent: Option<usize>,
    pub sort_keys: bool,
    /// Escapes everything beyond ASCII.
    pub ascii: bool,
    /// Between items, and after keys. `None`: Python's defaults.
    pub separators: Option<Vec<String>>,
}

impl JsonStyle {
    fn between(&self) -> &str {
        let own = if self.indent.is_some() { "," } else { ", " };
        self.separators.as_ref().and_then(|s| s.first()).map_or(own, String::as_str)
    }

    fn colon(&self) -> &str {
        self.separators.as_ref().and_then(|s| s.get(1)).map_or(": ", String::as_str)
    }

    fn line(&self, depth: usize, out: &mut String) {
        if let Some(indent) = self.indent {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent.min(MAX_INDENT) * depth));
        }
    }
}

const MAX_INDENT: usize = 32;
const MAX_DEPTH: usize = 128;

pub fn dumps(value: &Value, style: &JsonStyle) -> Result<String, Error> {
    let mut out = String::new();
    write(value, style, 0, &mut out)?;
    Ok(out)
}

fn write(value: &Value, style: &JsonStyle, depth: usize, out: &mut String) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(not_json("nested too deeply"));
    }
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => number(value, out),
        ValueKind::String => string(value.as_str().unwrap_or_default(), style.ascii, out),
        ValueKind::Seq => list(value, style, depth, out)?,
        ValueKind::Map => map(value, style, depth, out)?,
        ValueKind::Iterable if !is_iterator(value) => list(value, style, depth, out)?,
        ValueKind::Undefined => return Err(not_json("undefined")),
        _ => return Err(not_json("of this type")),
    }
    Ok(())
}

fn not_json(what: &str) -> Error {
    Error::new(ErrorKind::BadSerialization, format!("a value that is {what} cannot be written as JSON"))
}

fn list(value: &Value, style: &JsonStyle, depth: usize, out: &mut String) -> Result<(), Error> {
    out.push('[');
    let mut n = 0;
    for item in value.try_iter()? {
        if n > 0 {
            out.push_str(style.between());
        }
        style.line(depth + 1, out);
        write(&item, style, depth + 1, out)?;
        n += 1;
    }
    if n > 0 {
        style.line(depth, out);
    }
    out.push(']');
    Ok(())
}

fn map(value: &Value, style: &JsonStyle, depth: usize, out: &mut String) -> Result<(), Error> {
    let mut keys: Vec<Value> = value.try_iter()?.collect();
    if style.sort_keys {
        keys.sort();
    }
    out.push('{');
    for (n, key) in keys.iter().enumerate() {
        if n > 0 {
            out.push_str(style.between());
        }
        style.line(depth + 1, out);
        match key.as_str() {
            Some(text) => string(text, style.ascii, out),
            None => {
                let mut text = String::new();
                write(key, style, depth + 1, &mut text)?;
                string(&text, style.ascii, out);
            }
        }
        out.push_str(style.colon());
        write(&value.get_item(key)?, style, depth + 1, out)?;
    }
    if !keys.is_empty() {
        style.line(depth, out);
    }
    out.push('}');
    Ok(())
}

fn string(text: &str, ascii: bool, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if (c as u32) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c if ascii && !c.is_ascii() => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Returns the text of a JSON string without its quotes.
pub fn escaped(text: &str) -> String {
    let mut out = String::new();
    string(text, false, &mut out);
    out[1..out.len() - 1].to_string()
}

fn number(value: &Value, out: &mut String) {
    if value.is_integer() {
        let _ = write!(out, "{value}");
    } else {
        out.push_str(&float(f64::try_from(value.clone()).unwrap_or(f64::NAN)));
    }
}

/// Python's `repr` of a float: shortest round-trip digits, with an exponent from 1e16 and below 1e-4.
pub fn float(x: f64) -> String {
    if x.is_nan() {
        return "NaN".into();
    }
    if x.is_infinite() {
        return if x > 0.0 { "Infinity".into() } else { "-Infinity".into() };
    }
    let scientific = format!("{x:e}");
    let (digits, exponent) = scientific.split_once('e').expect("the format has an exponent");
    let exponent: i32 = exponent.parse().expect("the exponent is a number");
    if x != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    let plain = format!("{x}");
    if plain.contains('.') { plain } else { plain + ".0" }
}

/// Returns whether a value is an iterator, which Python does not serialize, rather than a container.
fn is_iterator(value: &Value) -> bool {
    value.kind() == ValueKind::Iterable
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: serde_json::Value, style: &JsonStyle, expected: &str) {
        assert_eq!(dumps(&crate::template::values::value(&value), style).expect("is JSON"), expected);
    }

    #[test]
    fn writes_as_python_does() {
        let plain = JsonStyle::default();
        check(
            serde_json::json!({"b": [1, 2.0, null, true], "a": {}}),
            &plain,
            r#"{"b": [1, 2.0, null, true], "a": {}}"#,
        );
        check(serde_json::json!("é<\"\\\n\u{1}\u{7f}"), &plain, "\"é<\\\"\\\\\\n\\u0001\u{7f}\"");
        check(serde_json::json!([]), &plain, "[]");
        let ascii = JsonStyle { ascii: true, ..JsonStyle::default() };
        check(serde_json::json!("é😀"), &ascii, r#""\u00e9\ud83d\ude00""#);
        let indented = JsonStyle { indent: Some(2), ..JsonStyle::default() };
        check(
            serde_json::json!({"a": [1, {"b": []}]}),
            &indented,
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": []\n    }\n  ]\n}",
        );
        let tight = JsonStyle {
            separators: Some(vec![",".into(), ":".into()]),
            sort_keys: true,
            ..JsonStyle::default()
        };
        check(serde_json::json!({"b": 1, "a": [1, 2]}), &tight, r#"{"a":[1,2],"b":1}"#);
    }

    #[test]
    fn floats_as_python_shows_them() {
        let cases = [
            (1.0, "1.0"),
            (0.1, "0.1"),
            (1e16, "1e+16"),
            (1e15, "1000000000000000.0"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (1.5e300, "1.5e+300"),
            (-0.0, "-0.0"),
            (123456.789, "123456.789"),
        ];
        for (x, expected) in cases {
            assert_eq!(float(x), expected);
        }
    }

    #[test]
    fn undefined_is_not_json() {
        assert!(dumps(&Value::UNDEFINED, &JsonStyle::default()).is_err());
    }
}
