//! Non-joiners, which Persian writes within words. Pages show them as glyphs that move nothing: WeasyPrint as empty strings,
//! TeX as blanks that the next letter covers. Between two Arabic letters no other invisible character is of use.

use lopdf::{Document, Object};

use super::bidi;
use super::font_source::{GlyphText, number};
use super::fonts::Font;

const NON_JOINER: &str = "\u{200c}";

/// How much of its width a blank is moved back that has none.
const COVERED: f32 = 0.6;

/// A string of glyphs among others.
pub struct ShownString<'a> {
    pub glyphs: &'a GlyphText,
    /// The text of the string before.
    pub before: &'a str,
    /// What is shown after it.
    pub follow: &'a [Object],
}

impl ShownString<'_> {
    /// The glyphs with the non-joiner at their end. None: they have none.
    pub fn with_non_joiner(&self, document: &Document, font: &Font) -> Option<GlyphText> {
        let may_be_one = |text: &str| text.is_empty() || text.ends_with([' ', '\u{a0}']);
        if !may_be_one(&self.glyphs.text) || self.follow.len() < 2 {
            return None;
        }
        let [gap, Object::String(next, _), ..] = self.follow else { return None };
        let back = number(document, gap)?;
        let is_blank = |text: &str| matches!(text, " " | "\u{a0}");
        let texts: Vec<&str> = self.glyphs.iter().collect();
        let (before, is_invisible) = match texts[..] {
            [] => (self.before, back == 0.0),
            [.., before, last] if is_blank(last) => (before, back > self.last_width() * COVERED),
            [last] if is_blank(last) => (self.before, back > self.last_width() * COVERED),
            _ => return None,
        };
        if !is_invisible || next.is_empty() || !bidi::is_right_to_left(before) {
            return None;
        }
        let mut follow = GlyphText::default();
        font.read(next, &mut follow);
        // A letter of several glyphs may have its text elsewhere.
        let is_letter = |text: &str| text.is_empty() || bidi::is_right_to_left(text);
        follow.iter().next().filter(|text| is_letter(text))?;
        let mut glyphs = self.glyphs.clone();
        match texts.len() {
            0 => glyphs.push(NON_JOINER, 0.0),
            n => {
                glyphs.pop_char();
                glyphs.text.push_str(NON_JOINER);
                glyphs.ends[n - 1] = glyphs.text.len();
            }
        }
        Some(glyphs)
    }

    fn last_width(&self) -> f32 {
        self.glyphs.widths.last().copied().unwrap_or(0.0)
    }
}
