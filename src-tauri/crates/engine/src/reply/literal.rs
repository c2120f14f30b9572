//! Reads literals as models write them in calls: JSON, Python, and Gemma's quotes.
//!
//! Accepts strict JSON, and also single quotes, `True`, `None`, bare keys, tuples, trailing commas. Nesting is
//! bounded. What cannot be read is `None`, never a guess.

use serde_json::{Map, Number, Value};

/// Deeper than any argument a person would write.
const MAX_DEPTH: usize = 64;

/// Gemma writes strings between two of these.
const GEMMA_QUOTE: &str = "<|\"|>";

/// Reads literals from the front of a text.
pub struct LiteralReader<'a> {
    pub rest: &'a str,
}

impl<'a> LiteralReader<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { rest: text.trim_start() }
    }

    /// Takes `token` and the white space after it, if it comes next.
    pub fn take(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    pub fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads a name: letters, digits, `_`, `.`, `-`.
    pub fn name(&mut self) -> Option<&'a str> {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        let begins_well = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
        if begins_well {
            self.rest = rest.trim_start();
        }
        begins_well.then_some(name)
    }

    pub fn value(&mut self) -> Option<Value> {
        self.nested(0)
    }

    fn nested(&mut self, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        if let Some(text) = self.string() {
            return Some(Value::String(text));
        }
        if self.take("{") {
            return self.object("}", depth).map(Value::Object);
        }
        for (open, close) in [("[", "]"), ("(", ")")] {
            if self.take(open) {
                return self.list(close, depth);
            }
        }
        self.word()
    }

    /// Reads `key: value` pairs up to `close`. Keys may be bare.
    fn object(&mut self, close: &str, depth: usize) -> Option<Map<String, Value>> {
        let mut map = Map::new();
        while !self.take(close) {
            let key = match self.string() {
                Some(key) => key,
                None => self.name()?.to_string(),
            };
            if !self.take(":") {
                return None;
            }
            map.insert(key, self.nested(depth + 1)?);
            if !self.take(",") && !self.rest.starts_with(close) {
                return None;
            }
        }
        Some(map)
    }

    fn list(&mut self, close: &str, depth: usize) -> Option<Value> {
        let mut items = Vec::new();
        while !self.take(close) {
            items.push(self.nested(depth + 1)?);
            if !self.take(",") && !self.rest.starts_with(close) {
                return None;
            }
        }
        Some(Value::Array(items))
    }

    /// Reads `name=value` pairs up to `)`. Values without a name are refused.
    pub fn keywords(&mut self) -> Option<Map<String, Value>> {
        let mut map = Map::new();
        while !self.take(")") {
            let key = self.name()?.to_string();
            if !self.take("=") {
                return None;
            }
            map.insert(key, self.value()?);
            if !self.take(",") && !self.rest.starts_with(')') {
                return None;
            }
        }
        Some(map)
    }

    /// Reads a quoted text.
    pub fn string(&mut self) -> Option<String> {
        if let Some(rest) = self.rest.strip_prefix(GEMMA_QUOTE) {
            let (text, rest) = rest.split_once(GEMMA_QUOTE)?;
            self.rest = rest.trim_start();
            return Some(text.to_string());
        }
        let quote = self.rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let mut text = String::new();
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            if c == quote {
                self.rest = self.rest[at + 1..].trim_start();
                return Some(text);
            }
            if c != '\\' {
                text.push(c);
                continue;
            }
            let (at, escaped) = chars.next()?;
            match escaped {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                'r' => text.push('\r'),
                'b' => text.push('\u{8}'),
                'f' => text.push('\u{c}'),
                'u' => {
                    let (c, n) = unicode(&self.rest[at + 1..])?;
                    text.push(c);
                    (0..n).for_each(|_| _ = chars.next());
                }
                '\n' => {}
                other => text.push(other),
            }
        }
        None
    }

    /// Reads a number, or a word with a value such as `true`.
    fn word(&mut self) -> Option<Value> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '+');
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        let value = match word {
            "true" | "True" => Value::Bool(true),
            "false" | "False" => Value::Bool(false),
            "null" | "None" => Value::Null,
            number => Value::Number(self::number(number)?),
        };
        self.rest = rest.trim_start();
        Some(value)
    }
}

fn number(text: &str) -> Option<Number> {
    let begins = text.trim_start_matches(['-', '+']).starts_with(|c: char| c.is_ascii_digit() || c == '.');
    if !begins {
        return None;
    }
    let integer = text.parse::<i64>().map(Number::from).or_else(|_| text.parse::<u64>().map(Number::from));
    integer.ok().or_else(|| Number::from_f64(text.parse().ok()?))
}

/// Reads the character after `\u`, and returns how many characters that took.
fn unicode(text: &str) -> Option<(char, usize)> {
    let unit = |text: &str| u16::from_str_radix(text.get(..4)?, 16).ok();
    let first = unit(text)?;
    if let Some(c) = char::from_u32(u32::from(first)) {
        return Some((c, 4));
    }
    let second = unit(text.get(4..)?.strip_prefix("\\u")?)?;
    let c = char::decode_utf16([first, second]).next()?.ok()?;
    Some((c, 10))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(text: &str, expected: Option<Value>) {
        let mut reader = LiteralReader::new(text);
        let value = reader.value().filter(|_| reader.is_done());
        assert_eq!(value, expected, "{text}");
    }

    #[test]
    fn reads_what_models_write() {
        check(
            r#"{"a": [1, -2.5, true, null, "x\n\u00e9\ud83d\ude00"]}"#,
            Some(json!({"a": [1, -2.5, true, null, "x\né😀"]})),
        );
        check(
            "{'a': (1, 'it\\'s'), b: True, c: None,}",
            Some(json!({"a": [1, "it's"], "b": true, "c": null})),
        );
        check("{city:<|\"|>Pa\"ris<|\"|>,n:3}", Some(json!({"city": "Pa\"ris", "n": 3})));
        check("18446744073709551615", Some(json!(18_446_744_073_709_551_615_u64)));
        check("1e3", Some(json!(1000.0)));
        check("[]", Some(json!([])));
    }

    #[test]
    fn refuses_invalid_values() {
        for text in [
            "",
            "{",
            "[1",
            "\"a",
            "{a}",
            "{1: 2}",
            "nan",
            "inf",
            "x",
            "[1 2]",
            "\"\\u12\"",
            "\"\\ud83d\"",
            "-",
        ] {
            check(text, None);
        }
        check(&"[".repeat(100_000), None);
    }
}
