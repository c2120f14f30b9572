//! Filters of texts.

use std::rc::Rc;

use super::{MAX_INDENT, text_of};
use crate::arguments::{CallArguments, flag, int, text as text_argument};
use crate::changes::{Change, capitalize, changed, escaped, jinja_title, lower, replaced, upper};
use crate::failure::{Result, invalid};
use crate::meter::{Meter, TextBuilder};
use crate::ops::safe;
use crate::render::Renderer;
use crate::value::Value;
use crate::value::undefined_error;
use crate::{format, methods, python};

pub fn apply(
    renderer: &Renderer<'_>,
    name: &str,
    value: &Value,
    given: &CallArguments,
) -> Result<Option<Value>> {
    let meter = &renderer.meter;
    if let ("indent" | "wordwrap", Value::Undefined(_)) = (name, value) {
        return Err(undefined_error(value));
    }
    let change = |change: Change| -> Result<Value> {
        let text = text_of(meter, value)?;
        changed(meter, text.as_str().unwrap_or_default(), change)
    };
    Ok(Some(match name {
        "capitalize" => change(capitalize)?,
        "lower" => change(lower)?,
        "upper" => change(upper)?,
        "title" => change(jinja_title)?,
        "string" => text_of(meter, value)?,
        "safe" => safe(text_of(meter, value)?),
        "escape" | "e" if value.is_safe() => value.clone(),
        "escape" | "e" | "forceescape" => safe(change(escaped)?),
        "trim" => trim(meter, value, given)?,
        "replace" => {
            let [from, to, n] = given.bind(name, ["old", "new", "count"])?;
            let text = text_of(meter, value)?;
            let from = text_of(meter, &from.unwrap_or(Value::None))?;
            let to = text_of(meter, &to.unwrap_or(Value::None))?;
            let n = if matches!(n, Some(Value::None)) { None } else { usize::try_from(int(&n, -1)?).ok() };
            let (from, to) = (from.as_str().unwrap_or_default(), to.as_str().unwrap_or_default());
            replaced(meter, text.as_str().unwrap_or_default(), from, to, n)?
        }
        "indent" => indent(meter, value, given)?,
        "center" => {
            let text = text_of(meter, value)?;
            let [width] = given.bind(name, ["width"])?;
            let width =
                CallArguments { positional: vec![width.unwrap_or(Value::Int(80))], keywords: Vec::new() };
            methods::call(renderer, &text, "center", width)?
        }
        "format" => percent_format(meter, value, given)?,
        "pprint" => {
            let mut out = TextBuilder::new(meter);
            python::write_repr(value, &mut out)?;
            Value::built(out)
        }
        "striptags" => stripped(meter, value)?,
        "truncate" => truncate(meter, value, given)?,
        "urlencode" => change(url_encoded)?,
        "wordcount" => {
            let text = text_of(meter, value)?;
            let text = text.as_str().unwrap_or_default();
            meter.bytes_work(text.len())?;
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            Value::Int(text.split(|c| !is_word(c)).filter(|word| !word.is_empty()).count() as i128)
        }
        "wordwrap" => wordwrap(meter, value, given)?,
        "filesizeformat" => filesize(meter, value, given)?,
        _ => return Ok(None),
    }))
}

/// `text|format(…)`: as `%`, with values by place or by name.
fn percent_format(meter: &Rc<Meter>, value: &Value, given: &CallArguments) -> Result<Value> {
    let values = match (given.positional.is_empty(), given.keywords.is_empty()) {
        (_, true) => Value::list(meter, given.positional.clone(), crate::value::ListKind::Tuple)?,
        (true, false) => {
            let entry =
                |(name, value): &(std::sync::Arc<str>, Value)| Ok((Value::text(meter, name)?, value.clone()));
            Value::dict(meter, given.keywords.iter().map(entry).collect::<Result<Vec<_>>>()?)?
        }
        (false, false) => return invalid("can't handle positional and keyword arguments at the same time"),
    };
    format::percent(meter, &text_of(meter, value)?, &values)
}

fn trim(meter: &Rc<Meter>, value: &Value, given: &CallArguments) -> Result<Value> {
    let [characters] = given.bind("trim", ["chars"])?;
    let text = text_of(meter, value)?;
    let text = text.as_str().unwrap_or_default();
    Value::text(meter, methods::trimmed(text, characters.as_ref(), true, true)?)
}

fn stripped(meter: &Rc<Meter>, value: &Value) -> Result<Value> {
    let text = text_of(meter, value)?;
    let text = text.as_str().unwrap_or_default();
    // Entities are replaced one after the other.
    let _room = meter.charge(text.len().saturating_mul(3))?;
    changed(meter, text, strip_tags)
}

