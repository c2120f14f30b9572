//! JSON that clients send. Half an emoji, or bytes that are no UTF-8, become U+FFFD: a text is never refused for them.

use std::borrow::Cow;

use serde_json::Value;

/// Length of `\uXXXX`.
const ESCAPE_BYTES: usize = 6;

const REPLACEMENT: &[u8] = b"\\ufffd";

/// Parses a body. What strict JSON accepts is taken as it is.
pub fn parse(body: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(body).or_else(|error| {
        let text = String::from_utf8_lossy(body);
        match (replace_lone_surrogates(text.as_bytes()), &text) {
            (Some(mended), _) => serde_json::from_slice(&mended),
            (None, Cow::Owned(text)) => serde_json::from_str(text),
            (None, Cow::Borrowed(_)) => Err(error),
        }
    })
}

/// The body with U+FFFD in place of escaped surrogates without their other half. None if there are none.
fn replace_lone_surrogates(body: &[u8]) -> Option<Vec<u8>> {
    let (mut mended, mut at, mut has_changed) = (Vec::with_capacity(body.len()), 0, false);
    while let Some(rest) = body.get(at..).filter(|rest| !rest.is_empty()) {
        let n = match (rest, escaped_unit(rest)) {
            ([b'\\', ..], None) => 2,
            (_, None) => 1,
            (_, Some(0xd800..=0xdbff)) => {
                let low = rest.get(ESCAPE_BYTES..).and_then(escaped_unit);
                if matches!(low, Some(0xdc00..=0xdfff)) { 2 * ESCAPE_BYTES } else { 0 }
            }
            (_, Some(0xdc00..=0xdfff)) => 0,
            (_, Some(_)) => ESCAPE_BYTES,
        };
        if n == 0 {
            mended.extend_from_slice(REPLACEMENT);
            has_changed = true;
            at += ESCAPE_BYTES;
        } else {
            mended.extend_from_slice(rest.get(..n).unwrap_or(rest));
            at += n;
        }
    }
    has_changed.then_some(mended)
}

/// The UTF-16 unit that an escape at the beginning of `bytes` stands for.
fn escaped_unit(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
    is_hex.then(|| u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok())?
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lone_surrogates_become_the_replacement_character() {
        let cases: [(&[u8], Option<Value>); 12] = [
            (br#"{"text":"half \ud83d"}"#, Some(json!({"text": "half \u{fffd}"}))),
            (br#"{"text":"\ude00 half"}"#, Some(json!({"text": "\u{fffd} half"}))),
            (br#"{"text":"\ud83d\ude00"}"#, Some(json!({"text": "\u{1f600}"}))),
            (br#"{"text":"\uD83D\ud83d\uDE00!"}"#, Some(json!({"text": "\u{fffd}\u{1f600}!"}))),
            (br#"{"\udc00":["\ude00\ud83d"]}"#, Some(json!({"\u{fffd}": ["\u{fffd}\u{fffd}"]}))),
            (br#""\\ud83d""#, Some(json!("\\ud83d"))),
            (br#""\\\ud83d""#, Some(json!("\\\u{fffd}"))),
            (br#""\ud83dx\n""#, Some(json!("\u{fffd}x\n"))),
            (b"\"a\xffb\"", Some(json!("a\u{fffd}b"))),
            (b"\"\xed\xa0\xbd\"", Some(json!("\u{fffd}\u{fffd}\u{fffd}"))),
            (br#"{"text":"\ud83d""#, None),
            (br#""\ud8""#, None),
        ];
        for (body, expected) in cases {
            assert_eq!(parse(body).ok(), expected, "{}", String::from_utf8_lossy(body));
        }
    }
}
