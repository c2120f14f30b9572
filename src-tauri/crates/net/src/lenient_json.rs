//! JSON as other programs send it. What strict JSON refuses is mended: a lone surrogate becomes
//! U+FFFD; `NaN` and `Infinity` become null.

use std::borrow::Cow;

use serde_json::Value;

/// Length of `\uXXXX`.
const ESCAPE_LEN: usize = 6;

/// Parses a text, as it stands if it is JSON, else mended.
///
/// Errors: those of the text as it stands.
pub fn parse(text: &str) -> serde_json::Result<Value> {
    let text = text.trim_start_matches('\u{feff}');
    serde_json::from_str(text).or_else(|error| {
        let mended = replace_no_numbers(&replace_lone_surrogates(text));
        serde_json::from_str(&mended).map_err(|_| error)
    })
}

/// Writes U+FFFD for each escaped surrogate that has no partner. The rest stays byte for byte.
pub fn replace_lone_surrogates(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let (mut out, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(found) = bytes[at..].iter().position(|byte| *byte == b'\\') {
        at += found;
        let Some(unit) = escaped_unit(bytes, at) else {
            // the escaped character is no beginning of an escape itself
            at = (at + 2).min(bytes.len());
            continue;
        };
        let is_high = (0xd800..0xdc00).contains(&unit);
        let low = escaped_unit(bytes, at + ESCAPE_LEN).filter(|low| (0xdc00..0xe000).contains(low));
        match (is_high, low) {
            (true, Some(_)) => at += 2 * ESCAPE_LEN,
            _ if (0xd800..0xe000).contains(&unit) => {
                out.push_str(&text[copied..at]);
                out.push(char::REPLACEMENT_CHARACTER);
                at += ESCAPE_LEN;
                copied = at;
            }
            _ => at += ESCAPE_LEN,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Reads `\uXXXX` at a place.
fn escaped_unit(bytes: &[u8], at: usize) -> Option<u16> {
    let hex = bytes.get(at..at + ESCAPE_LEN)?.strip_prefix(b"\\u")?;
    let is_hex = hex.iter().all(u8::is_ascii_hexdigit);
    u16::from_str_radix(std::str::from_utf8(hex).ok().filter(|_| is_hex)?, 16).ok()
}

/// Writes null for `NaN`, `Infinity` and `-Infinity` outside strings.
fn replace_no_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let word = ["NaN", "-NaN", "Infinity", "-Infinity"].into_iter().find(|word| rest.starts_with(word));
        let n = match word {
            Some(word) => {
                out.push_str("null");
                rest = &rest[word.len()..];
                continue;
            }
            None if c == '"' => string_len(rest),
            None => c.len_utf8(),
        };
        out.push_str(&rest[..n]);
        rest = &rest[n..];
    }
    out
}

/// Bytes of the string at the front, with its quotes.
pub fn string_len(text: &str) -> usize {
    let (mut is_escaped, bytes) = (false, text.as_bytes());
    for (at, byte) in bytes.iter().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn halves_of_characters_become_one_that_says_so() {
        let cases = [
            (r#""a\ud83db""#, json!("a\u{fffd}b")),
            (r#""a\uDE00""#, json!("a\u{fffd}")),
            (r#""\ud83d\ude00""#, json!("😀")),
            (r#""\ud83d\ud83d\ude00""#, json!("\u{fffd}😀")),
            (r#""\\ud83d \u00e9""#, json!("\\ud83d é")),
            (r#"{"\udc00": ["\ud800"]}"#, json!({ "\u{fffd}": ["\u{fffd}"] })),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text).unwrap(), expected, "{text}");
        }
        for wrong in ["", "{", r#""\u12""#, r#""\ud83d"#, "\"a\\", "[\"\\ud83d\",]"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_that_are_none_become_null() {
        let text = r#"{"a": NaN, "b": [-Infinity, Infinity], "NaN": "NaN \" Infinity", "c": -1.5}"#;
        let expected = json!({ "a": null, "b": [null, null], "NaN": "NaN \" Infinity", "c": -1.5 });
        assert_eq!(parse(text).unwrap(), expected);
        assert_eq!(parse("\u{feff}{}").unwrap(), json!({}));
    }
}
