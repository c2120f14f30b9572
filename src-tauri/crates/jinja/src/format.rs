//! Python's `%` formatting and `str.format`.

use std::rc::Rc;

use crate::failure::{Result, invalid};
use crate::meter::{Meter, TextBuilder};
use crate::python;
use crate::value::undefined_error;
use crate::value::{ListKind, Value};

/// Widths and precisions beyond this are refused: no prompt is padded so far.
const MAX_WIDTH: usize = 1 << 20;

/// How one value is written.
#[derive(Debug, Default, Clone)]
struct Spec {
    fill: Option<char>,
    align: Option<char>,
    /// `+` or a space.
    sign: Option<char>,
    is_alternate: bool,
    has_commas: Option<char>,
    width: usize,
    precision: Option<usize>,
    kind: char,
}

/// `text % values`.
pub fn percent(meter: &Rc<Meter>, text: &Value, values: &Value) -> Result<Value> {
    let format = text.as_str().unwrap_or_default();
    let mut out = TextBuilder::new(meter);
    out.push_str("")?;
    let items: &[Value] = match values {
        Value::List(list) if list.kind == ListKind::Tuple => &list.items,
        other => std::slice::from_ref(other),
    };
    let mut next = items.iter();
    let mut rest = format;
    let mut is_named = false;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at])?;
        rest = &rest[at + 1..];
        let mut named = None;
        if let Some(tail) = rest.strip_prefix('(') {
            let Some(end) = tail.find(')') else { return invalid("incomplete format key") };
            let Value::Dict(dict) = values else { return invalid("format requires a mapping") };
            let Some(value) = dict.get_text(&tail[..end]) else {
                return invalid(format!("'{}'", &tail[..end]));
            };
            (named, is_named, rest) = (Some(value), true, &tail[end + 1..]);
        }
        let (spec, tail) = percent_spec(rest, &mut next)?;
        rest = tail;
        if spec.kind == '%' {
            out.push('%')?;
            continue;
        }
        let value = match named.or_else(|| next.next()) {
            Some(value) => value,
            None => return invalid("not enough arguments for format string"),
        };
        write_percent(meter, &spec, value, &mut out)?;
    }
    out.push_str(rest)?;
    // Python lets a lone mapping go unused.
    let is_mapping = is_named || matches!(values, Value::Dict(_) | Value::Undefined(_));
    if next.next().is_some()
        && !is_mapping
        && !matches!(values, Value::List(list) if list.kind == ListKind::List)
    {
        return invalid("not all arguments converted during string formatting");
    }
    Ok(Value::built(out))
}

/// Reads flags, width, precision and kind of a `%` directive. `*` takes a number from the values.
fn percent_spec<'a>(text: &'a str, values: &mut std::slice::Iter<'_, Value>) -> Result<(Spec, &'a str)> {
    let mut spec = Spec::default();
    let mut rest = text;
    while let Some(flag) = rest.chars().next().filter(|c| matches!(c, '-' | '+' | ' ' | '#' | '0')) {
        match flag {
            '-' => spec.align = Some('<'),
            '0' => spec.fill = Some('0'),
            '#' => spec.is_alternate = true,
            '+' => spec.sign = Some('+'),
            _ => spec.sign = spec.sign.or(Some(' ')),
        }
        rest = &rest[1..];
    }
    let mut number = |rest: &mut &'a str| -> Result<Option<i128>> {
        if let Some(tail) = rest.strip_prefix('*') {
            *rest = tail;
            return match values.next().and_then(Value::as_int) {
                Some(int) => Ok(Some(int)),
                None => invalid("* wants int"),
            };
        }
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let digits = &rest[..end];
        *rest = &rest[end..];
        Ok(digits.parse().ok())
    };
    let width = number(&mut rest)?.unwrap_or(0);
    if width < 0 {
        spec.align = Some('<');
    }
    spec.width = checked_width(width.saturating_abs())?;
    if let Some(tail) = rest.strip_prefix('.') {
        rest = tail;
        spec.precision = Some(checked_width(number(&mut rest)?.unwrap_or(0).max(0))?);
    }
    rest = rest.trim_start_matches(['h', 'l', 'L']);
    let Some(kind) = rest.chars().next() else { return invalid("incomplete format") };
    spec.kind = kind;
    Ok((spec, &rest[kind.len_utf8()..]))
}

