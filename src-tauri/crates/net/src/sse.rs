//! Parses server-sent events from chunks of bytes: split anywhere, with any line end. Bounded: an
//! endless line is an error, not memory. `Events::lenient` also reads what model servers write
//! beside the specification.

use std::time::Duration;

/// Longest event: a piece of an answer has a few hundred bytes, an answer sent as one a few hundred thousand.
const MAX_EVENT_BYTES: usize = 8 << 20;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What has come and is not whole yet.
#[derive(Debug, Default)]
pub struct Events {
    /// Objects without `data:`, `error:` lines, and events without an empty line between them count.
    is_lenient: bool,
    /// A line has been read: no byte order mark follows.
    has_begun: bool,
    /// The event is named `error`.
    is_error: bool,
    /// Bytes of a line whose end has not come.
    line: Vec<u8>,
    /// The last line ended with `\r`: a `\n` that follows belongs to it.
    after_return: bool,
    /// Data lines of an event whose end has not come.
    data: Vec<u8>,
    has_data: bool,
    /// The id of the last event that had one.
    last_id: Option<String>,
    /// The last time that the server named to wait before the stream is opened again.
    retry: Option<Duration>,
}

/// An event that is longer than any may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

impl Events {
    /// Events of a model server.
    pub fn lenient() -> Self {
        Self { is_lenient: true, ..Self::default() }
    }

