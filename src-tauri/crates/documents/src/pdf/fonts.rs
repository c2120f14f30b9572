//! The fonts of a PDF: which text their codes stand for, and how wide that is.
//! What `ToUnicode` lacks is filled from the encoding, the glyph collection and the font file, in this order.

use lopdf::Object;

use super::composite::CompositeFont;
use super::font_source::{Advance, FontSource, GlyphText};
use super::simple::SimpleFont;

/// A font that can be read.
pub enum Font {
    Simple(Box<SimpleFont>),
    Composite(Box<CompositeFont>),
}

impl Font {
    /// `resource` is a font among a page's resources.
    pub fn new(source: &mut FontSource, resource: &Object) -> Option<Self> {
        let font = source.document.dereference(resource).ok()?.1.as_dict().ok()?;
        let has_descendants = font.has(b"DescendantFonts");
        let is_composite = font.get(b"Subtype").and_then(Object::as_name).is_ok_and(|name| name == b"Type0");
        Some(match is_composite || has_descendants {
            true => Self::Composite(Box::new(CompositeFont::new(source, font))),
            false => Self::Simple(Box::new(SimpleFont::new(source, font))),
        })
    }

    /// Appends what the bytes say.
    pub fn read(&self, bytes: &[u8], text: &mut GlyphText) -> Advance {
        match self {
            Self::Simple(font) => font.read(bytes, text),
            Self::Composite(font) => font.read(bytes, text),
        }
    }

    /// Glyphs beside each other say what each of them means. None: each says it alone.
    pub fn of_clusters(&self) -> Option<&CompositeFont> {
        match self {
            Self::Simple(_) => None,
            Self::Composite(font) => Some(font.as_ref()).filter(|font| font.has_clusters),
        }
    }

    /// Widths come from the file.
    pub fn is_measured(&self) -> bool {
        match self {
            Self::Simple(font) => font.is_measured,
            Self::Composite(_) => true,
        }
    }

    /// Lines run downwards.
    pub fn is_vertical(&self) -> bool {
        match self {
            Self::Simple(_) => false,
            Self::Composite(font) => font.is_vertical,
        }
    }
}