fn checked_width(width: i128) -> Result<usize> {
    match usize::try_from(width) {
        Ok(width) if width <= MAX_WIDTH => Ok(width),
        _ => invalid("a width is too large"),
    }
}

fn write_percent(meter: &Rc<Meter>, spec: &Spec, value: &Value, out: &mut TextBuilder) -> Result<()> {
    match spec.kind {
        's' | 'r' | 'a' => {
            let mut text = TextBuilder::new(meter);
            match spec.kind {
                's' => python::write_str(value, &mut text)?,
                _ => python::write_repr(value, &mut text)?,
            }
            let shown = truncated(text.as_str(), spec.precision);
            pad(&Spec { fill: None, align: spec.align.or(Some('>')), ..spec.clone() }, "", shown, out)
        }
        'c' => {
            let shown = match (value.as_int(), value.as_str()) {
                (Some(code), _) => u32::try_from(code).ok().and_then(char::from_u32).map(String::from),
                (None, text) => text.filter(|text| text.chars().count() == 1).map(str::to_owned),
            };
            let Some(shown) = shown else { return invalid("%c requires int or char") };
            pad(&Spec { fill: None, align: spec.align.or(Some('>')), ..spec.clone() }, "", &shown, out)
        }
        'd' | 'i' | 'u' | 'x' | 'X' | 'o' => {
            let int = match value {
                Value::Float(float) if matches!(spec.kind, 'd' | 'i' | 'u') && float.is_finite() => {
                    float.trunc() as i128
                }
                _ => match value.as_int() {
                    Some(int) => int,
                    None if value.is_undefined() => return Err(undefined_error(value)),
                    None => {
                        let (kind, found) = (spec.kind, value.type_name());
                        return invalid(format!("%{kind} format: a real number is required, not {found}"));
                    }
                },
            };
            let kind = if spec.kind == 'i' || spec.kind == 'u' { 'd' } else { spec.kind };
            let spec = Spec { kind, align: spec.align.or(Some('>')), ..spec.clone() };
            write_int(&spec, int, out)
        }
        'e' | 'E' | 'f' | 'F' | 'g' | 'G' => {
            let Some(number) = value.as_number() else {
                if value.is_undefined() {
                    return Err(undefined_error(value));
                }
                return invalid(format!("must be real number, not {}", value.type_name()));
            };
            write_float(&Spec { align: spec.align.or(Some('>')), ..spec.clone() }, number, out)
        }
        other => invalid(format!("unsupported format character '{other}'")),
    }
}

fn truncated(text: &str, precision: Option<usize>) -> &str {
    let end = precision.and_then(|n| text.char_indices().nth(n));
    end.map_or(text, |(at, _)| &text[..at])
}

fn write_int(spec: &Spec, int: i128, out: &mut TextBuilder) -> Result<()> {
    let n = int.unsigned_abs();
    let (prefix, digits) = match spec.kind {
        'x' => ("0x", format!("{n:x}")),
        'X' => ("0X", format!("{n:X}")),
        'o' => ("0o", format!("{n:o}")),
        'b' => ("0b", format!("{n:b}")),
        _ => ("", n.to_string()),
    };
    let digits = match spec.precision {
        Some(precision) => format!("{}{digits}", "0".repeat(precision.saturating_sub(digits.len()))),
        None => digits,
    };
    let digits = spec.has_commas.map_or(digits.clone(), |comma| grouped(&digits, comma));
    let sign = if int < 0 { "-".to_owned() } else { spec.sign.map_or(String::new(), String::from) };
    let prefix = if spec.is_alternate { prefix } else { "" };
    pad(spec, &format!("{sign}{prefix}"), &digits, out)
}

fn grouped(digits: &str, comma: char) -> String {
    let (whole, rest) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let mut out = String::new();
    for (at, c) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(comma);
        }
        out.push(c);
    }
    out + rest
}

