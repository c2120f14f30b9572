//! Parses server-sent events from chunks of bytes: split anywhere, with any line end. Bounded: an
//! endless line is an error, not memory.

/// Longest event: a piece of an answer has a few hundred bytes, an answer sent as one a few hundred thousand.
const MAX_EVENT_BYTES: usize = 8 << 20;

/// What has come and is not whole yet.
#[derive(Debug, Default)]
pub struct Events {
    /// Bytes of a line whose end has not come.
    line: Vec<u8>,
    /// The last line ended with `\r`: a `\n` that follows belongs to it.
    after_return: bool,
    /// Data lines of an event whose end has not come.
    data: Vec<u8>,
    has_data: bool,
}

/// An event that is longer than any may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

impl Events {
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

    /// The bytes have ended: an event whose empty line was left out counts all the same.
    pub fn end(&mut self) -> Option<String> {
        if !self.line.is_empty() {
            self.end_line();
        }
        self.end_line()
    }

    fn end_line(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            let has_data = std::mem::take(&mut self.has_data);
            return has_data.then(|| String::from_utf8_lossy(&data).into_owned());
        }
        // Other fields, and comments that keep the connection alive, say nothing to us.
        if let Some(data) = line.strip_prefix(b"data:") {
            if std::mem::replace(&mut self.has_data, true) {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
        }
        None
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
