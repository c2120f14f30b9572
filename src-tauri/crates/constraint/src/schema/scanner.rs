//! Follows a JSON text byte by byte: where its values begin and end, under which keys and indices.
//!
//! The text is well-formed, since a grammar has permitted it. A number at its top has no end but the text's.

use std::ops::Range;

/// Where a value lies in its parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The whole text.
    Root,
    /// Under this key of an object.
    Key(String),
    /// At this index of an array.
    Index(usize),
}

/// What a byte means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScanEvent {
    /// An object or array begins, as this part of its parent.
    Opened(Step),
    /// A value ends whose bytes are these; `step` is set for values that are no object or array.
    Closed { bytes: Range<usize>, step: Option<Step> },
}

#[derive(Debug, Clone)]
struct ScannedValue {
    is_object: bool,
    start: usize,
    index: usize,
    key: String,
    expects_key: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScanState {
    /// Between values.
    Structure,
    String {
        start: usize,
        is_key: bool,
        is_escaped: bool,
    },
    /// A number, `true`, `false` or `null`.
    Literal {
        start: usize,
    },
}

/// The state after some bytes. Cloning it costs what the open objects and arrays hold.
#[derive(Debug, Clone)]
pub struct JsonScanner {
    open: Vec<ScannedValue>,
    state: ScanState,
}

impl Default for JsonScanner {
    fn default() -> Self {
        Self { open: Vec::new(), state: ScanState::Structure }
    }
}

impl JsonScanner {
    /// Takes the last byte of `text`.
    pub fn advance(&mut self, text: &[u8], sink: &mut impl FnMut(ScanEvent)) {
        let Some((&byte, before)) = text.split_last() else { return };
        let at = before.len();
        match self.state {
            ScanState::String { start, is_key, is_escaped: true } => {
                self.state = ScanState::String { start, is_key, is_escaped: false };
            }
            ScanState::String { start, is_key, is_escaped: false } => match byte {
                b'\\' => self.state = ScanState::String { start, is_key, is_escaped: true },
                b'"' => self.end_string(&text[start..], start, is_key, sink),
                _ => {}
            },
            ScanState::Literal { start } if is_delimiter(byte) => {
                self.state = ScanState::Structure;
                let step = Some(self.step());
                sink(ScanEvent::Closed { bytes: start..at, step });
                self.structure(byte, at, sink);
            }
            ScanState::Literal { .. } => {}
            ScanState::Structure => self.structure(byte, at, sink),
        }
    }

    fn end_string(&mut self, string: &[u8], start: usize, is_key: bool, sink: &mut impl FnMut(ScanEvent)) {
        self.state = ScanState::Structure;
        match self.open.last_mut().filter(|_| is_key) {
            Some(object) => object.key = serde_json::from_slice(string).unwrap_or_default(),
            None => {
                let step = Some(self.step());
                sink(ScanEvent::Closed { bytes: start..start + string.len(), step });
            }
        }
    }

    fn structure(&mut self, byte: u8, at: usize, sink: &mut impl FnMut(ScanEvent)) {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => {}
            b'{' | b'[' => {
                let step = self.step();
                let is_object = byte == b'{';
                let (key, index) = (String::new(), 0);
                self.open.push(ScannedValue { is_object, start: at, index, key, expects_key: is_object });
                sink(ScanEvent::Opened(step));
            }
            b'}' | b']' => {
                if let Some(closed) = self.open.pop() {
                    sink(ScanEvent::Closed { bytes: closed.start..at + 1, step: None });
                }
            }
            b':' => self.open.last_mut().into_iter().for_each(|parent| parent.expects_key = false),
            b',' => {
                if let Some(parent) = self.open.last_mut() {
                    parent.expects_key = parent.is_object;
                    parent.index += 1;
                }
            }
            b'"' => {
                let is_key = self.open.last().is_some_and(|parent| parent.expects_key);
                self.state = ScanState::String { start: at, is_key, is_escaped: false };
            }
            _ => self.state = ScanState::Literal { start: at },
        }
    }

    fn step(&self) -> Step {
        match self.open.last() {
            None => Step::Root,
            Some(parent) if parent.is_object => Step::Key(parent.key.clone()),
            Some(parent) => Step::Index(parent.index),
        }
    }
}

fn is_delimiter(byte: u8) -> bool {
    matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the values in the order in which they end.
    fn check(text: &str, expected: &[&str]) {
        let mut scanner = JsonScanner::default();
        let mut closed = Vec::new();
        let mut read = Vec::new();
        for &byte in text.as_bytes() {
            read.push(byte);
            scanner.advance(&read, &mut |event| {
                if let ScanEvent::Closed { bytes, .. } = event {
                    closed.push(text[bytes].to_owned());
                }
            });
        }
        assert_eq!(closed, expected, "{text}");
    }

    #[test]
    fn values_end_where_they_do() {
        check("12", &[]);
        check("12 ", &["12"]);
        check(r#""a\"]\\""#, &[r#""a\"]\\""#]);
        check(
            r#"{"a": [1, {"b":null} ],"c":-2e3}"#,
            &[
                "1",
                "null",
                r#"{"b":null}"#,
                r#"[1, {"b":null} ]"#,
                "-2e3",
                r#"{"a": [1, {"b":null} ],"c":-2e3}"#,
            ],
        );
        check("[]", &["[]"]);
    }

    #[test]
    fn steps_are_keys_and_indices() {
        let text = r#"{"a\n":[0,true],"b":{}}"#;
        let (mut scanner, mut read, mut steps) = (JsonScanner::default(), Vec::new(), Vec::new());
        for &byte in text.as_bytes() {
            read.push(byte);
            scanner.advance(&read, &mut |event| match event {
                ScanEvent::Opened(step) | ScanEvent::Closed { step: Some(step), .. } => steps.push(step),
                ScanEvent::Closed { step: None, .. } => {}
            });
        }
        let key = |key: &str| Step::Key(key.into());
        assert_eq!(steps, [Step::Root, key("a\n"), Step::Index(0), Step::Index(1), key("b")]);
    }
}
