//! JSON as servers and other programs write it. What strict JSON refuses is mended: lone surrogates, `NaN` and
//! `Infinity`, control characters and unknown escapes in strings. Halves of a surrogate pair that
//! come in two events are joined.

use std::borrow::Cow;

use serde_json::Value;

/// Lone surrogates stand here while an event is read, since a string can't hold them. Nothing uses
/// these code points of the last private plane beside an escaped lone surrogate.
const STAND_INS: u32 = 0x10_f000;
const FIRST_SURROGATE: u16 = 0xd800;
const FIRST_LOW_SURROGATE: u16 = 0xdc00;
const LAST_SURROGATE: u16 = 0xdfff;

/// The values of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedJson {
    /// One after another. A text that holds nothing else has at least one.
    pub values: Vec<Value>,
    /// Strings may hold stand-ins for lone surrogates.
    pub has_lone: bool,
}

/// Parses the values of a text, which may follow each other.
pub fn parse(text: &str) -> serde_json::Result<ParsedJson> {
    if let Ok(values) = values_of(text) {
        return Ok(ParsedJson { values, has_lone: false });
    }
    let (mended, has_lone) = mend(text);
    Ok(ParsedJson { values: values_of(&mended)?, has_lone })
}

/// Parses one value whose lone surrogates become U+FFFD. A byte order mark before it is ignored.
///
/// Errors: what strict JSON says about the text, if it cannot be mended.
pub fn parse_value(text: &str) -> serde_json::Result<Value> {
    let text = text.trim_start_matches('\u{feff}');
    serde_json::from_str(text).or_else(|error| {
        let (mended, _) = mend(text);
        serde_json::from_str(&without_stand_ins(&mended)).map_err(|_| error)
    })
}

/// Parses an object whose lone surrogates become U+FFFD.
pub fn parse_object(text: &str) -> Option<Value> {
    parse_value(text).ok().filter(Value::is_object)
}

/// Writes U+FFFD for each escaped surrogate without its other half. Nothing else changes, so that the text stays as
/// strict as it was.
pub fn replace_lone_surrogates(text: &str) -> Cow<'_, str> {
    let (mut out, mut rest) = (String::new(), text);
    let mut copied = text;
    while let Some(at) = rest.find('\\') {
        rest = &rest[at..];
        match escape_at(rest) {
            Some(Escape::Lone(_)) => {
                out.push_str(&copied[..copied.len() - rest.len()]);
                out.push(char::REPLACEMENT_CHARACTER);
                rest = &rest[ESCAPE_BYTES..];
                copied = rest;
            }
            Some(Escape::Text { n_bytes }) => rest = &rest[n_bytes..],
            // The escaped character begins no escape itself.
            None => rest = rest.char_indices().nth(2).map_or("", |(at, _)| &rest[at..]),
        }
    }
    if copied.len() == text.len() {
        return Cow::Borrowed(text);
    }
    out.push_str(copied);
    Cow::Owned(out)
}

