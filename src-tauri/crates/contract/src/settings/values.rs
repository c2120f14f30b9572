//! Validates the values of settings.

use serde_json::{Value, json};

use super::Setting;
use crate::types::SettingKind;
use crate::{Error, Result};

/// Longest text of several lines, in bytes: a tenth of the context that most models have.
const MAX_LONG_TEXT_BYTES: usize = 64 << 10;

/// Most own prompts: more than a menu can be used for.
const MAX_PROMPTS: usize = 500;

/// Longest name of an own prompt: fits the menu.
const MAX_PROMPT_NAME_CHARS: usize = 60;

impl Setting {
    /// Validates `value` and returns its stored form. Errors name the range.
    pub fn check(&self, value: &Value) -> Result<Value> {
        let kind = (self.kind)();
        let wrong = |expected: String| {
            Error::input(
                "setting.out_of_range",
                format!("{} can't be {value}: {expected}.", self.label),
                format!("Enter a valid value for \"{}\": {expected}.", self.key),
            )
        };
        match kind {
            SettingKind::Number { min, max, .. } => match value.as_f64() {
                Some(number) if (min..=max).contains(&number) => Ok(json!(number)),
                Some(_) | None => Err(wrong(format!("a number from {min} to {max}"))),
            },
            SettingKind::Integer { min, max, absent } => match (whole(value), absent) {
                (_, Some(_)) if value.is_null() => Ok(Value::Null),
                (Some(number), _) if (min..=max).contains(&number) => Ok(json!(number)),
                (_, Some(absent)) => {
                    Err(wrong(format!("a whole number from {min} to {max}, or empty ({absent})")))
                }
                (_, None) => Err(wrong(format!("a whole number from {min} to {max}"))),
            },
            SettingKind::Choice { options } => {
                let known = options.iter().any(|option| Some(option.value.as_str()) == value.as_str());
                // The library's ids are checked where the library is known.
                if known || (options.is_empty() && value.is_string()) {
                    return Ok(value.clone());
                }
                let values: Vec<_> = options.iter().map(|option| option.value.as_str()).collect();
                Err(wrong(format!("one of {}", values.join(", "))))
            }
            SettingKind::Toggle => match value {
                Value::Bool(_) => Ok(value.clone()),
                _ => Err(wrong("true or false".into())),
            },
            SettingKind::Text { .. } => match value {
                Value::String(_) => Ok(value.clone()),
                _ => Err(wrong("text".into())),
            },
            SettingKind::LongText { .. } => match value {
                Value::String(text) if text.len() <= MAX_LONG_TEXT_BYTES => Ok(value.clone()),
                _ => Err(wrong(format!("text of at most {MAX_LONG_TEXT_BYTES} bytes"))),
            },
            SettingKind::Prompts if prompts_fit(value) => Ok(value.clone()),
            SettingKind::Prompts => Err(wrong(format!(
                "a list of at most {MAX_PROMPTS} prompts, each with a name of at most {MAX_PROMPT_NAME_CHARS} \
                 characters and a text of at most {MAX_LONG_TEXT_BYTES} bytes"
            ))),
            SettingKind::Keys if keys_fit(value) => Ok(value.clone()),
            SettingKind::Keys => Err(wrong("commands, each with a list of its keys".into())),
            SettingKind::ReadOnly => Err(wrong(self.help.trim_end_matches('.').into())),
        }
    }
}

/// Validates the page's commands and keys, with limits far beyond any keyboard.
fn keys_fit(value: &Value) -> bool {
    let name = |text: &str| (1..=40).contains(&text.len());
    let keys = |value: &Value| {
        let list = value.as_array().filter(|list| list.len() <= 4);
        list.is_some_and(|list| list.iter().all(|keys| keys.as_str().is_some_and(name)))
    };
    let map = value.as_object().filter(|map| map.len() <= 200);
    map.is_some_and(|map| map.iter().all(|(command, value)| name(command) && keys(value)))
}

