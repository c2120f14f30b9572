//! Fonts whose codes stand for glyphs of a collection (CIDs): Type 0.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use lopdf::{Dictionary, Document, Object};

use super::brackets;
use super::brahmic_letters;
use super::cluster_texts::{self, ClusterGlyph};
use super::cmap::{self, CMap};
use super::font_program::FontProgram;
use super::font_source::{Advance, FontSource, GlyphText, Mirroring, UNKNOWN, is_said, number};
use super::predefined_cmaps::{UnicodeForm, text_of_cid};

/// Of a font with codes of two bytes: a whole square, unless it says otherwise.
const SQUARE: f32 = 1000.0;

/// Codes whose widths one entry may name.
const MAX_CODES: usize = 65_536;

/// Widths that one font may name together: each CID once, and as much again for what overlaps.
const MAX_WIDTHS: usize = 2 * MAX_CODES;

/// How codes are cut from bytes and become CIDs.
enum CodeMap {
    /// Two bytes are the CID.
    Identity,
    Predefined(Rc<hayro_cmap::CMap>),
    Embedded(CMap, Option<Rc<hayro_cmap::CMap>>),
}

/// A font that can be read.
pub struct CompositeFont {
    codes: CodeMap,
    /// The codes themselves are Unicode.
    form: Option<UnicodeForm>,
    to_unicode: Option<CMap>,
    /// What CIDs mean by their collection.
    collection: Option<Rc<hayro_cmap::CMap>>,
    program: Option<FontProgram>,
    /// Glyphs of CIDs, two bytes each. None: the same numbers.
    glyphs: Option<Vec<u8>>,
    widths: HashMap<u32, f32>,
    usual: f32,
    /// Lines run downwards.
    pub is_vertical: bool,
    /// Glyphs beside each other say what each of them means.
    pub has_clusters: bool,
    /// The map gives some glyphs the texts of whole clusters.
    pub has_cluster_map: bool,
}

impl CompositeFont {
    /// Of a font's dictionary.
    pub fn new(source: &mut FontSource, font: &Dictionary) -> Self {
        let document = source.document;
        let descendant = font.get_deref(b"DescendantFonts", document).and_then(Object::as_array).ok();
        let descendant =
            descendant.and_then(|fonts| document.dereference(fonts.first()?).ok()?.1.as_dict().ok());
        let empty = Dictionary::new();
        let descendant = descendant.unwrap_or(&empty);
        let encoding = font.get_deref(b"Encoding", document).ok();
        let name = encoding.and_then(|it| it.as_name().ok()).unwrap_or_default();
        let codes = code_map(source, encoding);
        let is_identity_map = font
            .get_deref(b"ToUnicode", document)
            .and_then(Object::as_name)
            .is_ok_and(|name| name.starts_with(b"Identity"));
        let form = if is_identity_map { Some(UnicodeForm::Utf16) } else { UnicodeForm::of_name(name) };
        let to_unicode = source.read_to_unicode(font);
        let (registry, ordering) = collection_names(document, descendant);
        let collection = source.predefined.texts_of(&registry, &ordering);
        let program = match collection.is_none() && form.is_none() {
            true => source.program(descendant),
            false => None,
        };
        let glyphs = descendant.get_deref(b"CIDToGIDMap", document).and_then(Object::as_stream).ok();
        let glyphs = glyphs.filter(|_| program.is_some()).and_then(|stream| source.unpack(stream));
        let (widths, usual) = widths(document, descendant);
        let is_vertical = match &codes {
            CodeMap::Embedded(map, _) => map.is_vertical,
            CodeMap::Identity | CodeMap::Predefined(_) => name == b"V" || name.ends_with(b"-V"),
        };
        let mut font = Self {
            codes,
            form,
            to_unicode,
            collection,
            program,
            glyphs,
            widths,
            usual,
            is_vertical,
            has_clusters: false,
            has_cluster_map: false,
        };
        font.has_cluster_map = !is_vertical && font.is_mapped_by_clusters();
        font.has_clusters = font.has_cluster_map || !is_vertical && font.is_mapped_in_other_order();
        font
    }

    /// The map has texts of clusters.
    fn is_mapped_by_clusters(&self) -> bool {
        let Some(map) = &self.to_unicode else { return false };
        let is_of_cluster = |code: u32, text: &str| {
            let cid = self.cid_of(code, 2);
            let marks = self.program.as_ref().map(|program| &program.marks);
            let is_mark = || marks.zip(self.glyph(cid)).is_some_and(|(marks, glyph)| marks.contains(&glyph));
            let is_part = || self.of_program(cid).is_some_and(|own| cluster_texts::is_part(&own, text));
            text.chars().count() > 1 && (is_part() || text.starts_with(brahmic_letters::is_base) && is_mark())
        };
        map.has_empty_texts() && self.program.is_some()
            || map.texts().any(|(code, text)| is_of_cluster(code, text))
    }

