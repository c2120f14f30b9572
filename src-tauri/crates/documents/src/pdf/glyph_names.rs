//! What the names of glyphs mean as text, by the Adobe Glyph List and its rules for names that it lacks.
//! Guarantees bounded work per name.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Raw deflate of lines `name;HEX[ HEX…]`; `data/make_glyph_names.py` makes it.
const PACKED: &[u8] = include_bytes!("../../data/glyph_names.deflate");

/// The table unpacks to some 80 kB.
const MAX_TABLE_BYTES: usize = 1 << 20;

/// Longer names are no names. Bytes.
const MAX_NAME_BYTES: usize = 128;

static TABLE: LazyLock<HashMap<String, String>> = LazyLock::new(|| {
    let bytes = miniz_oxide::inflate::decompress_to_vec_with_limit(PACKED, MAX_TABLE_BYTES);
    let text = bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
    let entries = text.lines().filter_map(|line| {
        let (name, codes) = line.split_once(';')?;
        let text: Option<String> = codes.split(' ').map(scalar).collect();
        Some((name.to_owned(), text?))
    });
    entries.collect()
});

/// The text of a glyph's name. `is_dingbats`: names are those of Zapf Dingbats first. None: the name says nothing.
pub fn text_of(name: &[u8], is_dingbats: bool) -> Option<String> {
    let name = std::str::from_utf8(name).ok().filter(|name| name.len() <= MAX_NAME_BYTES)?;
    if is_dingbats && let Some(text) = TABLE.get(&format!("!{name}")) {
        return Some(text.clone());
    }
    // `a.alt` is a form of `a`, and `f_i` are `f` and `i`
    let base = name.split('.').next().filter(|base| !base.is_empty())?;
    let parts = base.split('_').map(component);
    let text = parts.collect::<Option<String>>().or_else(|| component(base))?;
    Some(text).filter(|text| !text.is_empty())
}

fn component(name: &str) -> Option<String> {
    if let Some(text) = TABLE.get(name) {
        return Some(text.clone());
    }
    if let Some(hex) = name.strip_prefix("uni").filter(|hex| hex.len() >= 4 && hex.len() % 4 == 0) {
        let units: Option<Vec<u16>> =
            (0..hex.len()).step_by(4).map(|at| u16::from_str_radix(hex.get(at..at + 4)?, 16).ok()).collect();
        return String::from_utf16(&units?).ok();
    }
    let hex = name.strip_prefix('u').filter(|hex| (4..=6).contains(&hex.len()))?;
    scalar(hex).map(String::from)
}

fn scalar(hex: &str) -> Option<char> {
    char::from_u32(u32::from_str_radix(hex, 16).ok()?)
}

/// Names that only number glyphs, as subsetting programs write them: `g12`, `cid00012`, `glyph7`, `index3`, `G41`.
/// The letters before the number, and the number.
pub fn numbered(name: &[u8]) -> Option<(&str, u32)> {
    let name = std::str::from_utf8(name).ok()?;
    let name = name.split('.').next()?;
    let at = name.find(|c: char| c.is_ascii_digit())?;
    let (prefix, digits) = name.split_at(at);
    let is_prefix = prefix.len() <= 6 && prefix.chars().all(|c| c.is_ascii_alphabetic());
    let number = digits.parse().ok().filter(|number| *number <= 0xFFFF)?;
    is_prefix.then_some((prefix, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_by_list_and_by_rule() {
        let cases: &[(&str, Option<&str>)] = &[
            ("A", Some("A")),
            ("eacute", Some("é")),
            ("afii10017", Some("А")),
            ("dalethatafpatah", Some("\u{5d3}\u{5b2}")),
            ("f_f_i", Some("ffi")),
            ("a.sc", Some("a")),
            ("T_h.liga", Some("Th")),
            ("uni20AC", Some("€")),
            ("uni00410042", Some("AB")),
            ("uniD83DDE00", Some("😀")),
            ("u1F600", Some("😀")),
            ("Asmall", Some("A")),
            ("sevenoldstyle", Some("7")),
            ("visiblespace", Some("\u{2423}")),
            ("uniXYZW", None),
            ("uD800", None),
            (".notdef", None),
            ("g12", None),
            ("a62", None),
            ("", None),
        ];
        for (name, expected) in cases {
            assert_eq!(text_of(name.as_bytes(), false).as_deref(), *expected, "{name}");
        }
        assert_eq!(text_of(b"a20", true).as_deref(), Some("✔"));
        assert_eq!(text_of(b"\xff", false), None);
    }

    #[test]
    fn numbers_of_glyphs_are_told_from_names() {
        for (name, expected) in [
            ("g12", Some(("g", 12))),
            ("cid00034", Some(("cid", 34))),
            ("glyph7.alt", Some(("glyph", 7))),
            ("65", Some(("", 65))),
            ("g99999", None),
            ("a1b", None),
            ("space", None),
        ] {
            assert_eq!(numbered(name.as_bytes()), expected, "{name}");
        }
    }
}