/// Validates own prompts: names are unique, and neither names nor texts are blank.
fn prompts_fit(value: &Value) -> bool {
    let Some(list) = value.as_array().filter(|list| list.len() <= MAX_PROMPTS) else { return false };
    let mut names = std::collections::HashSet::new();
    list.iter().all(|prompt| {
        let field = |key: &str| prompt.get(key)?.as_str().filter(|text| !text.trim().is_empty());
        let (Some(name), Some(text)) = (field("name"), field("text")) else { return false };
        let is_short = name.chars().count() <= MAX_PROMPT_NAME_CHARS && text.len() <= MAX_LONG_TEXT_BYTES;
        is_short && prompt.as_object().is_some_and(|fields| fields.len() == 2) && names.insert(name)
    })
}

/// Parses an integer: JSON's `3` and `3.0` are equal.
fn whole(value: &Value) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53
    value.as_i64().or_else(|| {
        value
            .as_f64()
            .filter(|number| number.fract() == 0.0 && number.abs() <= EXACT)
            .map(|number| number as i64)
    })
}

#[cfg(test)]
mod tests {
    use super::super::{all, find};
    use super::*;

    #[test]
    fn values_are_checked_against_their_row() {
        let cases = [
            ("temperature", json!(0), Some(json!(0.0))),
            ("temperature", json!(2.01), None),
            ("temperature", json!("hot"), None),
            ("temperature", Value::Null, None),
            ("top_k", json!(40.0), Some(json!(40))),
            ("top_k", json!(40.5), None),
            ("top_k", json!(-1), None),
            ("top_k", Value::Null, None),
            ("seed", Value::Null, Some(Value::Null)),
            ("seed", json!(9_007_199_254_740_991_i64), Some(json!(9_007_199_254_740_991_i64))),
            ("seed", json!(1e300), None),
            ("threads", json!(0), None),
            ("kv", json!("f32"), Some(json!("f32"))),
            ("kv", json!("q8_0"), Some(json!("q8_0"))),
            ("kv", json!("q8_0/q4_0"), Some(json!("q8_0/q4_0"))),
            ("kv", json!("f64"), None),
            ("theme", json!(1), None),
            ("instructions", json!("Be brief.\nSay so."), Some(json!("Be brief.\nSay so."))),
            ("instructions", json!("x".repeat(MAX_LONG_TEXT_BYTES + 1)), None),
            ("prompts", json!([]), Some(json!([]))),
            (
                "prompts",
                json!([{"name": "mail", "text": "Write a mail."}]),
                Some(json!([{"name": "mail", "text": "Write a mail."}])),
            ),
            ("prompts", json!([{"name": "mail", "text": " "}]), None),
            ("prompts", json!([{"name": "mail"}]), None),
            ("prompts", json!([{"name": "a", "text": "b", "c": 1}]), None),
            ("prompts", json!([{"name": "a", "text": "b"}, {"name": "a", "text": "c"}]), None),
            ("prompts", json!({"name": "a"}), None),
            (
                "shortcuts",
                json!({"settings": ["Mod+,"], "stop": []}),
                Some(json!({"settings": ["Mod+,"], "stop": []})),
            ),
            ("shortcuts", json!({"settings": "Mod+,"}), None),
            ("shortcuts", json!([]), None),
            ("data_dir", json!("/tmp"), None),
        ];
        for (key, value, expected) in cases {
            let got = find(key).unwrap().check(&value);
            assert_eq!(got.clone().ok(), expected, "{key} = {value}: {got:?}");
            if let Err(error) = got {
                assert!(!error.remedy().is_empty());
            }
        }
        assert_eq!(find("colour").err().map(|error| error.info.code), Some("setting.unknown".into()));
    }

    #[test]
    fn every_default_passes_its_own_check() {
        for setting in all().filter(|setting| setting.key != "data_dir") {
            let default = (setting.default)();
            assert_eq!(setting.check(&default).ok(), Some(default), "{}", setting.key);
        }
    }
}
