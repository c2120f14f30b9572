//! Marked content whose `ActualText` replaces the glyphs that it draws.

use super::font_source::GlyphText;

/// Marks within marks.
const MAX_LEVELS: usize = 256;

/// The marks around what is drawn.
#[derive(Default)]
pub struct MarkedContent {
    level: usize,
    /// The mark that has an `ActualText`, and its text until it was shown.
    replaced: Option<(usize, Option<String>)>,
}

impl MarkedContent {
    /// `BMC` or `BDC`; `text` is its `ActualText`. Marks within one that has a text are part of it.
    pub fn begin(&mut self, text: Option<String>) {
        self.level = (self.level + 1).min(MAX_LEVELS);
        if let (Some(text), None) = (text, &self.replaced) {
            self.replaced = Some((self.level, Some(text)));
        }
    }

    /// `EMC`.
    pub fn end(&mut self) {
        if self.replaced.as_ref().is_some_and(|(level, _)| *level >= self.level) {
            self.replaced = None;
        }
        self.level = self.level.saturating_sub(1);
    }

    /// Glyphs have no text of their own here.
    pub fn is_replaced(&self) -> bool {
        self.replaced.is_some()
    }

    /// Puts the text in the place of the first glyphs, and nothing in that of the others.
    pub fn with_actual_text(&mut self, glyphs: &mut GlyphText) {
        if let Some((_, text)) = &mut self.replaced {
            *glyphs = text.take().map(GlyphText::replaced_by).unwrap_or_default();
        }
    }
}
