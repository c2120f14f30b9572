//! config.json as published: JSON, but for numbers that Python writes as bare words.

use serde_json::Value;

/// Words for numbers that JSON has none for.
const WORDS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];

/// Parses a config. `Infinity`, `-Infinity` and `NaN` outside of texts become `{"__float__": "Infinity"}`, as
/// transformers 5 writes them.
///
/// Errors: what is wrong with the text otherwise.
pub(crate) fn parse(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice(bytes).or_else(|error| match replaced(bytes) {
        Some(replaced) => serde_json::from_slice(&replaced),
        None => Err(error),
    })
}

/// Returns the text with every such word replaced. `None` without one.
fn replaced(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(bytes.len());
    let (mut i, mut is_text, mut n_replaced) = (0, false, 0);
    while let Some(&byte) = bytes.get(i) {
        if is_text {
            let n = if byte == b'\\' { 2 } else { 1 };
            is_text = byte != b'"';
            out.extend_from_slice(&bytes[i..(i + n).min(bytes.len())]);
            i += n;
            continue;
        }
        is_text = byte == b'"';
        match WORDS.iter().find(|word| bytes[i..].starts_with(word.as_bytes())) {
            Some(word) => {
                out.extend_from_slice(format!("{{\"__float__\": \"{word}\"}}").as_bytes());
                i += word.len();
                n_replaced += 1;
            }
            None => {
                out.push(byte);
                i += 1;
            }
        }
    }
    (n_replaced > 0).then_some(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bare_words_are_numbers_and_texts_stay() {
        let float = |word: &str| json!({ "__float__": word });
        for (text, expected) in [
            (r#"{"a": [0.0, Infinity]}"#, json!({ "a": [0.0, float("Infinity")] })),
            (r#"{"a": -Infinity, "b": NaN}"#, json!({ "a": float("-Infinity"), "b": float("NaN") })),
            (
                r#"{"Infinity": "NaN \" Infinity", "b": Infinity}"#,
                json!({ "Infinity": "NaN \" Infinity", "b": float("Infinity") }),
            ),
            (r#"{"a": "\\", "b": Infinity}"#, json!({ "a": "\\", "b": float("Infinity") })),
            (r#"{"a": "Infinity"}"#, json!({ "a": "Infinity" })),
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn other_words_stay_errors() {
        for text in
            [r#"{"a": Infinit}"#, r#"{"a": infinity}"#, r#"{"a": "\"#, r#"{"a": Infinity"#, "{\"a\": \"\\"]
        {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