/// Returns the text with U+FFFD for each stand-in.
pub fn without_stand_ins(text: &str) -> String {
    text.chars().map(|c| if unit_of(c).is_some() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

fn values_of(text: &str) -> serde_json::Result<Vec<Value>> {
    serde_json::Deserializer::from_str(text).into_iter::<Value>().collect()
}

/// Joins the halves of a pair that ends one text and begins the next.
#[derive(Debug, Clone, Default)]
pub struct SurrogateJoiner {
    high: Option<u16>,
}

impl SurrogateJoiner {
    /// Returns the next text without stand-ins. A high half at its end waits for the next text.
    pub fn join(&mut self, text: &str, has_lone: bool) -> String {
        if text.is_empty() || !has_lone && self.high.is_none() {
            return text.to_owned();
        }
        let mut joined = String::with_capacity(text.len());
        for c in text.chars() {
            let unit = unit_of(c).filter(|_| has_lone);
            match (self.high.take(), unit) {
                (Some(high), Some(low)) if low >= FIRST_LOW_SURROGATE => {
                    joined.extend(char::decode_utf16([high, low]).map(|c| c.unwrap_or('\u{fffd}')));
                    continue;
                }
                (Some(_), _) => joined.push(char::REPLACEMENT_CHARACTER),
                (None, _) => {}
            }
            match unit {
                Some(high) if high < FIRST_LOW_SURROGATE => self.high = Some(high),
                Some(_) => joined.push(char::REPLACEMENT_CHARACTER),
                None => joined.push(c),
            }
        }
        joined
    }

    /// Returns what stands for a half whose other half never came.
    pub fn rest(&mut self) -> &'static str {
        if self.high.take().is_some() { "\u{fffd}" } else { "" }
    }
}

fn unit_of(c: char) -> Option<u16> {
    let at = u16::try_from(u32::from(c).checked_sub(STAND_INS)?).ok()?;
    at.checked_add(FIRST_SURROGATE).filter(|unit| *unit <= LAST_SURROGATE)
}

fn stand_in(unit: u16) -> char {
    char::from_u32(STAND_INS + u32::from(unit - FIRST_SURROGATE)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Returns the text as strict JSON, as far as it can be mended, and whether it has stand-ins.
fn mend(text: &str) -> (String, bool) {
    let mut out = String::with_capacity(text.len() + 16);
    let (mut rest, mut has_lone) = (text, false);
    while let Some(at) = rest.find('"') {
        mend_outside(&rest[..at], &mut out);
        out.push('"');
        rest = &rest[at + 1..];
        has_lone |= mend_string(&mut rest, &mut out);
    }
    mend_outside(rest, &mut out);
    (out, has_lone)
}

/// Mends what lies outside strings: words that are no JSON.
fn mend_outside(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_alphabetic()) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        match word {
            "NaN" | "nan" | "Infinity" | "inf" | "None" | "undefined" => {
                if out.ends_with('-') {
                    out.pop();
                }
                out.push_str("null");
            }
            "True" => out.push_str("true"),
            "False" => out.push_str("false"),
            word => out.push_str(word),
        }
        rest = after;
    }
    out.push_str(rest);
}

/// Mends a string up to its closing quote. Returns whether it has stand-ins.
fn mend_string(rest: &mut &str, out: &mut String) -> bool {
    let mut has_lone = false;
    while let Some(c) = rest.chars().next() {
        match c {
            '"' => {
                out.push('"');
                *rest = &rest[1..];
                return has_lone;
            }
            '\\' => has_lone |= mend_escape(rest, out),
            c if c < ' ' => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
                *rest = &rest[1..];
            }
            c => {
                out.push(c);
                *rest = &rest[c.len_utf8()..];
            }
        }
    }
    has_lone
}

/// Mends what begins with a backslash. Returns whether it became a stand-in.
fn mend_escape(rest: &mut &str, out: &mut String) -> bool {
    let bytes = rest.as_bytes();
    match bytes.get(1) {
        Some(b'u') => {}
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
            out.push_str(&rest[..2]);
            *rest = &rest[2..];
            return false;
        }
        Some(b'\'') => {
            out.push('\'');
            *rest = &rest[2..];
            return false;
        }
        Some(_) | None => {
            out.push_str("\\\\");
            *rest = &rest[1..];
            return false;
        }
    }
    match escape_at(rest) {
        Some(Escape::Lone(unit)) => {
            out.push(stand_in(unit));
            *rest = &rest[ESCAPE_BYTES..];
            true
        }
        Some(Escape::Text { n_bytes }) => {
            out.push_str(&rest[..n_bytes]);
            *rest = &rest[n_bytes..];
            false
        }
        None => {
            out.push_str("\\\\");
            *rest = &rest[1..];
            false
        }
    }
}

/// Length of `\uXXXX`.
const ESCAPE_BYTES: usize = 6;

/// What stands at a `\u`.
enum Escape {
    /// Half of a surrogate pair.
    Lone(u16),
    /// One escape, or the two of a pair.
    Text { n_bytes: usize },
}

/// The escape at the front; None if there is none that begins with `\u`.
fn escape_at(text: &str) -> Option<Escape> {
    let unit = escaped_unit(text)?;
    if !(FIRST_SURROGATE..=LAST_SURROGATE).contains(&unit) {
        return Some(Escape::Text { n_bytes: ESCAPE_BYTES });
    }
    let is_low = |unit: u16| (FIRST_LOW_SURROGATE..=LAST_SURROGATE).contains(&unit);
    let has_low = escaped_unit(&text[ESCAPE_BYTES..]).is_some_and(is_low);
    let is_pair = unit < FIRST_LOW_SURROGATE && has_low;
    Some(if is_pair { Escape::Text { n_bytes: 2 * ESCAPE_BYTES } } else { Escape::Lone(unit) })
}

