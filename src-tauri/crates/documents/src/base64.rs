//! Base64, as web pages send files.

/// None: it is none.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=');
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    let (mut word, mut n_bits) = (0_u32, 0);
    for letter in text.bytes() {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        word = word << 6 | u32::from(value);
        n_bits += 6;
        if n_bits >= 8 {
            n_bits -= 8;
            bytes.push((word >> n_bits) as u8);
        }
    }
    // A single letter at the end is no byte.
    (n_bits < 6).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn known_answers() {
        for (text, expected) in [
            ("", &b""[..]),
            ("Zg==", b"f"),
            ("Zm8=", b"fo"),
            ("Zm9v", b"foo"),
            ("Zm9vYmE=", b"fooba"),
            ("AP//", &[0, 255, 255]),
        ] {
            assert_eq!(decode(text).as_deref(), Some(expected), "{text}");
        }
        for text in ["Zg=a", "Z", "Zm 9v", "é"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
