//! The fonts of a PDF: which characters its bytes encode, and their widths.

use std::collections::{BTreeMap, HashMap};

use lopdf::{Dictionary, Document, Encoding, Object, ObjectId};

use super::MAX_UNPACKED;

/// A thousandth of the font's size: of letters whose width isn't told.
const USUAL_WIDTH: f32 = 500.0;

/// Of a font with codes of two bytes: a whole square, unless it says otherwise.
const SQUARE: f32 = 1000.0;

/// Codes whose widths one entry may name.
const MAX_CODES: i64 = 65_536;

/// The font dictionaries of a document. Those that say what their letters mean say nothing else of it here: it is
/// truer than what the bytes are called.
pub struct Arena(BTreeMap<ObjectId, Dictionary>);

impl Arena {
    pub fn new(document: &Document) -> Self {
        let fonts = document.objects.iter().filter_map(|(id, object)| {
            let font = object.as_dict().ok().filter(|dict| dict.has_type(b"Font"))?;
            let mut font = font.clone();
            if font.get_deref(b"ToUnicode", document).and_then(Object::as_stream).is_ok() {
                font.remove(b"Encoding");
            }
            Some((*id, font))
        });
        Self(fonts.collect())
    }
}

/// A font that can be read.
pub struct Font<'a> {
    encoding: Option<Encoding<'a>>,
    /// Of a letter's code.
    n_bytes: usize,
    widths: HashMap<u32, f32>,
    usual: f32,
    /// Widths come from the file.
    pub is_measured: bool,
}

impl<'a> Font<'a> {
    /// `resource` is a font among a page's resources.
    pub fn new(document: &'a Document, arena: &'a Arena, resource: &'a Object) -> Option<Self> {
        let of_arena = resource.as_reference().ok().and_then(|id| arena.0.get(&id));
        let font = match of_arena {
            Some(font) => font,
            None => document.dereference(resource).ok()?.1.as_dict().ok()?,
        };
        // A font of an encoding that isn't known has letters that aren't known.
        let encoding = font.get_font_encoding_with_limit(document, MAX_UNPACKED).ok();
        let is_composite = font.get(b"Subtype").and_then(Object::as_name).is_ok_and(|name| name == b"Type0");
        let (widths, usual) = match is_composite {
            true => composite_widths(document, font),
            false => (simple_widths(document, font), USUAL_WIDTH),
        };
        let is_measured = !widths.is_empty() || is_composite;
        Some(Self { encoding, n_bytes: if is_composite { 2 } else { 1 }, widths, usual, is_measured })
    }

    /// Appends what the bytes say; how wide it is, in thousandths of the font's size, and how many letters it has.
    pub fn read(&self, bytes: &[u8], text: &mut String) -> (f32, usize) {
        if let Some(encoding) = &self.encoding {
            // What can't be read of a piece costs that piece.
            let _ = encoding.write_to_string(bytes, text);
        }
        let codes = bytes.chunks(self.n_bytes);
        let n = codes.len();
        let width = |code: &[u8]| {
            let code = code.iter().fold(0_u32, |code, byte| code << 8 | u32::from(*byte));
            self.widths.get(&code).copied().unwrap_or(self.usual)
        };
        (codes.map(width).sum(), n)
    }
}

/// `FirstChar` and `Widths`.
fn simple_widths(document: &Document, font: &Dictionary) -> HashMap<u32, f32> {
    let first = font.get_deref(b"FirstChar", document).and_then(Object::as_i64);
    let widths = font.get_deref(b"Widths", document).and_then(Object::as_array);
    let (Ok(first), Ok(widths)) = (first, widths) else { return HashMap::new() };
    let at = |n: usize| u32::try_from(first).ok()?.checked_add(u32::try_from(n).ok()?);
    let widths = widths.iter().take(256).enumerate();
    let known = widths.filter_map(|(n, width)| Some((at(n)?, number(document, width)?)));
    known.filter(|(_, width)| *width > 0.0).collect()
}

/// `W` and `DW` of the descendant: `code [width …]` and `first last width`.
fn composite_widths(document: &Document, font: &Dictionary) -> (HashMap<u32, f32>, f32) {
    let descendant = font.get_deref(b"DescendantFonts", document).and_then(Object::as_array).ok();
    let descendant = descendant.and_then(|fonts| document.dereference(fonts.first()?).ok()?.1.as_dict().ok());
    let Some(descendant) = descendant else { return (HashMap::new(), SQUARE) };
    let usual = descendant.get_deref(b"DW", document).ok().and_then(|it| number(document, it));
    let mut widths = HashMap::new();
    let list = descendant.get_deref(b"W", document).and_then(Object::as_array).map(Vec::as_slice);
    let mut list = list.unwrap_or_default();
    while let [first, second, rest @ ..] = list {
        let Some(first) = number(document, first).filter(|it| *it >= 0.0) else { break };
        let first = first as u32;
        match (document.dereference(second).ok().and_then(|it| it.1.as_array().ok()), rest) {
            (Some(each), rest) => {
                for (n, width) in each.iter().take(MAX_CODES as usize).enumerate() {
                    if let Some(width) = number(document, width) {
                        widths.insert(first.saturating_add(n as u32), width);
                    }
                }
                list = rest;
            }
            (None, [width, rest @ ..]) => {
                let last = number(document, second).map_or(first, |it| it as u32);
                if let Some(width) = number(document, width)
                    && i64::from(last.saturating_sub(first)) < MAX_CODES
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

pub fn number(document: &Document, object: &Object) -> Option<f32> {
    document.dereference(object).ok()?.1.as_float().ok().filter(|it| it.is_finite())
}
