//! Keys as terminals send them: characters, control characters, and the escape sequences of xterm.

use std::io::{self, Read};

/// What a person pressed, or pasted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditKey {
    Char(char),
    /// Text between the marks of a paste.
    Paste(String),
    Enter,
    /// A line break inside the text.
    NewLine,
    Left,
    Right,
    WordLeft,
    WordRight,
    Up,
    Down,
    Home,
    End,
    Backspace,
    Delete,
    DeleteWord,
    DeleteToStart,
    DeleteToEnd,
    Redraw,
    /// Ctrl+C.
    Interrupt,
    /// Ctrl+D: deletes, or ends the input where nothing is written.
    EndOfInput,
    Other,
}

const ESCAPE: u8 = 0x1b;
const PASTE_END: &[u8] = b"\x1b[201~";

/// A longer escape sequence is none.
const MAX_SEQUENCE_BYTES: usize = 32;

/// Reads a key. `None`: the input has ended. `max_bytes`: of pasted text.
///
/// Errors: the input can't be read, or a paste is longer.
pub fn read_key(input: &mut impl Read, max_bytes: usize) -> io::Result<Option<EditKey>> {
    let Some(first) = next(input)? else { return Ok(None) };
    let key = match first {
        ESCAPE => return escape(input, max_bytes),
        b'\r' | b'\n' => EditKey::Enter,
        1 => EditKey::Home,
        2 => EditKey::Left,
        3 => EditKey::Interrupt,
        4 => EditKey::EndOfInput,
        5 => EditKey::End,
        6 => EditKey::Right,
        8 | 0x7f => EditKey::Backspace,
        11 => EditKey::DeleteToEnd,
        12 => EditKey::Redraw,
        14 => EditKey::Down,
        16 => EditKey::Up,
        21 => EditKey::DeleteToStart,
        23 => EditKey::DeleteWord,
        b'\t' => EditKey::Char('\t'),
        0..=31 => EditKey::Other,
        _ => EditKey::Char(character(first, input)?),
    };
    Ok(Some(key))
}

fn next(input: &mut impl Read) -> io::Result<Option<u8>> {
    let mut byte = [0];
    loop {
        match input.read(&mut byte) {
            Ok(0) => return Ok(None),
            Ok(_) => return Ok(Some(byte[0])),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The character that begins with this byte; U+FFFD where it is no UTF-8.
fn character(first: u8, input: &mut impl Read) -> io::Result<char> {
    let n_more = match first {
        0xc0..=0xdf => 1,
        0xe0..=0xef => 2,
        0xf0..=0xf7 => 3,
        _ => 0,
    };
    let mut bytes = vec![first];
    for _ in 0..n_more {
        bytes.extend(next(input)?);
    }
    let text = std::str::from_utf8(&bytes).ok();
    Ok(text.and_then(|text| text.chars().next()).unwrap_or('\u{fffd}'))
}

fn escape(input: &mut impl Read, max_bytes: usize) -> io::Result<Option<EditKey>> {
    let Some(second) = next(input)? else { return Ok(None) };
    let key = match second {
        b'[' | b'O' => return sequence(input, max_bytes),
        b'b' => EditKey::WordLeft,
        b'f' => EditKey::WordRight,
        b'\r' | b'\n' => EditKey::NewLine,
        8 | 0x7f => EditKey::DeleteWord,
        _ => EditKey::Other,
    };
    Ok(Some(key))
}

fn sequence(input: &mut impl Read, max_bytes: usize) -> io::Result<Option<EditKey>> {
    let mut parameters = String::new();
    let last = loop {
        match next(input)? {
            None => return Ok(None),
            Some(byte @ (b'0'..=b'9' | b';' | b'?')) if parameters.len() < MAX_SEQUENCE_BYTES => {
                parameters.push(char::from(byte));
            }
            Some(byte) => break byte,
        }
    };
    // With Ctrl or Alt.
    let by_word = parameters.ends_with(";5") || parameters.ends_with(";3");
    let key = match (last, parameters.as_str()) {
        (b'A', _) => EditKey::Up,
        (b'B', _) => EditKey::Down,
        (b'C', _) if by_word => EditKey::WordRight,
        (b'C', _) => EditKey::Right,
        (b'D', _) if by_word => EditKey::WordLeft,
        (b'D', _) => EditKey::Left,
        (b'H', _) | (b'~', "1" | "7") => EditKey::Home,
        (b'F', _) | (b'~', "4" | "8") => EditKey::End,
        (b'~', "3") => EditKey::Delete,
        (b'~', "200") => return paste(input, max_bytes).map(|text| Some(EditKey::Paste(text))),
        _ => EditKey::Other,
    };
    Ok(Some(key))
}

/// Reads up to the mark that ends a paste, or the end of the input. Line breaks become `\n`.
fn paste(input: &mut impl Read, max_bytes: usize) -> io::Result<String> {
    let mut bytes = Vec::new();
    while let Some(byte) = next(input)? {
        bytes.push(byte);
        if bytes.ends_with(PASTE_END) {
            bytes.truncate(bytes.len() - PASTE_END.len());
            break;
        }
        if bytes.len() > max_bytes {
            return Err(io::Error::other(format!("the pasted text has more than {max_bytes} bytes")));
        }
    }
    Ok(String::from_utf8_lossy(&bytes).replace("\r\n", "\n").replace('\r', "\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(mut bytes: &[u8]) -> Vec<EditKey> {
        std::iter::from_fn(|| read_key(&mut bytes, 100).unwrap()).collect()
    }

    #[test]
    fn what_terminals_send_is_understood() {
        assert_eq!(keys("aé日😀".as_bytes()), ['a', 'é', '日', '😀'].map(EditKey::Char));
        for (bytes, key) in [
            (&b"\x1b[A"[..], EditKey::Up),
            (b"\x1bOB", EditKey::Down),
            (b"\x1b[1;5C", EditKey::WordRight),
            (b"\x1b[1;3D", EditKey::WordLeft),
            (b"\x1bb", EditKey::WordLeft),
            (b"\x1b[D", EditKey::Left),
            (b"\x1b[H", EditKey::Home),
            (b"\x1b[4~", EditKey::End),
            (b"\x1b[3~", EditKey::Delete),
            (b"\x1b\r", EditKey::NewLine),
            (b"\r", EditKey::Enter),
            (b"\x03", EditKey::Interrupt),
            (b"\x04", EditKey::EndOfInput),
            (b"\x7f", EditKey::Backspace),
            (b"\x1b[99;99X", EditKey::Other),
            (b"\x07", EditKey::Other),
            (b"\x1b[200~one\r\ntwo\x1b[A\rthree\x1b[201~", EditKey::Paste("one\ntwo\x1b[A\nthree".into())),
            (b"\xff", EditKey::Char('\u{fffd}')),
        ] {
            assert_eq!(keys(bytes), [key], "{bytes:?}");
        }
        assert!(keys(b"\x1b[").is_empty() && keys(b"").is_empty(), "the input ended");
    }

    #[test]
    fn a_paste_is_bounded() {
        let mut bytes = [b"\x1b[200~".as_slice(), &[b'x'; 200]].concat();
        assert!(read_key(&mut bytes.as_slice(), 100).is_err());
        bytes.truncate(50);
        assert!(read_key(&mut bytes.as_slice(), 100).is_ok());
    }
}
