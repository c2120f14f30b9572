//! Changes of texts: case, escaping, replacement.

use std::rc::Rc;

use crate::failure::Result;
use crate::meter::{Meter, TextBuilder};
use crate::ops::escape;
use crate::python;
use crate::value::Value;

/// Writes a text in another form.
pub type Change = fn(&str, &mut TextBuilder) -> Result<()>;

/// Applies a change to a text.
pub fn changed(meter: &Rc<Meter>, text: &str, change: Change) -> Result<Value> {
    meter.bytes_work(text.len())?;
    let mut out = TextBuilder::new(meter);
    out.push_str("")?;
    change(text, &mut out)?;
    Ok(Value::built(out))
}

pub fn upper(text: &str, out: &mut TextBuilder) -> Result<()> {
    text.chars().flat_map(char::to_uppercase).try_for_each(|c| out.push(c))
}

/// In one go: a sigma at the end of a word is another letter. At most three bytes become of two.
pub fn lower(text: &str, out: &mut TextBuilder) -> Result<()> {
    match text.contains('Σ') {
        true => out.push_str(&text.to_lowercase()),
        false => text.chars().flat_map(char::to_lowercase).try_for_each(|c| out.push(c)),
    }
}

pub fn capitalize(text: &str, out: &mut TextBuilder) -> Result<()> {
    let mut chars = text.chars();
    if let Some(first) = chars.next() {
        titlecase(first, out)?;
    }
    lower(chars.as_str(), out)
}

fn titlecase(c: char, out: &mut TextBuilder) -> Result<()> {
    let mut upper = c.to_uppercase();
    // "ß" begins a word as "Ss"
    if let Some(first) = upper.next() {
        out.push(first)?;
    }
    upper.flat_map(char::to_lowercase).try_for_each(|c| out.push(c))
}

pub fn python_title(text: &str, out: &mut TextBuilder) -> Result<()> {
    let mut after_letter = false;
    for c in text.chars() {
        match after_letter {
            true => c.to_lowercase().try_for_each(|c| out.push(c))?,
            false => titlecase(c, out)?,
        }
        after_letter = c.is_alphabetic();
    }
    Ok(())
}

pub fn swapcase(text: &str, out: &mut TextBuilder) -> Result<()> {
    for c in text.chars() {
        match c.is_uppercase() {
            true => c.to_lowercase().try_for_each(|c| out.push(c))?,
            false => c.to_uppercase().try_for_each(|c| out.push(c))?,
        }
    }
    Ok(())
}

/// Jinja's own: a word begins after white space, a hyphen or an opening bracket.
pub fn jinja_title(text: &str, out: &mut TextBuilder) -> Result<()> {
    let mut begins = true;
    for c in text.chars() {
        match begins {
            true => titlecase(c, out)?,
            false => c.to_lowercase().try_for_each(|c| out.push(c))?,
        }
        begins = python::is_space(c) || matches!(c, '-' | '(' | '{' | '[' | '<');
    }
    Ok(())
}

pub fn escaped(text: &str, out: &mut TextBuilder) -> Result<()> {
    escape(text, out)
}

/// Replaces at most `n` occurrences.
pub fn replaced(meter: &Rc<Meter>, text: &str, from: &str, to: &str, n: Option<usize>) -> Result<Value> {
    meter.bytes_work(text.len())?;
    let mut out = TextBuilder::new(meter);
    out.push_str("")?;
    let mut at = 0;
    for (place, found) in text.match_indices(from).take(n.unwrap_or(usize::MAX)) {
        out.push_str(&text[at..place])?;
        out.push_str(to)?;
        at = place + found.len();
    }
    out.push_str(&text[at..])?;
    Ok(Value::built(out))
}
