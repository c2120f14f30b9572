//! Fonts whose codes are single bytes: Type 1, TrueType and Type 3.

use std::array;
use std::collections::HashMap;
use std::sync::LazyLock;

use lopdf::{Dictionary, Document, Encoding, Object, dictionary};

use super::cmap::CMap;
use super::font_program::FontProgram;
use super::font_source::{Advance, FontSource, GlyphText, Mirroring, UNKNOWN, base_name, is_said, number};
use super::glyph_names;

/// A thousandth of the font's size: of letters whose width isn't told.
const USUAL_WIDTH: f32 = 500.0;

/// `Flags` of a descriptor: the font defines its own codes.
const SYMBOLIC: i64 = 4;

/// Codes 0xF000 to 0xF0FF stand for the codes of a symbol font.
const SYMBOL_CODES: u32 = 0xF000;

/// Names of encodings that need no table in the file.
const ENCODINGS: [&[u8]; 5] =
    [b"WinAnsiEncoding", b"MacRomanEncoding", b"MacExpertEncoding", b"StandardEncoding", b"PDFDocEncoding"];

type Texts = [Option<String>; 256];

/// A font that can be read.
pub struct SimpleFont {
    texts: Texts,
    widths: HashMap<u32, f32>,
    /// Widths come from the file.
    pub is_measured: bool,
    mirroring: Mirroring,
}

impl SimpleFont {
    /// Of a font's dictionary.
    pub fn new(source: &mut FontSource, font: &Dictionary) -> Self {
        let document = source.document;
        let map = source.read_to_unicode(font);
        let encoding = EncodingSource::new(document, font);
        let is_complete = encoding.is_covered(document, font, map.as_ref());
        let program = if is_complete { None } else { source.program(font) };
        let texts = array::from_fn(|code| {
            let code = u8::try_from(code).unwrap_or(0);
            let said = map.as_ref().and_then(|map| map.text(u32::from(code))).filter(|text| is_said(text));
            let text = said.or_else(|| encoding.text(code, program.as_ref()))?;
            Some(encoding.with_symbols(text))
        });
        let widths = widths(document, font);
        let is_measured = widths.values().any(|width| *width > 0.0);
        let mirroring = if map.is_some() { Mirroring::Unknown } else { Mirroring::Shown };
        Self { texts, widths, is_measured, mirroring }
    }

    /// Appends what the bytes say.
    pub fn read(&self, bytes: &[u8], text: &mut GlyphText) -> Advance {
        let mut advance = Advance { n_codes: bytes.len(), ..Advance::default() };
        text.mirroring = self.mirroring;
        for byte in bytes {
            let letters = self.texts[usize::from(*byte)].as_deref().unwrap_or(UNKNOWN);
            let known = self.widths.get(&u32::from(*byte)).filter(|_| self.is_measured);
            let width = known.copied().unwrap_or(USUAL_WIDTH);
            text.push(letters, width);
            advance.width += width;
            advance.n_spaces += usize::from(*byte == b' ');
        }
        advance
    }
}

/// What a font's dictionary says of its codes, beside `ToUnicode`.
struct EncodingSource {
    /// None: the font's own.
    base: Option<&'static [u8]>,
    differences: HashMap<u8, Vec<u8>>,
    is_dingbats: bool,
    is_symbol: bool,
    is_true_type: bool,
    /// The base is not to be trusted: the font defines its own codes.
    is_symbolic: bool,
}

