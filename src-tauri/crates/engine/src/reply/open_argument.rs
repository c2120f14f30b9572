//! Tells whether a call breaks off inside an argument: an end tag there belongs to the argument.

use super::calls::without_prefix;
use super::elements;
use super::marked;

/// Gemma's quote, which `"` and `'` inside do not end.
const GEMMA_QUOTE: &str = "<|\"|>";

/// End tags inside the arguments of one call. Beyond that the first one ends it.
pub const MAX_INNER_ENDS: usize = 64;

/// Calls of one reply in which an argument never ended. Beyond that each end tag ends its call: looking for the real one
/// takes time, and models that loop write thousands.
pub const MAX_UNENDED_CALLS: usize = 8;

/// White space at the end of what is held, beyond which more of it cannot change a state: no tag contains that much.
const MAX_TAG_BLANK_BYTES: usize = 64;

/// Beginnings of a reply that is a call without tags.
const BARE_BEGINNINGS: &[&str] =
    &["{\"name\":", "{\"type\":\"function\"", "{\"function\":", "{\"parameters\":", "[{\"name\":"];

/// Returns whether the body of a call ends inside a string or inside the element of an argument.
pub fn is_open(body: &str) -> bool {
    let body = without_prefix(body);
    match elements::is_argument_open(&body) {
        Some(is_open) => is_open,
        None => is_string_open(&body),
    }
}

/// Returns whether a text of JSON or Python ends inside a string. A quote opens a string only where a value or a key
/// may stand, so that an apostrophe in plain words opens none.
fn is_string_open(text: &str) -> bool {
    let mut rest = text;
    let mut before = '{';
    while let Some(c) = rest.chars().next() {
        if let Some(inner) = rest.strip_prefix(GEMMA_QUOTE) {
            let Some((_, after)) = inner.split_once(GEMMA_QUOTE) else { return true };
            (rest, before) = (after, '"');
            continue;
        }
        rest = &rest[c.len_utf8()..];
        if matches!(c, '"' | '\'') && "{[(,:=>".contains(before) {
            let Some(after) = after_string(rest, c) else { return true };
            (rest, before) = (after, c);
        } else if !c.is_whitespace() {
            before = c;
        }
    }
    false
}

/// Returns the text after the end of a string. None: it does not end.
fn after_string(text: &str, quote: char) -> Option<&str> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return Some(&text[at + 1..]),
            _ => {}
        }
    }
    None
}

/// Finds the first `close` that is not inside an argument of a call, and before the call's own `end` (may be empty).
/// Those before `from` are known to be inside one.
pub fn end_behind_arguments(held: &str, close: &str, end: &str, from: usize) -> Option<usize> {
    if !held[from..].contains(close) {
        return None;
    }
    let own = if end.is_empty() { None } else { held.find(end) };
    let ends = held.match_indices(close).map(|(at, _)| at).enumerate();
    let mut ends = ends
        .skip_while(|(_, at)| *at < from)
        .take_while(|(_, at)| own.is_none_or(|own| own + end.len() > *at));
    let is_end =
        |n_before: usize, at: usize| n_before >= MAX_INNER_ENDS || !is_open(&marked::written(&held[..at]));
    ends.find(|(n_before, at)| is_end(*n_before, *at)).map(|(_, at)| at)
}

/// Returns whether a text may be the beginning of a call's body, as far as it has come. Plain words are none.
pub fn may_be_body(text: &str) -> bool {
    let text = text.trim_start();
    let name = text.trim_start_matches(|c: char| c.is_alphanumeric() || "_.-:".contains(c));
    let begins_name = text.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    if !begins_name {
        return text.is_empty() || text.starts_with(['{', '[', '<', ']']);
    }
    let after = name.trim_start();
    after.is_empty() || after.starts_with(['{', '[', '<', '('])
}

/// Returns whether a text is white space.
pub fn is_blank(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_whitespace())
}

/// Returns whether a text ends in more white space than a tag contains.
pub fn ends_in_long_blank(text: &str) -> bool {
    let from = text.len().checked_sub(MAX_TAG_BLANK_BYTES);
    from.and_then(|from| text.as_bytes().get(from..))
        .is_some_and(|last| last.iter().all(u8::is_ascii_whitespace))
}

/// Returns whether a call without tags may begin like this.
pub fn may_be_bare(text: &str) -> bool {
    let longest = BARE_BEGINNINGS.iter().map(|it| it.len()).max().unwrap_or(0);
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).take(longest).collect();
    BARE_BEGINNINGS.iter().any(|begins| begins.starts_with(&compact) || compact.starts_with(begins))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_elements_are_told_from_the_rest() {
        let check = |body: &str, expected: bool| assert_eq!(is_open(body), expected, "{body}");
        check("{\"name\": \"f\", \"arguments\": {\"x\": \"a ", true);
        check("{\"name\": \"f\", \"arguments\": {\"x\": \"a \\\" ", true);
        check("{\"name\": \"f\", \"arguments\": {\"x\": \"a\"}}", false);
        check("{\"name\": ", false);
        check("{\"x\": \"it's\"}", false);
        check("{'x': 'a ", true);
        check("I don't know", false);
        check("never", false);
        check("", false);
        check("f(x=\"a ", true);
        check("f(x='a', y=\"b\")", false);
        check("call:f{x:<|\"|>a \" ", true);
        check("call:f{x:<|\"|>a<|\"|>}", false);
        check("<function=f><parameter=x>a ", true);
        check("<function=f><parameter=x>a</parameter></function>", false);
        check("<function=f><parameter=x>a </parameter> b ", true);
        check("<function=f><parameter=x>a</function>", false);
        check("<function=f>{\"x\": \"a ", true);
        check("<function=f>{\"x\": \"a\"}</function>", false);
        check("<｜DSML｜invoke name=\"f\"><｜DSML｜parameter name=\"x\" string=\"true\">a ", true);
        check("f\n<arg_key>x</arg_key>\n<arg_value>a ", true);
        check("f\n<arg_key>x</arg_key>\n<arg_value>a</arg_value>\n", false);
    }

    #[test]
    fn bodies_are_told_from_plain_words() {
        for text in
            ["", " ", "{", "[f", "<function", "f", "f\n<arg_key>", "f(", "call:f{", "functions.f:0<|x|>"]
        {
            assert!(may_be_body(text), "{text}");
        }
        for text in [" tags and", "> is the tag", "f is called", ".", ", then", "`"] {
            assert!(!may_be_body(text), "{text}");
        }
    }
}