/// Reads `\uXXXX` at the front.
fn escaped_unit(text: &str) -> Option<u16> {
    let hex = text.strip_prefix("\\u")?.get(..4)?;
    hex.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u16::from_str_radix(hex, 16).ok())?
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(text: &str, expected: Value) {
        let parsed = parse(text).unwrap();
        let written = without_stand_ins(&Value::from(parsed.values).to_string());
        assert_eq!(written, expected.to_string(), "{text}");
    }

    #[test]
    fn what_strict_json_refuses_is_mended() {
        check("{\"a\":1}{\"b\":2}\n[3]", json!([{ "a": 1 }, { "b": 2 }, [3]]));
        check(
            "{\"a\": NaN, \"b\": -Infinity, \"c\": [nan, 1e5, true], \"NaN\": \"NaN\"}",
            json!([{ "a": null, "b": null, "c": [null, 1e5, true], "NaN": "NaN" }]),
        );
        check(
            r#"["\ud83d", "\ude00", "\ud83d\ude00", "\ud83dx\\ud83d", "é\u00e9"]"#,
            json!([["\u{fffd}", "\u{fffd}", "😀", "\u{fffd}x\\ud83d", "éé"]]),
        );
        check("[\"a\nb\tc\", \"it\\'s\", \"\\d\", \"\\u12\"]", json!([["a\nb\tc", "it's", "\\d", "\\u12"]]));
        check("{'a': 1}".replace('\'', "\"").as_str(), json!([{ "a": 1 }]));
        for text in ["", "{", "hello", "[1,]", "\"a", "\\"] {
            assert!(parse(text).is_err() || text.is_empty(), "{text}");
        }
        assert_eq!(parse_object(r#"{"x":"\ud83d"}"#), Some(json!({ "x": "\u{fffd}" })));
        assert_eq!(["[1]", "{", "{}{}"].map(parse_object), [None, None, None]);
    }

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
            assert_eq!(parse_value(text).unwrap(), expected, "{text}");
        }
        for wrong in ["", "{", r#""\ud83d"#, "\"a\\", "[\"\\ud83d\",]"] {
            assert!(parse_value(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_that_are_none_become_null() {
        let text = r#"{"a": NaN, "b": [-Infinity, Infinity], "NaN": "NaN \" Infinity", "c": -1.5}"#;
        let expected = json!({ "a": null, "b": [null, null], "NaN": "NaN \" Infinity", "c": -1.5 });
        assert_eq!(parse_value(text).unwrap(), expected);
        assert_eq!(parse_value("\u{feff}{}").unwrap(), json!({}));
    }

    #[test]
    fn only_lone_surrogates_are_replaced() {
        for (text, expected) in [
            (r#"{"a":"half \ud83d"}"#, "{\"a\":\"half \u{fffd}\"}"),
            (r#""\uD83D\ud83d\uDE00!""#, "\"\u{fffd}\\ud83d\\uDE00!\""),
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\\\ud83d""#, "\"\\\\\u{fffd}\""),
            (r#"[NaN, "\x\é"#, r#"[NaN, "\x\é"#),
            ("\\", "\\"),
        ] {
            assert_eq!(replace_lone_surrogates(text), expected, "{text}");
        }
    }

    #[test]
    fn pairs_are_joined_over_events() {
        let check = |events: &[&str], expected: &str| {
            let mut joiner = SurrogateJoiner::default();
            let mut text = String::new();
            for event in events {
                let ParsedJson { values, has_lone } = parse(&format!("\"{event}\"")).unwrap();
                text.push_str(&joiner.join(values[0].as_str().unwrap(), has_lone));
            }
            text.push_str(joiner.rest());
            assert_eq!(text, expected, "{events:?}");
        };
        check(&["a\\ud83d", "\\ude00b"], "a😀b");
        check(&["a\\ud83d", "", "\\ude00"], "a😀");
        check(&["a\\ud83d", "b"], "a\u{fffd}b");
        check(&["a\\ud83d", "\\ud83d\\ude00"], "a\u{fffd}😀");
        check(&["a\\ud83d"], "a\u{fffd}");
        check(&["\\ude00\\ud83d", "\\ude00"], "\u{fffd}😀");
        check(&["\u{10f03d}"], "\u{10f03d}");
    }

    #[test]
    fn any_text_is_mended_without_harm() {
        let mut seed = 7_u64;
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize
        };
        let letters = ["\"", "\\", "u", "d83d", "dE00", "{", "}", ":", "é", "\n", "NaN", "-", "1"];
        for _ in 0..5000 {
            let text: String = (0..next() % 24).map(|_| letters[next() % letters.len()]).collect();
            let _ = parse(&text);
        }
    }
}
