//! JSON that clients send. Half an emoji, or bytes that are no UTF-8, become U+FFFD: a text is never refused for them.

use documents::lenient_json::replace_lone_surrogates;
use serde_json::Value;

/// Parses a body. What strict JSON accepts is taken as it is.
pub fn parse(body: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(body).or_else(|error| {
        let text = String::from_utf8_lossy(body);
        serde_json::from_str(&replace_lone_surrogates(&text)).map_err(|_| error)
    })
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
