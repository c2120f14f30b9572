//! Base64 with padding (RFC 4648, section 4).

pub use documents::base64::encode;

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Reads Base64. `None`: the text is none, or its padding is wrong.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let body = text.trim_end_matches('=');
    if !text.len().is_multiple_of(4) || text.len() - body.len() > 2 || body.len() % 4 == 1 {
        return None;
    }
    let mut bytes = Vec::with_capacity(body.len() * 3 / 4);
    let (mut bits, mut n_bits) = (0_u32, 0);
    for digit in body.bytes() {
        let value = DIGITS.iter().position(|&known| known == digit)?;
        bits = bits << 6 | u32::try_from(value).ok()?;
        n_bits += 6;
        if n_bits >= 8 {
            n_bits -= 8;
            bytes.push((bits >> n_bits) as u8);
            bits &= (1 << n_bits) - 1;
        }
    }
    (bits == 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_vectors_of_rfc_4648() {
        let cases = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (plain, coded) in cases {
            assert_eq!(encode(plain.as_bytes()), coded);
            assert_eq!(decode(coded).as_deref(), Some(plain.as_bytes()));
        }
        for wrong in ["Zg", "Zg=", "Zm8", "Z===", "Zm9!", "Zh==", "Zm9v====", "=Zg="] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
        assert_eq!(decode("//8=").as_deref(), Some(&[255, 255][..]));
    }
}
