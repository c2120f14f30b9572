//! Moves an encryption dictionary that stands in the trailer itself, as MuPDF writes it, into a separate object:
//! the parser looks for it only there. The change is appended as PDF appends changes; nothing before it moves.

/// The trailer's other entries stand at most so far from its encryption. Bytes.
const NEAR: usize = 4096;

/// Longest encryption dictionary; real ones have less than 2 kB.
const MAX_DICTIONARY_BYTES: usize = 64 << 10;

/// The file with its encryption in an object. None: there is nothing to move.
pub fn with_encryption_object(bytes: &[u8]) -> Option<Vec<u8>> {
    let (key, start) = direct_encryption(bytes)?;
    let end = start + dictionary_bytes(&bytes[start..])?;
    let trailer = &bytes[key.saturating_sub(NEAR)..(end + NEAR).min(bytes.len())];
    let value = |name: &[u8]| {
        let at = rfind(trailer, name)? + name.len();
        trailer.get(at..).map(<[u8]>::trim_ascii_start)
    };
    let digits = |text: &[u8]| {
        let n = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        std::str::from_utf8(&text[..n]).ok()?.parse::<u32>().ok()
    };
    let root = digits(value(b"/Root")?)?;
    let id = value(b"/ID").filter(|id| id.first() == Some(&b'[')).map_or(&b""[..], |id| {
        let n = id.iter().position(|byte| *byte == b']').map_or(0, |n| n + 1);
        &id[..n]
    });
    let size = digits(value(b"/Size")?)?;
    let previous = digits(bytes.get(rfind(bytes, b"startxref")? + 9..)?.trim_ascii_start())?;
    let mut file = bytes.to_vec();
    file.extend(b"\n");
    let object = file.len();
    file.extend(format!("{size} 0 obj\n").bytes());
    file.extend(&bytes[start..end]);
    file.extend(b"\nendobj\n");
    let table = file.len();
    let trailer = format!(
        "xref\n{size} 1\n{object:010} 00000 n \ntrailer\n<</Size {}/Root {root} 0 R/Prev {previous}/Encrypt {size} 0 R/ID ",
        size.checked_add(1)?
    );
    file.extend(trailer.bytes());
    file.extend(if id.is_empty() { b"[()()]" } else { id });
    file.extend(format!(">>\nstartxref\n{table}\n%%EOF\n").bytes());
    Some(file)
}

/// Where the last `/Encrypt` with a dictionary behind it stands, and that dictionary.
fn direct_encryption(bytes: &[u8]) -> Option<(usize, usize)> {
    const KEY: &[u8] = b"/Encrypt";
    let mut end = bytes.len();
    while let Some(at) = rfind(&bytes[..end], KEY) {
        let value = bytes[at + KEY.len()..].trim_ascii_start();
        match value {
            [b'<', b'<', ..] => return Some((at, bytes.len() - value.len())),
            // the last trailer refers to an object
            [b'0'..=b'9', ..] => return None,
            _ => end = at,
        }
    }
    None
}

/// Length of the dictionary at the front, up to its own end.
fn dictionary_bytes(bytes: &[u8]) -> Option<usize> {
    let bytes = &bytes[..bytes.len().min(MAX_DICTIONARY_BYTES)];
    let (mut at, mut level) = (0, 0_usize);
    loop {
        match bytes.get(at..)? {
            [b'<', b'<', ..] => {
                level += 1;
                at += 2;
            }
            [b'>', b'>', ..] => {
                level = level.checked_sub(1)?;
                at += 2;
                if level == 0 {
                    return Some(at);
                }
            }
            [b'<', rest @ ..] => at += 2 + rest.iter().position(|byte| *byte == b'>')?,
            [b'(', rest @ ..] => at += 1 + string_bytes(rest)?,
            [_, ..] => at += 1,
            [] => return None,
        }
    }
}

/// Length of what follows the opening parenthesis of a string, with the closing one.
fn string_bytes(bytes: &[u8]) -> Option<usize> {
    let (mut at, mut level) = (0, 1_usize);
    while level > 0 {
        match bytes.get(at)? {
            b'\\' => at += 1,
            b'(' => level += 1,
            b')' => level -= 1,
            _ => {}
        }
        at += 1;
    }
    Some(at)
}

fn rfind(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).rposition(|at| at == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dictionaries_end_where_they_end() {
        for (text, expected) in [
            ("<</O<AB>/U<CD>>>>>", Some(16)),
            (r"<</O((a)>>\))/P -4>> rest", Some(20)),
            ("<</CF<</A<</B 1>>>>/U<00>>>>>", Some(27)),
            ("<</O<AB", None),
            ("<</O(", None),
            ("", None),
        ] {
            assert_eq!(dictionary_bytes(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn only_encryption_in_the_trailer_is_moved() {
        let plain = b"trailer<</Size 3/Root 1 0 R/Encrypt 2 0 R>>\nstartxref\n9\n%%EOF";
        let damaged = b"trailer<</Size 3/Encrypt<</O(";
        for file in [plain.as_slice(), damaged, b"/Encrypt", b""] {
            assert_eq!(with_encryption_object(file), None);
        }
        let file =
            b"trailer<</Size 3/Root 1 0 R/Encrypt<</EncryptMetadata true/P -4>>>>\nstartxref\n9\n%%EOF";
        let moved = String::from_utf8(with_encryption_object(file).unwrap()).unwrap();
        let (_, added) = moved.split_at(file.len() + 1);
        let expected = "3 0 obj\n<</EncryptMetadata true/P -4>>\nendobj\nxref\n3 1\n0000000086 00000 n \ntrailer\n\
            <</Size 4/Root 1 0 R/Prev 9/Encrypt 3 0 R/ID [()()]>>\nstartxref\n132\n%%EOF\n";
        assert_eq!(added, expected);
    }
}
