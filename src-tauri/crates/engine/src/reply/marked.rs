//! A reply as one text in which markup tokens are enclosed by characters that cannot occur in text.
//!
//! A tag that is a token thus differs from the same letters as text, and both are found by the same search.

/// Noncharacters of Unicode, which no text may contain: before a control token, before another token, and after
/// either.
const CONTROL: char = '\u{fdd0}';
const VISIBLE: char = '\u{fdd2}';
const END: char = '\u{fdd1}';

/// Returns text with these characters replaced.
pub fn plain(text: &str) -> String {
    text.replace([CONTROL, VISIBLE, END], "\u{fffd}")
}

/// Returns a marked token.
pub fn enclose(text: &str, is_control: bool) -> String {
    let open = if is_control { CONTROL } else { VISIBLE };
    [open.encode_utf8(&mut [0; 4]), text, END.encode_utf8(&mut [0; 4])].concat()
}

/// Returns whether a token is marked in it.
pub fn has_mark(text: &str) -> bool {
    text.contains(END)
}

/// Returns the visible text, without control tokens.
pub fn shown(text: &str) -> String {
    strip(text, false)
}

/// Returns the text with every token written out.
pub fn written(text: &str) -> String {
    strip(text, true)
}

fn strip(text: &str, keeps_control: bool) -> String {
    if !has_mark(text) {
        return text.to_string();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find([CONTROL, VISIBLE]) {
        out.push_str(&rest[..at]);
        let is_control = rest[at..].starts_with(CONTROL);
        let inner = &rest[at + CONTROL.len_utf8()..];
        let (name, after) = inner.split_once(END).unwrap_or((inner, ""));
        if keeps_control || !is_control {
            out.push_str(name);
        }
        rest = after;
    }
    out.push_str(rest);
    out
}