    /// The map has letters that pages show in another order.
    fn is_mapped_in_other_order(&self) -> bool {
        let map = self.to_unicode.as_ref();
        map.is_some_and(|map| map.has_char(brahmic_letters::is_reordered_char))
    }

    /// The glyphs that the bytes draw.
    pub fn cluster_glyphs(&self, mut bytes: &[u8]) -> Vec<ClusterGlyph> {
        let mut glyphs = Vec::new();
        while !bytes.is_empty() {
            let n = self.code_bytes(bytes).clamp(1, bytes.len());
            let (code, rest) = bytes.split_at(n);
            bytes = rest;
            let (cid, code) = (self.cid(code), cmap::code(code));
            let map = self.to_unicode.as_ref();
            let mapped = map.and_then(|map| map.text(code)).filter(|text| is_said(text));
            let empty = map.filter(|map| map.is_empty_text(code)).map(|_| String::new());
            let in_set = |set: fn(&FontProgram) -> &HashSet<u16>| {
                let glyph = self.glyph(cid).zip(self.program.as_ref());
                glyph.is_some_and(|(glyph, program)| set(program).contains(&glyph))
            };
            // The font file may have the glyph of one sign as a form of another.
            let own = if self.has_cluster_map { self.of_program(cid) } else { mapped.clone() };
            glyphs.push(ClusterGlyph {
                code,
                nominal: own.or_else(|| self.of_program(cid)),
                mapped: mapped.or(empty),
                is_mark: in_set(|program| &program.marks) || self.width(cid) == 0.0,
                is_ligature: in_set(|program| &program.ligatures),
            });
        }
        glyphs
    }

    /// Appends what the bytes say.
    pub fn read(&self, mut bytes: &[u8], text: &mut GlyphText) -> Advance {
        let mut advance = Advance::default();
        while !bytes.is_empty() {
            let n = self.code_bytes(bytes).clamp(1, bytes.len());
            let (code, rest) = bytes.split_at(n);
            bytes = rest;
            let cid = self.cid(code);
            let width = self.width(cid);
            // The map gives the text of an accent to its letter.
            let is_part = width == 0.0 && self.to_unicode.is_some();
            let letters = self.text(code, cid);
            let is_mirrored = letters.as_deref().and_then(brackets::mirror).is_some();
            if is_mirrored && self.of_program(cid).is_none() {
                text.mirroring = Mirroring::Unknown;
            }
            text.push(letters.as_deref().unwrap_or(if is_part { "" } else { UNKNOWN }), width);
            advance.n_codes += 1;
            advance.n_spaces += usize::from(code == b" ");
            advance.width += width;
        }
        advance
    }

    fn width(&self, cid: u32) -> f32 {
        match self.is_vertical {
            true => SQUARE,
            false => self.widths.get(&cid).copied().unwrap_or(self.usual),
        }
    }

    fn code_bytes(&self, bytes: &[u8]) -> usize {
        match (&self.codes, self.form) {
            (CodeMap::Embedded(map, base), _) => {
                let by_base = || base.as_ref().map(|base| predefined_bytes(base, bytes));
                map.code_bytes(bytes).or_else(by_base).unwrap_or(2)
            }
            (_, Some(form)) => form.code_bytes(bytes),
            (CodeMap::Predefined(map), None) => predefined_bytes(map, bytes),
            (CodeMap::Identity, None) => 2,
        }
    }

    fn cid(&self, bytes: &[u8]) -> u32 {
        self.cid_of(cmap::code(bytes), u8::try_from(bytes.len()).unwrap_or(0))
    }

    fn cid_of(&self, code: u32, n_bytes: u8) -> u32 {
        let of = |map: &hayro_cmap::CMap| map.lookup_cid_code(code, n_bytes);
        match &self.codes {
            CodeMap::Identity => code,
            CodeMap::Predefined(map) => of(map).unwrap_or(0),
            CodeMap::Embedded(map, base) => {
                map.cid(code).or_else(|| base.as_deref().and_then(of)).unwrap_or(0)
            }
        }
    }

