//! Splits a JSON text into the values of a list, one at a time, without parsing it whole.
//!
//! Memory is that of the longest value. A broken value ends where its brackets do, and its neighbours stay readable.

use std::io::{BufRead, BufReader, Cursor, Read};

/// Piece in which a text is read.
const BUFFER_BYTES: usize = 64 << 10;

/// Longest value that is kept: many times any conversation there is.
const MAX_VALUE_BYTES: usize = 256 << 20;

/// Longest key of an object that is compared.
const MAX_KEY_BYTES: usize = 256;

/// Byte order mark of UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// How a value ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueEnd {
    /// At its last bracket, quote or letter.
    Whole,
    /// With the text.
    Cut,
    /// It is longer than is kept; what was kept is its beginning.
    TooLong,
}

/// A member of an object, in the bytes of the text.
pub struct JsonMember {
    /// Without its quotes.
    pub key: Vec<u8>,
    pub value: Vec<u8>,
    /// How the value ended.
    pub end: ValueEnd,
}

/// Reads values from a text.
pub struct JsonItems<'a> {
    input: BufReader<Box<dyn Read + 'a>>,
}

/// Where in a value the scan is.
#[derive(Default)]
struct ScanState {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    has_begun: bool,
}

impl<'a> JsonItems<'a> {
    /// Reads a text from its beginning; a byte order mark is skipped.
    pub fn new(mut text: Box<dyn Read + 'a>) -> std::io::Result<Self> {
        let mut head = Vec::new();
        (&mut text).take(MARK.len() as u64).read_to_end(&mut head)?;
        let head = if head == MARK { Vec::new() } else { head };
        let text: Box<dyn Read + 'a> = Box::new(Cursor::new(head).chain(text));
        Ok(Self { input: BufReader::with_capacity(BUFFER_BYTES, text) })
    }

    /// The next byte that is no space, which stays unread. None: the text is over.
    pub fn peek(&mut self) -> std::io::Result<Option<u8>> {
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                return Ok(None);
            }
            match buffer.iter().position(|byte| !byte.is_ascii_whitespace()) {
                Some(at) => {
                    let byte = buffer[at];
                    self.input.consume(at);
                    return Ok(Some(byte));
                }
                None => {
                    let n_bytes = buffer.len();
                    self.input.consume(n_bytes);
                }
            }
        }
    }

    /// Skips the byte that `peek` returned.
    pub fn skip(&mut self) {
        self.input.consume(1);
    }

    /// Moves to the list or object (`open`: its first byte) of an object's member. False: the object has no such member.
    pub fn find_member(&mut self, name: &str, open: u8) -> std::io::Result<bool> {
        self.skip();
        while let Some(key) = self.next_key()? {
            if key == name.as_bytes() && self.peek()? == Some(open) {
                return Ok(true);
            }
            self.value(0)?;
        }
        Ok(false)
    }

    /// The next key of an object that was entered. None: it has no more.
    pub fn next_key(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        while self.peek()? == Some(b',') {
            self.skip();
        }
        if self.peek()? != Some(b'"') {
            return Ok(None);
        }
        let (key, _) = self.value(MAX_KEY_BYTES)?;
        if self.peek()? == Some(b':') {
            self.skip();
        }
        Ok(Some(key.get(1..key.len().saturating_sub(1)).unwrap_or_default().to_vec()))
    }

    /// The next value of a list that was entered, and how it ended. None: the list is over, or the text.
    pub fn next_item(&mut self) -> std::io::Result<Option<(Vec<u8>, ValueEnd)>> {
        while self.peek()? == Some(b',') {
            self.skip();
        }
        match self.peek()? {
            None => Ok(None),
            Some(b']') => {
                self.skip();
                Ok(None)
            }
            Some(_) => self.value(MAX_VALUE_BYTES).map(Some),
        }
    }

    /// The next member of an object that was entered. None: it has no more.
    pub fn next_member(&mut self) -> std::io::Result<Option<JsonMember>> {
        let Some(key) = self.next_key()? else { return Ok(None) };
        let (value, end) = self.value(MAX_VALUE_BYTES)?;
        Ok(Some(JsonMember { key, value, end }))
    }

    /// Reads the value that begins here and returns its first `max_bytes` bytes.
    pub fn value(&mut self, max_bytes: usize) -> std::io::Result<(Vec<u8>, ValueEnd)> {
        let (mut kept, mut is_too_long, mut state) = (Vec::new(), false, ScanState::default());
        self.peek()?;
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                let is_number = state.depth == 0 && !state.in_string && state.has_begun;
                return Ok((kept, if is_number { ValueEnd::Whole } else { ValueEnd::Cut }));
            }
            let (n_bytes, is_over) = state.scan(buffer);
            let n_kept = n_bytes.min(max_bytes - kept.len());
            is_too_long |= n_kept < n_bytes;
            kept.extend_from_slice(&buffer[..n_kept]);
            self.input.consume(n_bytes);
            if is_over {
                return Ok((kept, if is_too_long { ValueEnd::TooLong } else { ValueEnd::Whole }));
            }
        }
    }
}

