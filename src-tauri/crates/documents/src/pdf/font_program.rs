//! What an embedded font file says of its glyphs: their names, their characters, and which glyph a code stands for.
//! It is asked where the PDF itself says nothing.

use std::collections::{HashMap, HashSet};

use ttf_parser::gdef::GlyphClass;
use ttf_parser::{Face, GlyphId, PlatformId, cff};

use super::glyph_shape::{GlyphShape, SAME_SHAPE};
use super::{brahmic_letters, glyph_names};

/// Characters of one font that are looked at; larger fonts are not embedded whole.
const MAX_CHARACTERS: usize = 70_000;

/// Accents of one font whose shapes are compared.
const MAX_MARKS: usize = 512;

/// Codes of Microsoft's symbol fonts begin here.
const SYMBOL_CODES: u32 = 0xF000;

/// What a font file says.
#[derive(Debug, Default)]
pub struct FontProgram {
    /// Texts of the codes of a simple font by its own encoding.
    pub by_code: HashMap<u8, String>,
    /// Texts of glyphs by their number.
    pub by_glyph: HashMap<u16, String>,
    /// Glyphs by name.
    pub glyph_of_name: HashMap<Vec<u8>, u16>,
    /// Glyphs that stand on others.
    pub marks: HashSet<u16>,
    /// Glyphs of several letters.
    pub ligatures: HashSet<u16>,
}

impl FontProgram {
    /// Of `FontFile`, `FontFile2` or `FontFile3`; unreadable ones say nothing.
    pub fn read(bytes: &[u8]) -> Self {
        if bytes.starts_with(b"%!") || bytes.starts_with(b"\x80\x01") {
            return Self { by_code: type1_encoding(bytes), ..Self::default() };
        }
        if let Ok(face) = Face::parse(bytes, 0) {
            return Self::of_face(&face);
        }
        match cff::Table::parse(bytes) {
            Some(table) => Self::of_cff(&table, None),
            None => Self::default(),
        }
    }

    fn of_face(face: &Face) -> Self {
        let mut program = Self::default();
        let tables = face.tables();
        if let Some(table) = &tables.cff {
            program = Self::of_cff(table, Some(face.number_of_glyphs()));
        }
        let n_glyphs = face.number_of_glyphs();
        for glyph in 0..n_glyphs {
            if let Some(name) = face.glyph_name(GlyphId(glyph)) {
                program.name_glyph(glyph, name.as_bytes());
            }
            let class = tables.gdef.and_then(|table| table.glyph_class(GlyphId(glyph)));
            match class {
                Some(GlyphClass::Mark) => drop(program.marks.insert(glyph)),
                Some(GlyphClass::Ligature) => drop(program.ligatures.insert(glyph)),
                Some(GlyphClass::Base | GlyphClass::Component) | None => {}
            }
        }
        let subtables = || tables.cmap.iter().flat_map(|cmap| cmap.subtables);
        for subtable in subtables().filter(ttf_parser::cmap::Subtable::is_unicode) {
            let mut n = 0;
            subtable.codepoints(|code| {
                n += 1;
                let character = char::from_u32(code).filter(|c| n <= MAX_CHARACTERS && !is_private(*c));
                if let (Some(c), Some(glyph)) = (character, subtable.glyph_index(code)) {
                    program.by_glyph.entry(glyph.0).or_insert_with(|| c.to_string());
                }
            });
        }
        program.add_shifted_marks(face);
        for code in 0..=u8::MAX {
            let glyph = subtables().find_map(|it| match (it.platform_id, it.encoding_id) {
                (PlatformId::Windows, 0) => {
                    let code = u32::from(code);
                    it.glyph_index(SYMBOL_CODES + code).or_else(|| it.glyph_index(code))
                }
                (PlatformId::Macintosh, 0) => it.glyph_index(u32::from(code)),
                _ => None,
            });
            if let Some(text) = glyph.filter(|it| it.0 > 0).and_then(|it| program.by_glyph.get(&it.0)) {
                program.by_code.insert(code, text.clone());
            }
        }
        program
    }

