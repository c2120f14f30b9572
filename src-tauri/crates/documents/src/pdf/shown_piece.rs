//! Text that a page shows in one go, and where it stands along its line.

use super::font_source::GlyphText;

/// A wider gap parts columns, in heights of the letters.
pub const COLUMN_GAP: f32 = 2.0;

/// Text that was drawn in one go.
pub struct ShownPiece {
    pub glyphs: GlyphText,
    pub begin: f32,
    pub end: f32,
    pub height: f32,
}