    /// More bytes; the data of the events that are whole by now.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, TooLong> {
        let mut whole = Vec::new();
        for &byte in bytes {
            let is_second_half = std::mem::take(&mut self.after_return) && byte == b'\n';
            match byte {
                b'\n' if is_second_half => {}
                b'\n' | b'\r' => {
                    self.after_return = byte == b'\r';
                    whole.extend(self.end_line());
                }
                byte => self.line.push(byte),
            }
            if self.line.len() + self.data.len() > MAX_EVENT_BYTES {
                return Err(TooLong);
            }
        }
        Ok(whole)
    }

    /// The id of the last event that had one.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// How long the server asks to wait before the stream is opened again.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// The bytes have ended: an event whose empty line was left out counts all the same. Lenient events are read by
    /// calls until there is none.
    pub fn end(&mut self) -> Option<String> {
        if !self.line.is_empty()
            && let Some(before) = self.end_line()
        {
            return Some(before);
        }
        self.dispatch()
    }

    fn end_line(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.line);
        let mut line = line.as_slice();
        if !std::mem::replace(&mut self.has_begun, true) {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if self.is_lenient {
            line = line.trim_ascii_start();
        }
        if line.is_empty() {
            return self.dispatch();
        }
        // Other fields, and comments that keep the connection alive, say nothing to us.
        if let Some(data) = line.strip_prefix(b"data:") {
            return self.add(data.strip_prefix(b" ").unwrap_or(data));
        }
        if let Some(id) = line.strip_prefix(b"id:").filter(|id| !id.contains(&0)) {
            let id = id.strip_prefix(b" ").unwrap_or(id);
            self.last_id = Some(String::from_utf8_lossy(id).into_owned());
        }
        if let Some(ms) = line.strip_prefix(b"retry:") {
            let ms = std::str::from_utf8(ms.trim_ascii()).ok();
            let is_digits = |ms: &&str| ms.bytes().all(|byte| byte.is_ascii_digit());
            self.retry =
                ms.filter(is_digits).and_then(|ms| ms.parse().ok()).map(Duration::from_millis).or(self.retry);
        }
        if self.is_lenient {
            if let Some(name) = line.strip_prefix(b"event:") {
                self.is_error = name.trim_ascii() == b"error";
            } else if let Some(error) = line.strip_prefix(b"error:") {
                // llama.cpp writes failures in a field of their own.
                self.is_error = true;
                return self.add(error.trim_ascii());
            } else if line.starts_with(b"{") {
                return self.add(line);
            }
        }
        None
    }

    /// Adds a line of data. Returns the event before it, where the empty line between them was left out.
    fn add(&mut self, data: &[u8]) -> Option<String> {
        let begins = data.starts_with(b"{") || data.starts_with(b"[DONE]");
        let is_whole = self.data.ends_with(b"}") && self.data.starts_with(b"{");
        let before =
            if self.is_lenient && self.has_data && is_whole && begins { self.dispatch() } else { None };
        if std::mem::replace(&mut self.has_data, true) {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(data);
        before
    }

    fn dispatch(&mut self) -> Option<String> {
        let data = std::mem::take(&mut self.data);
        let (has_data, is_error) = (std::mem::take(&mut self.has_data), std::mem::take(&mut self.is_error));
        let data = has_data.then(|| String::from_utf8_lossy(&data).into_owned())?;
        // The words of a failure, where they are no object.
        let is_text = is_error && !data.trim_start().starts_with('{');
        Some(if is_text { serde_json::json!({ "error": data }).to_string() } else { data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = ": hello\r\n\r\ndata: {\"a\":\"ü日\"}\n\nevent: x\ndata:one\r\ndata: two\r\n\r\nid: 7\n\ndata\n\ndata: [DONE]";

    fn read(pieces: impl Iterator<Item = Vec<u8>>) -> Vec<String> {
        let mut events = Events::default();
        let mut all: Vec<String> = pieces.flat_map(|piece| events.push(&piece).unwrap()).collect();
        all.extend(events.end());
        assert_eq!(events.end(), None);
        all
    }

    #[test]
    fn events_are_the_same_however_the_bytes_are_cut() {
        let expected = ["{\"a\":\"ü日\"}", "one\ntwo", "[DONE]"];
        for n in 1..STREAM.len() {
            let pieces = STREAM.as_bytes().chunks(n).map(<[u8]>::to_vec);
            assert_eq!(read(pieces), expected, "pieces of {n}");
        }
    }

    #[test]
    fn the_last_id_is_kept() {
        let mut events = Events::default();
        for (bytes, expected) in [
            ("data: x\n\n", None),
            ("id: 7\ndata: y\n\n", Some("7")),
            ("data: z\n\n", Some("7")),
            ("id:8\n", Some("8")),
        ] {
            events.push(bytes.as_bytes()).unwrap();
            assert_eq!(events.last_id(), expected, "{bytes:?}");
        }
    }

    #[test]
    fn the_last_time_to_wait_is_kept() {
        let mut events = Events::default();
        for (bytes, expected) in [
            ("retry: soon\n", None),
            ("retry: 250\ndata: x\n\n", Some(250)),
            ("retry:-1\nretry: 1e3\nretry: 99999999999999999999999\n", Some(250)),
            ("retry:0\n", Some(0)),
        ] {
            events.push(bytes.as_bytes()).unwrap();
            assert_eq!(events.retry(), expected.map(Duration::from_millis), "{bytes:?}");
        }
    }

    fn check_lenient(stream: &str, expected: &[&str]) {
        for n in 1..=stream.len() {
            let mut events = Events::lenient();
            let pieces = stream.as_bytes().chunks(n);
            let mut got: Vec<String> = pieces.flat_map(|piece| events.push(piece).unwrap()).collect();
            got.extend(std::iter::from_fn(|| events.end()));
            assert_eq!(got, expected, "{stream:?} by {n}");
        }
    }

    #[test]
    fn what_servers_write_beside_the_specification_is_read() {
        check_lenient("\u{feff}data: {\"a\":1}\n\n", &["{\"a\":1}"]);
        check_lenient(
            "data: {\"a\":1}\ndata: {\"b\":2}\ndata: [DONE]\n",
            &["{\"a\":1}", "{\"b\":2}", "[DONE]"],
        );
        check_lenient("data: {\"a\":\ndata: 1}\n\n", &["{\"a\":\n1}"]);
        check_lenient(
            "data: {\"a\":1}\n\nerror: {\"message\":\"no\"}\n\n",
            &["{\"a\":1}", "{\"message\":\"no\"}"],
        );
        check_lenient("error: out of memory\n\n", &["{\"error\":\"out of memory\"}"]);
        check_lenient(
            "event: error\ndata: out of memory\n\ndata: x\n\n",
            &["{\"error\":\"out of memory\"}", "x"],
        );
        check_lenient("{\"a\":1}\n{\"b\":2}\n", &["{\"a\":1}", "{\"b\":2}"]);
        check_lenient(" data: x\n\nid: 1\nretry: 5\n\n: alive\n\n", &["x"]);
        let mut strict = Events::default();
        assert!(strict.push(b"{\"a\":1}\n\nerror: x\n\n").unwrap().is_empty());
    }

    #[test]
    fn a_byte_order_mark_belongs_to_no_event() {
        let stream = "\u{feff}data: one\n\ndata: \u{feff}two\n\n";
        assert_eq!(read(std::iter::once(stream.as_bytes().to_vec())), ["one", "\u{feff}two"]);
    }

    #[test]
    fn any_bytes_are_read_without_harm() {
        let mut seed = 1_u64;
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize
        };
        for _ in 0..2000 {
            let letters = b"data: \r\n\n{}\xff\xe6:";
            let bytes: Vec<u8> = (0..next() % 64).map(|_| letters[next() % letters.len()]).collect();
            read(bytes.chunks(1 + next() % 7).map(<[u8]>::to_vec));
        }
    }

    #[test]
    fn what_never_ends_is_refused() {
        let mut events = Events::default();
        let piece = vec![b'x'; 1 << 20];
        let outcome = (0..9).map(|_| events.push(&piece)).find(Result::is_err);
        assert_eq!(outcome, Some(Err(TooLong)));
        let mut events = Events::default();
        let line = [b"data: ".as_slice(), &piece, b"\n"].concat();
        assert!((0..9).any(|_| events.push(&line).is_err()), "lines of one event count together");
    }
}
