//! Text strings of a PDF outside of pages: values of fields, names, notes.

use encoding_rs::{UTF_16BE, UTF_16LE};
use lopdf::{Document, Object, decode_text_string};

use super::streams;

/// Longest text of a field or note. Bytes.
const MAX_BYTES: usize = 1 << 20;

/// A string or a stream as text, lines ended by `\n`.
pub fn text(document: &Document, object: &Object) -> Option<String> {
    match document.dereference(object).ok()?.1 {
        Object::String(bytes, _) => decoded(bytes),
        Object::Stream(stream) => decoded(&streams::unpack(document, stream, MAX_BYTES)?),
        _ => None,
    }
}

fn decoded(bytes: &[u8]) -> Option<String> {
    let bytes = &bytes[..bytes.len().min(MAX_BYTES)];
    let text = match bytes {
        [0xFE, 0xFF, rest @ ..] => UTF_16BE.decode_without_bom_handling(rest).0.into_owned(),
        [0xFF, 0xFE, rest @ ..] => UTF_16LE.decode_without_bom_handling(rest).0.into_owned(),
        [0xEF, 0xBB, 0xBF, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        bytes => decode_text_string(&Object::string_literal(bytes)).ok()?,
    };
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    Some(text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_come_in_three_encodings() {
        let cases: &[(&[u8], &str)] = &[
            (b"caf\xe9 \xa0 \x80", "café € •"),
            (b"\xfe\xff\x4e\x2d\0\r\0A", "中\nA"),
            (b"\xff\xfeA\0", "A"),
            (b"\xef\xbb\xbf\xe4\xb8\xad", "中"),
            (b"a\r\nb\rc\0", "a\nb\nc"),
        ];
        for (bytes, expected) in cases {
            let object = Object::string_literal(*bytes);
            assert_eq!(text(&Document::new(), &object).as_deref(), Some(*expected), "{bytes:?}");
        }
    }
}
