//! Formats values as Python does: `str()` where a template prints, `repr()` inside lists and dictionaries.

use std::fmt::Write;

use minijinja::Value;
use minijinja::value::ValueKind;

use super::json::float;

const MAX_DEPTH: usize = 128;

/// Python's `str()`.
pub fn str(value: &Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None if value.is_undefined() => String::new(),
        None => repr(value),
    }
}

pub fn repr(value: &Value) -> String {
    let mut out = String::new();
    write(value, 0, &mut out);
    out
}

fn write(value: &Value, depth: usize, out: &mut String) {
    match value.kind() {
        ValueKind::String => quoted(value.as_str().unwrap_or_default(), out),
        ValueKind::Number if !value.is_integer() => {
            let x = f64::try_from(value.clone()).unwrap_or(f64::NAN);
            out.push_str(match float(x).as_str() {
                "NaN" => "nan",
                "Infinity" => "inf",
                "-Infinity" => "-inf",
                finite => finite,
            });
        }
        ValueKind::Undefined => out.push_str("Undefined"),
        ValueKind::Seq if depth < MAX_DEPTH => sequence(value, depth, out),
        ValueKind::Map if depth < MAX_DEPTH => map(value, depth, out),
        _ => {
            // Writing to a string cannot fail.
            let _ = write!(out, "{value}");
        }
    }
}

fn sequence(value: &Value, depth: usize, out: &mut String) {
    let is_tuple = value.to_string().starts_with('(');
    out.push(if is_tuple { '(' } else { '[' });
    let mut n = 0;
    for item in value.try_iter().into_iter().flatten() {
        if n > 0 {
            out.push_str(", ");
        }
        write(&item, depth + 1, out);
        n += 1;
    }
    out.push_str(match (is_tuple, n) {
        (true, 1) => ",)",
        (true, _) => ")",
        (false, _) => "]",
    });
}

fn map(value: &Value, depth: usize, out: &mut String) {
    out.push('{');
    for (n, key) in value.try_iter().into_iter().flatten().enumerate() {
        if n > 0 {
            out.push_str(", ");
        }
        write(&key, depth + 1, out);
        out.push_str(": ");
        write(&value.get_item(&key).unwrap_or_default(), depth + 1, out);
    }
    out.push('}');
}

fn quoted(text: &str, out: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => out.extend(['\\', c]),
            c if is_printable(c) => out.push(c),
            c => {
                let code = c as u32;
                let _ = match code {
                    0..=0xff => write!(out, "\\x{code:02x}"),
                    0x100..=0xffff => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }
    out.push(quote);
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
pub fn lines(text: &str, keep_ends: bool) -> Vec<&str> {
    let ends_line = |c: char| {
        matches!(
            c,
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(ends_line) {
        let end = if rest[at..].starts_with("\r\n") {
            2
        } else {
            rest[at..].chars().next().map_or(1, char::len_utf8)
        };
        lines.push(&rest[..if keep_ends { at + end } else { at }]);
        rest = &rest[at + end..];
    }
    lines.extend(Some(rest).filter(|rest| !rest.is_empty()));
    lines
}

/// Jinja's filter `indent`.
pub fn indent(text: &str, by: &str, first: bool, blank: bool) -> String {
    let text = format!("{text}\n");
    let mut out = String::from(if first { by } else { "" });
    for (n, line) in lines(&text, false).into_iter().enumerate() {
        if n > 0 {
            out.push('\n');
            out.push_str(if blank || !line.is_empty() { by } else { "" });
        }
        out.push_str(line);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::values::value;

    #[test]
    fn lines_split_and_indent_as_in_python() {
        assert_eq!(lines("a\r\nb\u{2028}\n", false), ["a", "b", ""]);
        assert_eq!(lines("a\nb", true), ["a\n", "b"]);
        assert_eq!(indent("{\n", "  ", true, false), "  {\n");
        assert_eq!(indent("a\n\nb", " ", false, false), "a\n\n b");
        assert_eq!(indent("a\n\nb", " ", false, true), "a\n \n b");
        assert_eq!(indent("", " ", false, false), "");
    }

    #[test]
    fn shows_values_as_python_does() {
        let check = |json: serde_json::Value, expected: &str| assert_eq!(str(&value(&json)), expected);
        check(serde_json::json!(null), "None");
        check(serde_json::json!(true), "True");
        check(serde_json::json!(1e20), "1e+20");
        check(serde_json::json!(-3), "-3");
        check(serde_json::json!("it's"), "it's");
        check(
            serde_json::json!(["it's", "a\"b", "'\"", "\u{2028}\u{b}\n\\"]),
            r#"["it's", 'a"b', '\'"', '\u2028\x0b\n\\']"#,
        );
        check(serde_json::json!({"a": [1.0, {"é": null}], "b": {}}), "{'a': [1.0, {'é': None}], 'b': {}}");
        assert_eq!(str(&Value::UNDEFINED), "");
    }
}