    fn text(&self, code: &[u8], cid: u32) -> Option<String> {
        let said = |text: &String| is_said(text);
        let map = self.to_unicode.as_ref();
        let mapped = map.and_then(|map| map.text(cmap::code(code))).filter(said);
        // The map has the bracket that was meant; how it looks tells more.
        if let Some(other) = mapped.as_deref().and_then(brackets::mirror)
            && let Some(shown) = self.of_program(cid).filter(|shown| shown.chars().eq([other]))
        {
            return Some(shown);
        }
        mapped
            .or_else(|| self.form.and_then(|form| form.text(code)).filter(said))
            .or_else(|| self.collection.as_ref().and_then(|map| text_of_cid(map, cid)).filter(said))
            .or_else(|| self.of_program(cid))
    }

    /// By the font file: which character leads to the glyph of this CID.
    fn of_program(&self, cid: u32) -> Option<String> {
        self.program.as_ref()?.by_glyph.get(&self.glyph(cid)?).cloned()
    }

    /// The glyph of a CID in the font file.
    fn glyph(&self, cid: u32) -> Option<u16> {
        let cid = u16::try_from(cid).ok()?;
        let glyph = match &self.glyphs {
            Some(glyphs) => {
                let at = 2 * usize::from(cid);
                u16::from_be_bytes([*glyphs.get(at)?, *glyphs.get(at + 1)?])
            }
            None => cid,
        };
        Some(glyph).filter(|glyph| *glyph > 0)
    }
}

/// Predefined CMaps have codes of one to four bytes; unknown ones are taken as two.
fn predefined_bytes(map: &hayro_cmap::CMap, bytes: &[u8]) -> usize {
    let is_known = |n: &usize| {
        let length = u8::try_from(*n).unwrap_or(0);
        map.lookup_cid_code(cmap::code(&bytes[..*n]), length).is_some()
    };
    (1..=bytes.len().min(4)).find(is_known).unwrap_or(2)
}

fn code_map(source: &mut FontSource, encoding: Option<&Object>) -> CodeMap {
    match encoding {
        Some(Object::Stream(stream)) => {
            let Some(bytes) = source.unpack(stream) else { return CodeMap::Identity };
            let map = CMap::parse(&bytes);
            let use_cmap = stream.dict.get(b"UseCMap").and_then(Object::as_name).ok().map(<[u8]>::to_vec);
            let base = map.base.clone().or(use_cmap);
            let base = base.and_then(|name| source.predefined.get(&name));
            CodeMap::Embedded(map, base)
        }
        Some(Object::Name(name)) if !name.starts_with(b"Identity") => match source.predefined.get(name) {
            Some(map) => CodeMap::Predefined(map),
            None => CodeMap::Identity,
        },
        _ => CodeMap::Identity,
    }
}

/// `Registry` and `Ordering` of the glyphs.
fn collection_names(document: &Document, descendant: &Dictionary) -> (Vec<u8>, Vec<u8>) {
    let info = descendant.get_deref(b"CIDSystemInfo", document).and_then(Object::as_dict).ok();
    let word = |key: &[u8]| match info.and_then(|info| info.get_deref(key, document).ok()) {
        Some(Object::String(word, _) | Object::Name(word)) => word.clone(),
        _ => Vec::new(),
    };
    (word(b"Registry"), word(b"Ordering"))
}

/// `W` and `DW` of the descendant: `code [width …]` and `first last width`.
fn widths(document: &Document, descendant: &Dictionary) -> (HashMap<u32, f32>, f32) {
    let usual = descendant.get_deref(b"DW", document).ok().and_then(|it| number(document, it));
    let mut widths = HashMap::new();
    let list = descendant.get_deref(b"W", document).and_then(Object::as_array).map(Vec::as_slice);
    let mut list = list.unwrap_or_default();
    while let [first, second, rest @ ..] = list {
        let Some(first) = number(document, first).filter(|it| *it >= 0.0) else { break };
        let first = first as u32;
        if widths.len() > MAX_WIDTHS {
            break;
        }
        match (document.dereference(second).ok().and_then(|it| it.1.as_array().ok()), rest) {
            (Some(each), rest) => {
                for (width, code) in each.iter().take(MAX_CODES).zip(first..) {
                    if let Some(width) = number(document, width) {
                        widths.insert(code, width);
                    }
                }
                list = rest;
            }
            (None, [width, rest @ ..]) => {
                let last = number(document, second).map_or(first, |it| it as u32);
                if let Some(width) = number(document, width)
                    && (last.saturating_sub(first) as usize) < MAX_CODES
                {
                    widths.extend((first..=last).map(|code| (code, width)));
                }
                list = rest;
            }
            (None, []) => break,
        }
    }
    (widths, usual.unwrap_or(SQUARE))
}
