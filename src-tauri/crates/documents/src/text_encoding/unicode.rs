//! Unicode without a mark, or damaged: UTF-8 with stray bytes, UTF-16 and UTF-32.

use encoding_rs::{UTF_16BE, UTF_16LE};

/// Of a file that is looked at to see what it is.
const HEAD_BYTES: usize = 64 << 10;

/// A Western text in UTF-16 has at least one zero per this many bytes.
const MAX_BYTES_PER_ZERO: usize = 8;

/// Of a text without multi-byte sequences: one broken one per this many bytes is tolerated.
const MIN_BYTES_PER_CUT: usize = 100;

/// Bytes that no Western text has by itself: `ÿ`, `þ`, and what windows-1252 leaves undefined.
const STRAYS: [u8; 7] = [0xff, 0xfe, 0x81, 0x8d, 0x8f, 0x90, 0x9d];

/// Text and name of an encoding.
pub type NamedText = (String, &'static str);

/// UTF-8 with stray or missing bytes, each replaced by U+FFFD. None: more likely something else.
pub fn damaged_utf8(bytes: &[u8]) -> Option<String> {
    let (mut evidence, mut n_wrong, mut n_cut) = (0_usize, 0_usize, 0_usize);
    for chunk in bytes.utf8_chunks() {
        // Legacy texts have some sequences of two bytes by accident, and hardly longer ones.
        let weight = |c: char| [0, 1, 3, 3][c.len_utf8() - 1];
        evidence += chunk.valid().chars().map(weight).sum::<usize>();
        match chunk.invalid() {
            [] => {}
            [byte] if !STRAYS.contains(byte) => n_wrong += 1,
            _ => n_cut += 1,
        }
    }
    let is_utf8 = match evidence {
        0 => n_wrong == 0 && n_cut * MIN_BYTES_PER_CUT <= bytes.len(),
        _ => evidence >= 2 * n_wrong,
    };
    is_utf8.then(|| String::from_utf8_lossy(bytes).into_owned())
}

/// UTF-32 with a byte order mark.
pub fn marked_utf32(bytes: &[u8]) -> Option<String> {
    match bytes {
        [0xff, 0xfe, 0, 0, rest @ ..] => scalars(rest, u32::from_le_bytes),
        [0, 0, 0xfe, 0xff, rest @ ..] => scalars(rest, u32::from_be_bytes),
        _ => None,
    }
}

/// UTF-32 without a mark: every group of four bytes is a character.
pub fn utf32(bytes: &[u8]) -> Option<NamedText> {
    let head = &bytes[..bytes.len().min(HEAD_BYTES)];
    let named = |read: fn([u8; 4]) -> u32, name| {
        scalars(head, read)?;
        Some((scalars(bytes, read)?, name))
    };
    named(u32::from_le_bytes, "UTF-32LE").or_else(|| named(u32::from_be_bytes, "UTF-32BE"))
}

fn scalars(bytes: &[u8], read: fn([u8; 4]) -> u32) -> Option<String> {
    let (groups, rest) = bytes.as_chunks::<4>();
    let scalar = |group: &[u8; 4]| char::from_u32(read(*group)).filter(|c| *c != '\0');
    if rest.is_empty() { groups.iter().map(scalar).collect() } else { None }
}

/// UTF-16 without a mark: zeros in every second byte of Western texts.
pub fn utf16_by_zeros(bytes: &[u8]) -> Option<NamedText> {
    let head = &bytes[..bytes.len().min(HEAD_BYTES)];
    let zeros = |odd: usize| head.iter().skip(odd).step_by(2).filter(|byte| **byte == 0).count();
    let many = head.len() / MAX_BYTES_PER_ZERO;
    let encoding = match (zeros(0), zeros(1)) {
        (first, second) if first > many && second * 8 < first => UTF_16BE,
        (first, second) if second > many && first * 8 < second => UTF_16LE,
        _ => return None,
    };
    Some((encoding.decode_without_bom_handling(bytes).0.into_owned(), encoding.name()))
}

/// UTF-16 without a mark, of other scripts: a zero beside each space and line break, and letters that belong together.
pub fn utf16_by_letters(bytes: &[u8]) -> Option<NamedText> {
    let head = &bytes[..bytes.len().min(HEAD_BYTES)];
    if !head.contains(&0) {
        return None;
    }
    let readings = [UTF_16LE, UTF_16BE].into_iter().filter_map(|encoding| {
        let (text, _) = encoding.decode_without_bom_handling(head);
        let (n_chars, n_familiar) = (text.chars().count(), text.chars().filter(|c| is_familiar(*c)).count());
        let n_ascii = text.chars().filter(char::is_ascii).count();
        (n_familiar * 10 >= n_chars * 9 && !text.contains('\0')).then_some((n_ascii, encoding))
    });
    // Read the wrong way round, spaces and line breaks are something else.
    let (_, encoding) = readings.max_by_key(|(n_ascii, _)| *n_ascii)?;
    Some((encoding.decode_without_bom_handling(bytes).0.into_owned(), encoding.name()))
}

/// In a script that files are written in, or its punctuation.
fn is_familiar(c: char) -> bool {
    match u32::from(c) {
        0x09 | 0x0a | 0x0d | 0x20..=0x7e => true,
        0xa0..=0xff | 0x2010..=0x2027 | 0x2030..=0x203a | 0x20a0..=0x20bf => true,
        0x2190..=0x21ff | 0x2460..=0x25ff | 0x3000..=0x30ff | 0xff01..=0xffee => true,
        0x100..=0x24f | 0x370..=0x6ff | 0x900..=0xeff | 0x10a0..=0x10ff | 0x1e00..=0x1fff => {
            c.is_alphanumeric()
        }
        0x4e00..=0x9fff | 0xac00..=0xd7a3 | 0x1f300..=0x1faff | 0x20000..=0x3ffff => true,
        _ => false,
    }
}