impl EncodingSource {
    fn new(document: &Document, font: &Dictionary) -> Self {
        let encoding = font.get_deref(b"Encoding", document).ok();
        let dict = encoding.and_then(|it| it.as_dict().ok());
        let name = match dict {
            Some(dict) => dict.get_deref(b"BaseEncoding", document).and_then(Object::as_name).ok(),
            None => encoding.and_then(|it| it.as_name().ok()),
        };
        let base = ENCODINGS.into_iter().find(|known| Some(*known) == name);
        let list = dict.and_then(|dict| dict.get_deref(b"Differences", document).ok()?.as_array().ok());
        let face = base_name(document, font);
        let contains = |part: &[u8]| face.windows(part.len()).any(|at| at == part);
        let subtype = font.get(b"Subtype").and_then(Object::as_name).unwrap_or_default();
        let descriptor = font.get_deref(b"FontDescriptor", document).and_then(Object::as_dict).ok();
        let flags = descriptor.and_then(|it| it.get_deref(b"Flags", document).ok()?.as_i64().ok());
        Self {
            base,
            differences: differences(document, list.map(Vec::as_slice).unwrap_or_default()),
            is_dingbats: contains(b"Dingbats"),
            is_symbol: face.starts_with(b"Symbol"),
            is_true_type: subtype == b"TrueType",
            is_symbolic: flags.unwrap_or(0) & SYMBOLIC != 0,
        }
    }

    /// Map and encoding say all that the font's widths name: the font file needs no look.
    fn is_covered(&self, document: &Document, font: &Dictionary, map: Option<&CMap>) -> bool {
        let is_shown_by_base = self.base.is_some() && !(self.is_true_type && self.is_symbolic);
        let known = |code: u8| {
            map.and_then(|map| map.text(u32::from(code))).is_some()
                || self
                    .differences
                    .get(&code)
                    .map_or(is_shown_by_base, |name| glyph_names::text_of(name, self.is_dingbats).is_some())
        };
        let widths = widths(document, font);
        // Programs give 0 to codes that the file does not use, beside accents.
        let shown = widths.iter().filter(|(_, width)| **width > 0.0).map(|(code, _)| code);
        let codes = shown.filter_map(|code| u8::try_from(*code).ok());
        codes.chain(self.differences.keys().copied()).all(known)
    }

    /// The text of a code. None: nothing says it.
    fn text(&self, code: u8, program: Option<&FontProgram>) -> Option<String> {
        let own = |code: u8| program.and_then(|program| program.by_code.get(&code).cloned());
        if let Some(name) = self.differences.get(&code) {
            return glyph_names::text_of(name, self.is_dingbats)
                .or_else(|| of_program(name, program))
                .or_else(|| own(code))
                .or_else(|| self.of_number(name, code));
        }
        if self.is_dingbats {
            return dingbat(code);
        }
        if self.is_symbol && self.base.is_none() {
            return own(code).or_else(|| symbol(code));
        }
        let first = match self.base {
            // TrueType fonts that define their own codes are shown by those, whatever the encoding says
            Some(_) if self.is_true_type && self.is_symbolic => own(code),
            Some(_) => None,
            None => own(code),
        };
        let base =
            self.base.unwrap_or(if self.is_true_type { b"WinAnsiEncoding" } else { b"StandardEncoding" });
        first.or_else(|| standard(base, code)).or_else(|| own(code)).or_else(|| latin(code))
    }

    /// Names that only number glyphs: some programs count by codes.
    fn of_number(&self, name: &[u8], code: u8) -> Option<String> {
        if name == b".notdef" {
            return None;
        }
        let (prefix, number) = glyph_names::numbered(name)?;
        let hex =
            std::str::from_utf8(&name[prefix.len()..]).ok().and_then(|it| u32::from_str_radix(it, 16).ok());
        let is_code = number == u32::from(code) || hex == Some(u32::from(code));
        let base = self.base.unwrap_or(b"StandardEncoding");
        if is_code { standard(base, code).or_else(|| latin(code)) } else { None }
    }

    /// Private characters of symbol fonts as those that they look like.
    fn with_symbols(&self, text: String) -> String {
        let mut chars = text.chars();
        let (Some(c), None) = (chars.next(), chars.next()) else { return text };
        let Some(code) = u32::from(c).checked_sub(SYMBOL_CODES).and_then(|code| u8::try_from(code).ok())
        else {
            return text;
        };
        let found = match (self.is_symbol, self.is_dingbats) {
            (true, _) => symbol(code),
            (_, true) => dingbat(code),
            // bullets of Word's lists in Wingdings
            _ => match code {
                0x6C | 0x9F | 0xB7 => Some("•".into()),
                0x6E | 0xA7 => Some("▪".into()),
                0x71 | 0xA8 => Some("□".into()),
                0xD8 => Some("➢".into()),
                0xE0 => Some("→".into()),
                0xFC => Some("✓".into()),
                0x20..=0x7E => Some(char::from(code).to_string()),
                _ => None,
            },
        };
        found.unwrap_or(text)
    }
}

