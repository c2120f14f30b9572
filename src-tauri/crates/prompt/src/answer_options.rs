//! Options of answers that a chat sets for itself: thinking, and the texts that end an answer.

use contract::{Error, Result, settings};
use serde_json::{Map, Value, json};

/// Most stop texts of a chat, and their longest in bytes: every token is compared with all of them.
const MAX_STOP_TEXTS: usize = 16;
const MAX_STOP_BYTES: usize = 256;

/// Sets whether and how long a model reasons. "model" leaves it to the model; None changes nothing.
pub fn set_thinking(kwargs: &mut Map<String, Value>, thinking: Option<&str>, effort: Option<&str>) {
    match thinking {
        Some("on") => _ = kwargs.insert("enable_thinking".into(), json!(true)),
        Some("off") => _ = kwargs.insert("enable_thinking".into(), json!(false)),
        Some(_) => _ = kwargs.remove("enable_thinking"),
        None => {}
    }
    match effort {
        Some("model") => _ = kwargs.remove("reasoning_effort"),
        Some(effort) => _ = kwargs.insert("reasoning_effort".into(), json!(effort)),
        None => {}
    }
}

/// Checks the values that are words of a setting. Errors name those that are allowed.
pub fn check_thinking(thinking: Option<&str>, effort: Option<&str>) -> Result<()> {
    for (key, value) in [("thinking", thinking), ("reasoning_effort", effort)] {
        if let Some(value) = value {
            settings::find(key)?.check(&json!(value))?;
        }
    }
    Ok(())
}

/// Errors name the text that is too long, or how many there are.
pub fn check_stop(stop: &[String]) -> Result<()> {
    let wrong = |message: String| {
        let remedy = format!(
            "Enter at most {MAX_STOP_TEXTS} texts of at most {MAX_STOP_BYTES} bytes each, and none that is empty."
        );
        Err(Error::input("chat.stop_texts", message, remedy))
    };
    if stop.len() > MAX_STOP_TEXTS {
        return wrong(format!("There are {} stop texts.", stop.len()));
    }
    match stop.iter().find(|text| text.is_empty() || text.len() > MAX_STOP_BYTES) {
        Some(text) => wrong(format!("A stop text has {} bytes.", text.len())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_texts_are_few_and_short() {
        let texts = |n: usize, n_bytes: usize| vec!["x".repeat(n_bytes); n];
        assert!(check_stop(&texts(16, 256)).is_ok() && check_stop(&[]).is_ok());
        for wrong in [texts(17, 1), texts(1, 257), texts(1, 0)] {
            assert_eq!(check_stop(&wrong).unwrap_err().code(), "chat.stop_texts");
        }
    }

    #[test]
    fn thinking_is_switched_or_left_to_the_model() {
        let cases = [
            (Some("on"), None, json!({"enable_thinking": true, "reasoning_effort": "low"})),
            (Some("off"), Some("high"), json!({"enable_thinking": false, "reasoning_effort": "high"})),
            (Some("model"), Some("model"), json!({})),
            (None, None, json!({"enable_thinking": false, "reasoning_effort": "low"})),
        ];
        for (thinking, effort, expected) in cases {
            let kwargs = [("enable_thinking", json!(false)), ("reasoning_effort", json!("low"))]
                .map(|(key, value)| (key.to_owned(), value));
            let mut kwargs = Map::from_iter(kwargs);
            set_thinking(&mut kwargs, thinking, effort);
            assert_eq!(json!(kwargs), expected, "{thinking:?} {effort:?}");
        }
    }
}
