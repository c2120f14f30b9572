//! What parses of a JSON object that ends early: the arguments of a call that was cut.

use serde_json::{Map, Value};

/// The arguments of a call: of one that was cut, the members that came whole. None: the text begins no object.
pub fn arguments_object(text: &str) -> Option<Map<String, Value>> {
    let text = text.trim();
    (text.is_empty() || text.starts_with('{')).then(|| whole_members(text))
}

fn whole_members(text: &str) -> Map<String, Value> {
    if let Ok(Value::Object(object)) = serde_json::from_str(text) {
        return object;
    }
    let safe = PartialScan::of(text).safe;
    let closers: String = PartialScan::of(&text[..safe]).closers.into_iter().rev().collect();
    match serde_json::from_str(&format!("{}{closers}", &text[..safe])) {
        Ok(Value::Object(object)) => object,
        Ok(_) | Err(_) => Map::new(),
    }
}

/// Finds the last place where every value so far is whole.
#[derive(Default)]
struct PartialScan {
    in_string: bool,
    is_escaped: bool,
    /// What closes the objects and lists that are open, the innermost last.
    closers: Vec<char>,
    /// Bytes up to that place.
    safe: usize,
    /// A colon came since the last comma: what follows is a value, not a name.
    has_colon: bool,
}

impl PartialScan {
    fn of(text: &str) -> Self {
        let mut scan = Self::default();
        text.bytes().enumerate().for_each(|(at, byte)| scan.take(at, byte));
        scan
    }

    fn take(&mut self, at: usize, byte: u8) {
        if self.in_string {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => {
                    self.in_string = false;
                    if self.has_colon || self.closers.last() == Some(&']') {
                        self.safe = at + 1;
                    }
                }
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => {
                self.closers.push(if byte == b'{' { '}' } else { ']' });
                self.has_colon = false;
                self.safe = at + 1;
            }
            b'}' | b']' if !self.closers.is_empty() => {
                self.closers.pop();
                self.safe = at + 1;
            }
            b':' => self.has_colon = true,
            // A number or a word before it is whole.
            b',' => {
                self.safe = at;
                self.has_colon = false;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_that_came_whole_are_kept() {
        for (text, expected) in [
            ("", json!({})),
            ("{", json!({})),
            ("{\"x", json!({})),
            ("{\"x\"", json!({})),
            ("{\"x\": ", json!({})),
            ("{\"x\": \"a b", json!({})),
            ("{\"x\": \"a\"", json!({ "x": "a" })),
            ("{\"x\": \"a\", \"n\": 1", json!({ "x": "a" })),
            ("{\"x\": \"a\", \"n\": 12, ", json!({ "x": "a", "n": 12 })),
            ("{\"x\": {\"y\": [1, 2, \"}\\\"\", {\"z\": tru", json!({ "x": { "y": [1, 2, "}\"", {}] } })),
            ("{\"x\": [\"a\", \"b", json!({ "x": ["a"] })),
            ("{\"x\": {\"y\": 1}, \"z\": 2", json!({ "x": { "y": 1 } })),
            ("{\"x\": 1}", json!({ "x": 1 })),
        ] {
            assert_eq!(arguments_object(text).map(Value::Object), Some(expected), "{text}");
        }
        for text in ["[1, 2", "hello"] {
            assert_eq!(arguments_object(text), None, "{text}");
        }
    }
}
