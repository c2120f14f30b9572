//! What fonts of one document share: unpacked maps and font files within limits, and how text is appended.

use lopdf::{Dictionary, Document, Object, Stream};
use unicode_normalization::UnicodeNormalization as _;

use super::cmap::CMap;
use super::font_program::FontProgram;
use super::predefined_cmaps::PredefinedCMaps;
use super::streams;

/// Stands for what no map knows.
pub const UNKNOWN: &str = "\u{fffd}";

/// What the maps and font files of a document may unpack to together, as they stay in memory. Bytes.
const MAX_FONT_BYTES: usize = 96 << 20;

/// One map or font file. Bytes.
const MAX_FILE_BYTES: usize = 24 << 20;

/// What fonts of a document share.
pub struct FontSource<'a> {
    pub document: &'a Document,
    pub predefined: PredefinedCMaps,
    n_bytes_left: usize,
}

impl<'a> FontSource<'a> {
    /// Nothing is read yet.
    pub fn new(document: &'a Document) -> Self {
        Self { document, predefined: PredefinedCMaps::default(), n_bytes_left: MAX_FONT_BYTES }
    }

    /// An unpacked stream, as long as the document's share lasts.
    pub fn unpack(&mut self, stream: &Stream) -> Option<Vec<u8>> {
        let bytes = streams::unpack(self.document, stream, MAX_FILE_BYTES.min(self.n_bytes_left))?;
        self.n_bytes_left -= bytes.len();
        Some(bytes)
    }

    /// `ToUnicode` as a map. None: there is none that says anything.
    pub fn read_to_unicode(&mut self, font: &Dictionary) -> Option<CMap> {
        let document = self.document;
        let stream = font.get_deref(b"ToUnicode", document).and_then(Object::as_stream).ok()?;
        Some(CMap::parse(&self.unpack(stream)?)).filter(CMap::has_texts)
    }

    /// The font file that a descriptor holds.
    pub fn program(&mut self, font: &Dictionary) -> Option<FontProgram> {
        let document = self.document;
        let descriptor = font.get_deref(b"FontDescriptor", document).and_then(Object::as_dict).ok()?;
        let keys: [&[u8]; 3] = [b"FontFile", b"FontFile2", b"FontFile3"];
        let file =
            keys.into_iter().find_map(|key| descriptor.get_deref(key, document).ok()?.as_stream().ok())?;
        Some(FontProgram::read(&self.unpack(file)?))
    }
}

/// Codes that were read together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Advance {
    /// Sum of the widths, in thousandths of the font's size.
    pub width: f32,
    pub n_codes: usize,
    /// Single bytes 32, which word spacing widens.
    pub n_spaces: usize,
}

/// A text that is worth having: maps of some programs fill gaps with control characters, XeTeX's with U+FFFF.
pub fn is_said(text: &str) -> bool {
    !text.is_empty()
        && !text.contains(['\u{fffd}', '\u{fffe}', '\u{ffff}'])
        && text.chars().any(|c| !c.is_control() || c == '\t')
}

/// Text of glyphs that are shown one after the other.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GlyphText {
    pub text: String,
    /// Where the text of each glyph ends, in bytes.
    pub ends: Vec<usize>,
    /// How far each glyph moves on, in thousandths of the font's size.
    pub widths: Vec<f32>,
    pub mirroring: Mirroring,
}

/// What the text of a bracket says among right-to-left letters, where pages show the other one of its pair.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mirroring {
    /// How the bracket looks.
    #[default]
    Shown,
    /// Which one is meant.
    Meant,
    /// One of both: the map of the font was made by the program, and nothing else tells.
    Unknown,
}

impl GlyphText {
    /// Appends the text of a glyph.
    pub fn push(&mut self, letters: &str, width: f32) {
        push_text(letters, &mut self.text);
        self.ends.push(self.text.len());
        self.widths.push(width);
    }

    /// The texts of the glyphs.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).filter_map(|(start, end)| self.text.get(start..*end))
    }

    /// How much of the width the first glyph has, and the last one.
    pub fn edge_shares(&self) -> (f32, f32) {
        let total: f32 = self.widths.iter().sum();
        let share = |width: Option<&f32>| width.filter(|_| total > 0.0).map_or(0.0, |width| width / total);
        (share(self.widths.first()), share(self.widths.last()))
    }

    /// Takes the last character away.
    pub fn pop_char(&mut self) {
        self.text.pop();
        let end = self.text.len();
        self.ends.iter_mut().rev().take_while(|it| **it > end).for_each(|it| *it = end);
    }

    /// The same glyphs with other texts. None: a glyph keeps its text.
    pub fn with_texts(&self, texts: &[Option<String>]) -> Self {
        let mut glyphs = Self { mirroring: self.mirroring, ..Self::default() };
        let texts = texts.iter().map(Option::as_deref).chain(std::iter::repeat(None));
        for ((own, width), text) in self.iter().zip(&self.widths).zip(texts) {
            glyphs.push(text.unwrap_or(own), *width);
        }
        glyphs
    }

    /// A text that replaces those of the glyphs.
    pub fn replaced_by(text: String) -> Self {
        Self { ends: vec![text.len()], widths: vec![0.0], text, mirroring: Mirroring::Meant }
    }
}

/// Appends a text with its ligatures and the forms of Arabic letters as letters, as they are typed and searched.
fn push_text(letters: &str, text: &mut String) {
    for c in letters.chars() {
        match c {
            '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}' => text.extend(c.nfkc()),
            '\u{fb00}' => text.push_str("ff"),
            '\u{fb01}' => text.push_str("fi"),
            '\u{fb02}' => text.push_str("fl"),
            '\u{fb03}' => text.push_str("ffi"),
            '\u{fb04}' => text.push_str("ffl"),
            '\u{fb05}' | '\u{fb06}' => text.push_str("st"),
            c if c.is_control() => text.push(' '),
            c => text.push(c),
        }
    }
}

/// A finite number, direct or by reference.
pub fn number(document: &Document, object: &Object) -> Option<f32> {
    document.dereference(object).ok()?.1.as_float().ok().filter(|it| it.is_finite())
}

/// The font's name without the mark of a subset, such as `Symbol` of `ABCDEF+Symbol`.
pub fn base_name<'a>(document: &'a Document, font: &'a Dictionary) -> &'a [u8] {
    let name = font.get_deref(b"BaseFont", document).and_then(Object::as_name).unwrap_or_default();
    match name.get(6) {
        Some(b'+') => &name[7..],
        _ => name,
    }
}