/// The glyph of that name, or of the number in it, by the font file.
fn of_program(name: &[u8], program: Option<&FontProgram>) -> Option<String> {
    let program = program?;
    let by_name = program.glyph_of_name.get(name).and_then(|glyph| program.by_glyph.get(glyph));
    let by_number = || {
        let (prefix, number) = glyph_names::numbered(name)?;
        let is_glyph = matches!(prefix, "g" | "G" | "gid" | "glyph" | "cid" | "index");
        program.by_glyph.get(&u16::try_from(number).ok().filter(|_| is_glyph)?)
    };
    by_name.or_else(by_number).cloned()
}

/// The encodings that PDF names, code by code.
static STANDARD: LazyLock<HashMap<&'static [u8], Texts>> = LazyLock::new(|| {
    let document = Document::new();
    let tables = ENCODINGS.into_iter().filter_map(|name| {
        let font = dictionary! { "Type" => "Font", "Encoding" => Object::Name(name.to_vec()) };
        let Ok(Encoding::OneByteEncoding(table)) = font.get_font_encoding(&document) else { return None };
        let text = |code: usize| {
            let unit = table.get(code).copied().flatten()?.utf16_code_unit();
            char::from_u32(u32::from(unit)).map(String::from).filter(|text| is_said(text))
        };
        Some((name, array::from_fn(text)))
    });
    tables.collect()
});

/// A code by one of the encodings that PDF names.
fn standard(name: &[u8], code: u8) -> Option<String> {
    STANDARD.get(name)?[usize::from(code)].clone()
}

/// What the byte is in Latin-1; better than nothing where an encoding has a gap.
fn latin(code: u8) -> Option<String> {
    matches!(code, 0x20..=0x7E | 0xA0..=0xFF).then(|| char::from(code).to_string())
}

/// Symbol's own encoding (PDF 32000-1, annex D.5), from code 0x21 on; blanks where it has none.
fn symbol(code: u8) -> Option<String> {
    const LOW: &str = "!∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_\u{203e}αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼";
    const HIGH: &str =
        "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪ 〉∫⌠⎮⌡⎞⎟⎠⎤⎥⎦⎫⎬⎭";
    let c = match code {
        0x20 => Some(' '),
        0x21..=0x7E => LOW.chars().nth(usize::from(code - 0x21)),
        0xA0..=0xFE => HIGH.chars().nth(usize::from(code - 0xA0)),
        _ => None,
    };
    c.map(String::from)
}

/// Zapf Dingbats' own encoding (annex D.6): the block of Unicode was made after it.
fn dingbat(code: u8) -> Option<String> {
    let code = u32::from(code);
    let c = match code {
        0x20 => ' ',
        0x25 => '☎',
        0x2A => '☛',
        0x2B => '☞',
        0x48 => '★',
        0x6C => '●',
        0x6E => '■',
        0x73 => '▲',
        0x74 => '▼',
        0x75 => '◆',
        0x77 => '◗',
        0xA8 => '♣',
        0xA9 => '♦',
        0xAA => '♥',
        0xAB => '♠',
        0xAC..=0xB5 => char::from_u32(0x2460 + code - 0xAC)?,
        0xD5 => '→',
        0xD6 => '↔',
        0xD7 => '↕',
        0x21..=0x7E => char::from_u32(0x2700 + code - 0x20)?,
        0x80..=0x8D => char::from_u32(0x2768 + code - 0x80)?,
        0xA1..=0xEF | 0xF1..=0xFE => char::from_u32(0x2761 + code - 0xA1)?,
        _ => return None,
    };
    Some(c.to_string())
}

