//! Finds the encoding of a text and decodes it: by its mark, its declaration, or its bytes.
//!
//! Guarantees that no control character is in the result that texts do not have: U+FFFD takes its place.

mod declared;
mod legacy;
mod unicode;

use encoding_rs::{Encoding, ISO_2022_JP, UTF_8};

/// One odd character per this many is tolerated. Compressed data has one in nine, programs more.
const MIN_CHARS_PER_ODD: usize = 20;

/// Multi-byte sequences that make a valid UTF-8 text certain, whatever an old declaration says.
const CERTAIN_SEQUENCES: usize = 4;

/// A decoded text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodedText {
    /// The text, without a byte order mark.
    pub text: String,
    /// Name of the encoding, if it was guessed or something was replaced.
    pub guessed: Option<&'static str>,
}

/// How the encoding is known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Basis {
    /// By a mark, a declaration, or as the bytes are valid UTF-8.
    Stated,
    Guess,
}

/// Decodes the bytes of a file. `name` tells which declarations to look for. None: this is no text.
pub fn decode(name: &str, bytes: &[u8]) -> Option<DecodedText> {
    by_mark(bytes)
        .or_else(|| by_declaration(name, bytes))
        .or_else(|| plain_utf8(bytes))
        .or_else(|| guessed(unicode::utf32(bytes)?))
        .or_else(|| guessed(unicode::utf16_by_zeros(bytes)?))
        .or_else(|| guessed((unicode::damaged_utf8(bytes)?, UTF_8.name())))
        .or_else(|| guessed(unicode::utf16_by_letters(bytes)?))
        .or_else(|| guessed(legacy::decode(bytes)?))
}

fn by_mark(bytes: &[u8]) -> Option<DecodedText> {
    if let Some(text) = unicode::marked_utf32(bytes) {
        return finished(text, "UTF-32", Basis::Stated);
    }
    let (encoding, n_bytes) = Encoding::for_bom(bytes)?;
    let (text, _) = encoding.decode_without_bom_handling(&bytes[n_bytes..]);
    finished(text.into_owned(), encoding.name(), Basis::Stated)
}

/// A declaration wins over any guess, unless the bytes are evidently something else.
fn by_declaration(name: &str, bytes: &[u8]) -> Option<DecodedText> {
    let encoding = declared::encoding(name, bytes)?;
    let n_sequences =
        || std::str::from_utf8(bytes).map_or(0, |text| text.chars().filter(is_not_ascii).count());
    let is_plain = encoding == UTF_8 || bytes.is_ascii() && encoding != ISO_2022_JP;
    if is_plain || n_sequences() >= CERTAIN_SEQUENCES {
        return None;
    }
    let (text, _) = encoding.decode_without_bom_handling(bytes);
    let (n_other, n_wrong) = (text.chars().filter(is_not_ascii).count(), text.matches('\u{fffd}').count());
    if n_wrong * MIN_CHARS_PER_ODD > n_other {
        None
    } else {
        finished(text.into_owned(), encoding.name(), Basis::Stated)
    }
}

/// Valid UTF-8, unless its escapes are those of ISO-2022-JP.
fn plain_utf8(bytes: &[u8]) -> Option<DecodedText> {
    let text = std::str::from_utf8(bytes).ok().filter(|_| !bytes.contains(&0))?;
    if bytes.contains(&0x1b) {
        let (japanese, had_errors) = ISO_2022_JP.decode_without_bom_handling(bytes);
        if !had_errors && !japanese.is_ascii() {
            return finished(japanese.into_owned(), ISO_2022_JP.name(), Basis::Guess);
        }
    }
    finished(text.to_owned(), UTF_8.name(), Basis::Stated)
}

fn guessed((text, name): (String, &'static str)) -> Option<DecodedText> {
    finished(text, name, Basis::Guess)
}

/// Replaces odd characters. None: too many.
fn finished(mut text: String, name: &'static str, basis: Basis) -> Option<DecodedText> {
    if text.ends_with('\u{1a}') {
        text.pop(); // the end of a file under DOS
    }
    let (mut n_chars, mut n_odd, mut n_replaced) = (0, 0, 0);
    // A cut in the last character is no sign of a program.
    for c in text.strip_suffix('\u{fffd}').unwrap_or(&text).chars() {
        n_chars += 1;
        n_replaced += usize::from(is_odd(c) && c != '\u{fffd}');
        // Backspaces strike over, in manual pages: they are many, and no sign of a program.
        n_odd += usize::from(is_odd(c) && c != '\u{8}');
    }
    if n_odd * MIN_CHARS_PER_ODD > n_chars {
        return None;
    }
    if n_replaced > 0 {
        text = text.chars().map(|c| if is_odd(c) { '\u{fffd}' } else { c }).collect();
    }
    let is_told = n_replaced > 0 || basis == Basis::Guess;
    Some(DecodedText { text, guessed: is_told.then_some(name) })
}

/// A character that texts do not have.
fn is_odd(c: char) -> bool {
    let is_layout = matches!(c, '\t' | '\n' | '\u{b}' | '\u{c}' | '\r' | '\u{1b}' | '\u{85}');
    (c.is_control() && !is_layout) || c == '\u{fffd}'
}

fn is_not_ascii(c: &char) -> bool {
    !c.is_ascii()
}

#[cfg(test)]
mod tests;