fn write_float(spec: &Spec, number: f64, out: &mut TextBuilder) -> Result<()> {
    let precision = spec.precision.unwrap_or(6);
    let magnitude = number.abs();
    let shown = if !number.is_finite() {
        if number.is_nan() { "nan".to_owned() } else { "inf".to_owned() }
    } else {
        match spec.kind.to_ascii_lowercase() {
            'e' => exponent(&format!("{magnitude:.precision$e}")),
            'g' => general(magnitude, precision.max(1), spec.is_alternate),
            '%' => format!("{:.precision$}%", magnitude * 100.0),
            _ => format!("{magnitude:.precision$}"),
        }
    };
    let shown = if spec.kind.is_ascii_uppercase() { shown.to_uppercase() } else { shown };
    let shown = spec.has_commas.map_or(shown.clone(), |comma| grouped(&shown, comma));
    let is_negative = number.is_sign_negative() && !number.is_nan();
    let sign = if is_negative { "-".to_owned() } else { spec.sign.map_or(String::new(), String::from) };
    pad(spec, &sign, &shown, out)
}

/// `1.5e3` → `1.5e+03`.
fn exponent(text: &str) -> String {
    let (digits, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

fn general(magnitude: f64, precision: usize, keeps_zeros: bool) -> String {
    let scientific = format!("{magnitude:.*e}", precision - 1);
    let power: i32 = scientific.split_once('e').and_then(|(_, power)| power.parse().ok()).unwrap_or(0);
    let trim = |text: &str| match text.contains('.') && !keeps_zeros {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if power < -4 || power >= precision as i32 {
        let (digits, _) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        return exponent(&format!("{}e{power}", trim(digits)));
    }
    let decimals = (precision as i32 - 1 - power).max(0) as usize;
    trim(&format!("{magnitude:.decimals$}"))
}

/// Writes a prefix and digits or text, padded to the width.
fn pad(spec: &Spec, prefix: &str, text: &str, out: &mut TextBuilder) -> Result<()> {
    let n = prefix.chars().count() + text.chars().count();
    let missing = spec.width.saturating_sub(n);
    let fill = spec.fill.unwrap_or(' ');
    let fills = |n: usize, out: &mut TextBuilder| (0..n).try_for_each(|_| out.push(fill));
    let align = match (spec.align, fill) {
        (Some('>') | None, '0') if spec.kind != 's' && spec.kind != '\0' => '=',
        (Some(align), _) => align,
        (None, _) => '<',
    };
    let (before, after) = match align {
        '<' => (0, missing),
        '^' => (missing / 2, missing - missing / 2),
        _ => (missing, 0),
    };
    if align == '=' {
        out.push_str(prefix)?;
        fills(missing, out)?;
        return out.push_str(text);
    }
    // After the text, zeros would change a number.
    let after_fill = if fill == '0' && align == '<' && spec.kind != '\0' { ' ' } else { fill };
    fills(before, out)?;
    out.push_str(prefix)?;
    out.push_str(text)?;
    (0..after).try_for_each(|_| out.push(after_fill))
}

/// `text.format(…)`: fields by position, number and name, with a format but without attributes.
pub fn braces(meter: &Rc<Meter>, text: &str, given: &crate::arguments::CallArguments) -> Result<Value> {
    let mut out = TextBuilder::new(meter);
    out.push_str("")?;
    let mut rest = text;
    let mut next = 0;
    while let Some(at) = rest.find(['{', '}']) {
        out.push_str(&rest[..at])?;
        let doubled = rest.as_bytes().get(at + 1) == Some(&rest.as_bytes()[at]);
        if doubled {
            out.push_str(&rest[at..=at])?;
            rest = &rest[at + 2..];
            continue;
        }
        if rest.as_bytes()[at] == b'}' {
            return invalid("single '}' encountered in format string");
        }
        let Some(end) = rest[at..].find('}').map(|end| at + end) else {
            return invalid("expected '}' before end of string");
        };
        let field = &rest[at + 1..end];
        rest = &rest[end + 1..];
        let (name, spec) = field.split_once(':').unwrap_or((field, ""));
        let (name, conversion) = name.split_once('!').unwrap_or((name, ""));
        let value = match name.parse::<usize>() {
            Ok(index) => given.positional.get(index),
            Err(_) if name.is_empty() => {
                next += 1;
                given.positional.get(next - 1)
            }
            Err(_) => given.keywords.iter().find(|(known, _)| **known == *name).map(|(_, value)| value),
        };
        let Some(value) = value else { return invalid(format!("no value for the field '{name}'")) };
        write_field(meter, value, conversion, spec, &mut out)?;
    }
    out.push_str(rest)?;
    Ok(Value::built(out))
}

fn write_field(
    meter: &Rc<Meter>,
    value: &Value,
    conversion: &str,
    spec: &str,
    out: &mut TextBuilder,
) -> Result<()> {
    let spec = field_spec(spec)?;
    let is_text = !conversion.is_empty()
        || value.as_number().is_none()
        || (spec.kind == '\0' && matches!(value, Value::Bool(_)));
    if !is_text {
        let spec = Spec { align: spec.align.or(Some('>')), ..spec };
        return match (value.as_int(), spec.kind) {
            (Some(int), '\0' | 'd' | 'x' | 'X' | 'o' | 'b' | 'n') => {
                write_int(&Spec { kind: if spec.kind == '\0' { 'd' } else { spec.kind }, ..spec }, int, out)
            }
            (None, '\0') if spec.precision.is_none() => {
                let number = value.as_number().unwrap_or(0.0);
                let sign = if number.is_sign_negative() { "-" } else { "" };
                pad(
                    &Spec { kind: 'f', ..spec },
                    sign,
                    python::float_repr(number).trim_start_matches('-'),
                    out,
                )
            }
            (None, '\0') => write_float(&Spec { kind: 'g', ..spec }, value.as_number().unwrap_or(0.0), out),
            _ => write_float(&spec, value.as_number().unwrap_or(0.0), out),
        };
    }
    let mut text = TextBuilder::new(meter);
    match conversion {
        "r" | "a" => python::write_repr(value, &mut text)?,
        _ => python::write_str(value, &mut text)?,
    }
    pad(&spec, "", truncated(text.as_str(), spec.precision), out)
}

/// `[[fill]align][sign][#][0][width][,][.precision][kind]`
fn field_spec(text: &str) -> Result<Spec> {
    let mut spec = Spec::default();
    let mut chars = text.chars().peekable();
    let is_align = |c: char| matches!(c, '<' | '>' | '^' | '=');
    let mut ahead = text.chars();
    if let (Some(fill), Some(align)) = (ahead.next(), ahead.next())
        && is_align(align)
    {
        (spec.fill, spec.align) = (Some(fill), Some(align));
        chars.next();
        chars.next();
    } else {
        spec.align = chars.next_if(|c| is_align(*c));
    }
    spec.sign = chars.next_if(|c| matches!(c, '+' | '-' | ' ')).filter(|c| *c != '-');
    spec.is_alternate = chars.next_if_eq(&'#').is_some();
    if chars.next_if_eq(&'0').is_some() {
        spec.fill = spec.fill.or(Some('0'));
    }
    let number = |chars: &mut std::iter::Peekable<std::str::Chars<'_>>| {
        let mut digits = String::new();
        while let Some(c) = chars.next_if(char::is_ascii_digit) {
            digits.push(c);
        }
        digits.parse::<i128>().ok()
    };
    spec.width = checked_width(number(&mut chars).unwrap_or(0))?;
    spec.has_commas = chars.next_if(|c| matches!(c, ',' | '_'));
    if chars.next_if_eq(&'.').is_some() {
        spec.precision = Some(checked_width(number(&mut chars).unwrap_or(0))?);
    }
    spec.kind = chars.next().filter(|kind| *kind != 's').unwrap_or('\0');
    if chars.next().is_some() {
        return invalid("invalid format specifier");
    }
    Ok(spec)
}