fn indent(meter: &Rc<Meter>, value: &Value, given: &CallArguments) -> Result<Value> {
    let [width, first, blank] = given.bind("indent", ["width", "first", "blank"])?;
    let by = match &width {
        Some(Value::Text(text)) => text.as_str().to_owned(),
        width => " ".repeat(int(width, 4)?.clamp(0, MAX_INDENT) as usize),
    };
    let (first, blank) = (flag(&first, false), flag(&blank, false));
    let text = text_of(meter, value)?;
    let _room = meter.charge(text.as_str().unwrap_or_default().len() + 1)?;
    let text = format!("{}\n", text.as_str().unwrap_or_default());
    let mut out = TextBuilder::new(meter);
    out.push_str(if first { &by } else { "" })?;
    for (n, line) in python::lines(&text, false).enumerate() {
        if n > 0 {
            out.push('\n')?;
            out.push_str(if blank || !line.is_empty() { &by } else { "" })?;
        }
        out.push_str(line)?;
    }
    Ok(Value::built(out))
}

fn strip_tags(text: &str, out: &mut TextBuilder) -> Result<()> {
    let mut words = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        words.push_str(&rest[..at]);
        match rest[at..].find('>') {
            Some(end) => rest = &rest[at + end + 1..],
            None => {
                words.push_str(&rest[at..]);
                rest = "";
            }
        }
    }
    words.push_str(rest);
    let unescaped =
        words.replace("&lt;", "<").replace("&gt;", ">").replace("&#39;", "'").replace("&#34;", "\"");
    for (n, word) in unescaped.replace("&quot;", "\"").replace("&amp;", "&").split_whitespace().enumerate() {
        out.push_str(if n > 0 { " " } else { "" })?;
        out.push_str(word)?;
    }
    Ok(())
}

fn url_encoded(text: &str, out: &mut TextBuilder) -> Result<()> {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b'~' | b'/' => {
                out.push(byte as char)?
            }
            _ => out.push_str(&format!("%{byte:02X}"))?,
        }
    }
    Ok(())
}

fn truncate(meter: &Rc<Meter>, value: &Value, given: &CallArguments) -> Result<Value> {
    let [length, kill_words, end, leeway] =
        given.bind("truncate", ["length", "killwords", "end", "leeway"])?;
    let (length, leeway) = (int(&length, 255)?, int(&leeway, 5)?);
    let end = text_argument(&end, "...")?;
    let text = text_of(meter, value)?;
    let text = text.as_str().unwrap_or_default();
    meter.bytes_work(text.len())?;
    let n_end = end.chars().count() as i128;
    if length < n_end {
        return invalid(format!("expected length >= {n_end}, got {length}"));
    }
    if text.chars().count() as i128 <= length.saturating_add(leeway) {
        return Value::text(meter, text);
    }
    let keep = (length - n_end) as usize;
    let cut = &text[..text.char_indices().nth(keep).map_or(text.len(), |(at, _)| at)];
    let cut = match flag(&kill_words, false) {
        true => cut,
        false => cut.rsplit_once(' ').map_or(cut, |(before, _)| before),
    };
    let mut out = TextBuilder::new(meter);
    out.push_str(cut)?;
    out.push_str(end)?;
    Ok(Value::built(out))
}

fn wordwrap(meter: &Rc<Meter>, value: &Value, given: &CallArguments) -> Result<Value> {
    let [width, long, wrap, _] =
        given.bind("wordwrap", ["width", "break_long_words", "wrapstring", "break_on_hyphens"])?;
    let width = usize::try_from(int(&width, 79)?).unwrap_or(1).max(1);
    let breaks_words = flag(&long, true);
    let newline = text_argument(&wrap, "\n")?;
    let text = text_of(meter, value)?;
    let mut out = TextBuilder::new(meter);
    out.push_str("")?;
    for (n, line) in python::lines(text.as_str().unwrap_or_default(), false).enumerate() {
        out.push_str(if n > 0 { newline } else { "" })?;
        let mut used = 0;
        for word in line.split(' ').filter(|word| !word.is_empty()) {
            let n_word = word.chars().count();
            if used > 0 && used + 1 + n_word > width {
                out.push_str(newline)?;
                used = 0;
            } else if used > 0 {
                out.push(' ')?;
                used += 1;
            }
            for c in word.chars() {
                if breaks_words && used >= width {
                    out.push_str(newline)?;
                    used = 0;
                }
                out.push(c)?;
                used += 1;
            }
        }
    }
    Ok(Value::built(out))
}

fn filesize(meter: &Rc<Meter>, value: &Value, given: &CallArguments) -> Result<Value> {
    let [binary] = given.bind("filesizeformat", ["binary"])?;
    let is_binary = flag(&binary, false);
    let bytes = match value {
        Value::Text(text) => text.as_str().trim().parse().ok(),
        other => other.as_number(),
    };
    let Some(bytes) = bytes else { return invalid("a number of bytes is required") };
    let base: f64 = if is_binary { 1024.0 } else { 1000.0 };
    let text = match bytes {
        1.0 => "1 Byte".to_owned(),
        bytes if bytes < base => format!("{} Bytes", bytes.trunc()),
        bytes => {
            let prefixes = if is_binary {
                ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"]
            } else {
                ["kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"]
            };
            let at = (0..8).find(|at| bytes < base.powi(at + 2)).unwrap_or(7);
            format!("{:.1} {}", bytes / base.powi(at + 1), prefixes[at as usize])
        }
    };
    Value::text(meter, &text)
}