    /// Thai and Lao fonts draw tone marks in several sizes and heights, and only one of them is a character of the font.
    fn add_shifted_marks(&mut self, face: &Face) {
        let (known, unknown): (Vec<u16>, Vec<u16>) =
            self.marks.iter().take(MAX_MARKS).partition(|glyph| self.by_glyph.contains_key(glyph));
        let known = known.into_iter().filter(|glyph| brahmic_letters::is_thai_tone(&self.by_glyph[glyph]));
        let shapes: Vec<(u16, GlyphShape)> =
            known.filter_map(|glyph| Some((glyph, GlyphShape::of(face, glyph)?))).collect();
        if shapes.is_empty() {
            return;
        }
        for glyph in unknown {
            let Some(shape) = GlyphShape::of(face, glyph) else { continue };
            let distances = shapes.iter().map(|(known, other)| (shape.distance(other), *known));
            let closest = distances.min_by(|one, other| one.0.total_cmp(&other.0));
            if let Some((_, known)) = closest.filter(|(distance, _)| *distance < SAME_SHAPE) {
                let text = self.by_glyph[&known].clone();
                self.by_glyph.insert(glyph, text);
            }
        }
    }

    fn of_cff(table: &cff::Table, n_glyphs: Option<u16>) -> Self {
        let mut program = Self::default();
        let n_glyphs = n_glyphs.unwrap_or_else(|| table.number_of_glyphs());
        for glyph in 0..n_glyphs {
            if let Some(name) = table.glyph_name(GlyphId(glyph)) {
                program.name_glyph(glyph, name.as_bytes());
            }
        }
        for code in 0..=u8::MAX {
            let text = table.glyph_index(code).and_then(|glyph| program.by_glyph.get(&glyph.0));
            if let Some(text) = text.cloned() {
                program.by_code.insert(code, text);
            }
        }
        program
    }

    fn name_glyph(&mut self, glyph: u16, name: &[u8]) {
        if let Some(text) = glyph_names::text_of(name, false) {
            self.by_glyph.entry(glyph).or_insert(text);
        }
        self.glyph_of_name.entry(name.to_vec()).or_insert(glyph);
    }
}

fn is_private(c: char) -> bool {
    ('\u{e000}'..='\u{f8ff}').contains(&c)
}

/// `dup 65 /A put` in the readable part of a Type 1 font.
fn type1_encoding(bytes: &[u8]) -> HashMap<u8, String> {
    let end = bytes.windows(5).position(|at| at == b"eexec").unwrap_or(bytes.len());
    let head = String::from_utf8_lossy(&bytes[..end]).replace('/', " /");
    let mut codes = HashMap::new();
    let Some((_, encoding)) = head.split_once("/Encoding") else { return codes };
    let words: Vec<&str> = encoding.split_ascii_whitespace().take_while(|word| *word != "def").collect();
    for entry in words.windows(3) {
        let ["dup", code, name] = entry else { continue };
        let code = match code.split_once('#') {
            Some((radix, digits)) => radix
                .parse()
                .ok()
                .filter(|radix| (2..=36).contains(radix))
                .and_then(|radix| u8::from_str_radix(digits, radix).ok()),
            None => code.parse().ok(),
        };
        let text = name.strip_prefix('/').and_then(|name| glyph_names::text_of(name.as_bytes(), false));
        if let (Some(code), Some(text)) = (code, text) {
            codes.insert(code, text);
        }
    }
    codes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type1_fonts_name_their_codes() {
        let font = b"%!PS-AdobeFont-1.0: X\n/Encoding 256 array\n0 1 255 {1 index exch /.notdef put} for\n\
            dup 11/ff put dup 8#101 /A put\ndup 999 /B put dup 66 /nobody put\nreadonly def\ncurrentfile eexec\xff";
        let read = FontProgram::read(font);
        assert_eq!(read.by_code, HashMap::from([(11, "\u{fb00}".into()), (65, "A".into())]));
        let standard = FontProgram::read(b"%!FontType1\n/Encoding StandardEncoding def\n");
        assert!(standard.by_code.is_empty());
    }

    #[test]
    fn damaged_fonts_say_nothing() {
        for bytes in
            [b"".as_slice(), b"\0\x01\0\0\xff\xff", b"OTTO", b"\x01\0\x04\x04\0\0", b"%!", b"\x80\x01"]
        {
            let read = FontProgram::read(bytes);
            assert!(read.by_code.is_empty() && read.by_glyph.is_empty(), "{bytes:?}");
        }
    }
}