/// Names by code: a number begins a run of names.
fn differences(document: &Document, list: &[Object]) -> HashMap<u8, Vec<u8>> {
    let mut names = HashMap::new();
    let mut code = 0_i64;
    for entry in list.iter().take(2 * 256) {
        match document.dereference(entry).map(|(_, entry)| entry) {
            Ok(Object::Integer(first)) => code = *first,
            Ok(Object::Real(first)) => code = *first as i64,
            Ok(Object::Name(name)) => {
                if let Ok(code) = u8::try_from(code) {
                    names.insert(code, name.clone());
                }
                code = code.saturating_add(1);
            }
            _ => {}
        }
    }
    names
}

/// `FirstChar` and `Widths`, in thousandths of the font's size. Accents have 0.
fn widths(document: &Document, font: &Dictionary) -> HashMap<u32, f32> {
    let first = font.get_deref(b"FirstChar", document).and_then(Object::as_i64);
    let list = font.get_deref(b"Widths", document).and_then(Object::as_array);
    let (Ok(first), Ok(list)) = (first, list) else { return HashMap::new() };
    // Type 3 fonts measure in units of their own
    let matrix = font.get_deref(b"FontMatrix", document).and_then(Object::as_array).ok();
    let unit =
        matrix.and_then(|matrix| number(document, matrix.first()?)).map_or(1.0, |it| it.abs() * 1000.0);
    let at = |n: usize| u32::try_from(first).ok()?.checked_add(u32::try_from(n).ok()?);
    let list = list.iter().take(256).enumerate();
    let known = list.filter_map(|(n, width)| Some((at(n)?, number(document, width)? * unit)));
    known.filter(|(_, width)| *width >= 0.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Codes of `font`, each as text, `-` where nothing says it.
    fn texts(font: Dictionary, bytes: &[u8]) -> String {
        let document = Document::new();
        let mut glyphs = GlyphText::default();
        SimpleFont::new(&mut FontSource::new(&document), &font).read(bytes, &mut glyphs);
        glyphs.text.replace('\u{fffd}', "-")
    }

    #[test]
    fn codes_are_read_by_encodings_and_names() {
        let named = |names: &[&str]| {
            let mut list: Vec<Object> = vec![27.into()];
            list.extend(names.iter().map(|name| Object::Name(name.as_bytes().to_vec())));
            dictionary! { "BaseEncoding" => "WinAnsiEncoding", "Differences" => list }
        };
        let type1 = |encoding: Object| dictionary! { "Subtype" => "Type1", "BaseFont" => "X", "Encoding" => encoding };
        let face = |name: &str| dictionary! { "Subtype" => "Type1", "BaseFont" => name };
        let cases: Vec<(Dictionary, &[u8], &str)> = vec![
            (type1("WinAnsiEncoding".into()), b"caf\xe9 \x80", "café €"),
            (type1("MacRomanEncoding".into()), b"caf\x8e", "café"),
            (face("Helvetica"), b"a'\xae", "a’fi"),
            (type1(named(&["f_f_i", "Lslash", "uni0416", "nobody"]).into()), b"\x1b\x1c\x1d\x1eA", "ffiŁЖ-A"),
            (type1(named(&["g27", "G1C", "c0"]).into()), b"\x1b\x1c\x1d", "---"),
            (face("ABCDEF+Symbol"), b"abS\xa3", "αβΣ≤"),
            (face("ZapfDingbats"), b"4l\xd5\xfe\x80", "✔●→➾❨"),
        ];
        for (font, bytes, expected) in cases {
            assert_eq!(texts(font.clone(), bytes), expected, "{font:?}");
        }
    }

    #[test]
    fn numbers_in_names_are_codes_where_they_agree() {
        let names = vec![65.into(), Object::Name(b"a65".to_vec()), Object::Name(b"G42".to_vec())];
        let font = dictionary! { "Subtype" => "Type3", "Encoding" => dictionary! { "Differences" => names } };
        assert_eq!(texts(font, b"AB"), "AB");
    }
}