impl ScanState {
    /// Number of bytes that belong to the value, and whether it ends with them.
    fn scan(&mut self, bytes: &[u8]) -> (usize, bool) {
        for (at, byte) in bytes.iter().enumerate() {
            if self.in_string {
                match (self.is_escaped, byte) {
                    (true, _) => self.is_escaped = false,
                    (false, b'\\') => self.is_escaped = true,
                    (false, b'"') => self.in_string = false,
                    (false, _) => {}
                }
                if !self.in_string && self.depth == 0 {
                    return (at + 1, true);
                }
                continue;
            }
            match byte {
                b'"' if self.depth == 0 && self.has_begun => return (at, true),
                b'"' => self.in_string = true,
                b'[' | b'{' if self.depth == 0 && self.has_begun => return (at, true),
                b'[' | b'{' => self.depth += 1,
                b']' | b'}' if self.depth > 1 => self.depth -= 1,
                // A bracket that closes nothing is a broken value by itself.
                b']' | b'}' if self.depth == 1 || !self.has_begun => return (at + 1, true),
                b']' | b'}' => return (at, true),
                b',' if self.depth == 0 => return (at, true),
                byte if self.depth == 0 && byte.is_ascii_whitespace() => return (at, true),
                _ => {}
            }
            self.has_begun = true;
        }
        (bytes.len(), false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time, so that every boundary is met.
    struct Drops<'a>(&'a [u8]);

    impl Read for Drops<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let n = into.len().min(1).min(self.0.len());
            into[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    fn items(text: &str) -> Vec<(String, ValueEnd)> {
        let read = |source: Box<dyn Read + '_>| {
            let mut items = JsonItems::new(source).unwrap();
            assert_eq!(items.peek().unwrap(), Some(b'['));
            items.skip();
            let next = || items.next_item().unwrap();
            std::iter::from_fn(next)
                .map(|(bytes, end)| (String::from_utf8(bytes).unwrap(), end))
                .collect::<Vec<_>>()
        };
        let whole = read(Box::new(text.as_bytes()));
        assert_eq!(whole, read(Box::new(Drops(text.as_bytes()))), "{text}");
        whole
    }

    fn check(text: &str, expected: &[&str], last: ValueEnd) {
        let found = items(text);
        assert_eq!(found.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>(), expected, "{text}");
        assert_eq!(found.last().map(|(_, end)| *end), Some(last), "{text}");
    }

    #[test]
    fn lists_fall_into_their_values() {
        use ValueEnd::{Cut, Whole};
        check(
            "\u{feff} [ {\"a\":[1,{}]} ,null, \"x,]\" , 1.5e3]",
            &["{\"a\":[1,{}]}", "null", "\"x,]\"", "1.5e3"],
            Whole,
        );
        check(r#"[{"a":"\"}]\\"},{"b":2}]"#, &[r#"{"a":"\"}]\\"}"#, r#"{"b":2}"#], Whole);
        // What is broken ends with its brackets.
        check("[{\"a\":]},{\"b\":2}]", &["{\"a\":]", "}", "{\"b\":2}"], Whole);
        check("[{\"a\" 1}{\"b\":2},,true]", &["{\"a\" 1}", "{\"b\":2}", "true"], Whole);
        check("[1,{\"a\":\"cut", &["1", "{\"a\":\"cut"], Cut);
        check("[1,{\"a\":[2", &["1", "{\"a\":[2"], Cut);
        assert_eq!(items("[]"), []);
        assert_eq!(items("["), []);
    }

    #[test]
    fn a_list_is_found_in_an_object() {
        let text = r#"{"format":"x","other":{"conversations":[0]},"conversations":[1,2],"end":3}"#;
        let mut items = JsonItems::new(Box::new(text.as_bytes())).unwrap();
        assert!(items.peek().unwrap() == Some(b'{') && items.find_member("conversations", b'[').unwrap());
        items.skip();
        assert_eq!(items.next_item().unwrap().unwrap().0, b"1");
        let mut items = JsonItems::new(Box::new(&b"{\"a\":1}"[..])).unwrap();
        items.peek().unwrap();
        assert!(!items.find_member("conversations", b'[').unwrap());
    }

    #[test]
    fn what_is_too_long_is_passed_over() {
        let text = b"[\"123456789\",2]";
        let mut items = JsonItems::new(Box::new(&text[1..])).unwrap();
        assert_eq!(items.value(4).unwrap(), (b"\"123".to_vec(), ValueEnd::TooLong));
        assert_eq!(items.next_item().unwrap(), Some((b"2".to_vec(), ValueEnd::Whole)));
    }
}
