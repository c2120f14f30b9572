//! Joins pieces of text into lines by their positions: inserts spaces and line breaks.
//! Positions are measured along and across the direction of writing, so that rotated text reads as well.
//! Lines with letters that are written from right to left are put into the order in which they are read.

use super::bidi;
use super::font_source::GlyphText;
use super::overlaid_accents;
use super::shown_line::ShownLine;

/// A gap wider than this part of the letters' height is a space. TeX narrows spaces of Times to 0.16.
const SPACE: f32 = 0.13;
/// A piece so far up or down is on another line.
const LINE: f32 = 0.5;
/// Farther than this the next line begins a paragraph.
const PARAGRAPH: f32 = 1.9;
/// Accents, and letters that stand before each other, are at most one height apart.
const BACK: f32 = 1.0;
/// Letters drawn twice for bold stand closer than this part of their height.
const TWICE: f32 = 0.08;
/// Nastaliq writes words down a slope: a letter right beside the last one is on its line up to here.
const SLOPE: f32 = 1.2;
/// Letters of a sloping word are no farther apart.
const BESIDE: f32 = 0.4;
/// Cosine of the angle from which on directions differ: about ten degrees.
const SAME_DIRECTION: f32 = 0.985;

/// Where a piece of text stands, in the page's units.
#[derive(Debug, Clone, Copy)]
pub struct PieceSpan {
    pub start: (f32, f32),
    /// Unit vector of the direction of writing.
    pub direction: (f32, f32),
    pub width: f32,
    pub height: f32,
}

/// The last piece, measured along and across its direction.
struct LastPiece {
    direction: (f32, f32),
    begin: f32,
    end: f32,
    /// The middle of its last glyph.
    last_middle: f32,
    /// Of accents: that of their letter.
    across: f32,
    height: f32,
    /// Where its text begins in the page's.
    at: usize,
}

/// A page's text as it grows.
#[derive(Default)]
pub struct Lines {
    text: String,
    last: Option<LastPiece>,
    /// Where the text of `line` begins.
    line_at: usize,
    line: ShownLine,
    /// Across the direction: where its lowest letter stands. Sloping words end there.
    line_low: f32,
    /// The line before it is read from right to left, and no paragraph begins after it.
    is_rtl: bool,
}

impl Lines {
    /// Adds a piece where it stands.
    pub fn put(&mut self, span: PieceSpan, glyphs: &GlyphText) {
        let accented = self.take_accent_below(span, glyphs);
        let glyphs = accented.as_ref().unwrap_or(glyphs);
        let piece = glyphs.text.as_str();
        let (ux, uy) = span.direction;
        let (x, y) = span.start;
        let (begin, across) = (x * ux + y * uy, y * ux - x * uy);
        let mut end = begin + span.width;
        let height = span.height.abs().max(0.1);
        if piece.is_empty() {
            if let Some(last) = self.last.as_mut().filter(|_| span.width > 0.0) {
                last.end = end;
                if (across - last.across).abs() <= height * LINE {
                    // The text may stand where an accent was drawn before its letter: this one.
                    self.line.extend((begin, end), height * BACK);
                    last.across = across;
                }
            }
            return;
        }
        let is_mark = bidi::is_mark(piece);
        let mut line_across = across;
        if let Some(last) = self.last.take() {
            let high = height.max(last.height);
            let aside = self.distance_aside(&last, (begin, end), across);
            let is_turned = ux * last.direction.0 + uy * last.direction.1 < SAME_DIRECTION;
            let is_left_neighbour = begin < last.begin && (end - last.begin).abs() < high * BACK;
            let is_narrow = last.end - last.begin <= high * BACK;
            let is_accent = is_narrow && begin >= last.begin - high * BACK;
            let is_twice = (begin - last.begin).abs() < high * TWICE
                && aside < high * TWICE
                && self.text.get(last.at..) == Some(piece);
            if is_twice && !is_turned {
                self.last = Some(last);
                return;
            }
            let line_height = self.line_height(&last, (begin, end), piece);
            if is_turned || aside > high * line_height {
                self.order_line();
            }
            if is_turned || aside > high * PARAGRAPH {
                self.end_line();
                self.end_paragraph();
                self.is_rtl = false;
            } else if aside > high * line_height || begin <= last.begin && !is_accent && !is_left_neighbour {
                self.end_line();
            } else if begin > last.end + high * SPACE || is_left_neighbour && end < last.begin - high * SPACE
            {
                self.push_space();
            }
            if is_mark && !is_turned && aside <= high * LINE {
                // One accent may stand high above the line and the next one deep below it.
                line_across = last.across;
                // It may have been drawn by going back over its letter.
                end = end.max(last.end);
            }
        }
        if self.line.is_empty() {
            self.line_at = self.text.len();
            self.line_low = line_across;
        }
        self.line_low = self.line_low.min(line_across);
        self.line.push(glyphs, (begin, begin + span.width), height);
        let at = self.text.len();
        let is_break = |c: char| matches!(c, '\r' | '\n' | super::PAGE_BREAK | '\0');
        self.text.extend(piece.chars().map(|c| if is_break(c) { ' ' } else { c }));
        let last_middle = begin + span.width * (1.0 - glyphs.edge_shares().1 / 2.0);
        let direction = span.direction;
        self.last = Some(LastPiece { direction, begin, end, last_middle, across: line_across, height, at });
    }

    /// How far up or down a piece is from the last one, or from the ends of the words on a right-to-left line.
    fn distance_aside(&self, last: &LastPiece, (begin, end): (f32, f32), across: f32) -> f32 {
        let from_last = (across - last.across).abs();
        // What stands below the last piece is no part of its line.
        let overlap = end.min(last.end) - begin.max(last.begin);
        let is_below = overlap > (end - begin).min(last.end - last.begin) / 2.0;
        match self.line.has_right_to_left() && !is_below {
            true => from_last.min((across - self.line_low).abs()),
            false => from_last,
        }
    }

    /// How far a piece may be up or down on the line of the last one, in heights of the letters.
    fn line_height(&self, last: &LastPiece, (begin, end): (f32, f32), piece: &str) -> f32 {
        let is_near = |distance: f32| distance.abs() < last.height * BESIDE;
        let is_beside = is_near(begin - last.end) || is_near(end - last.begin);
        let is_blank_or_rtl = bidi::is_right_to_left(piece) || piece.trim().is_empty();
        match self.line.has_right_to_left() && is_blank_or_rtl && is_beside {
            true => SLOPE,
            false => LINE,
        }
    }

    /// Moves an accent that was drawn last onto the letter that is drawn over it. None: none was.
    fn take_accent_below(&mut self, span: PieceSpan, glyphs: &GlyphText) -> Option<GlyphText> {
        let accent = overlaid_accents::accent_at_end(&self.text)?;
        let last = self.last.as_ref().filter(|last| last.at < self.text.len())?;
        let (ux, uy) = span.direction;
        let (x, y) = span.start;
        let (begin, across) = (x * ux + y * uy, y * ux - x * uy);
        let letter_end = begin + span.width * glyphs.edge_shares().0;
        let is_below = (begin - last.height * TWICE..=letter_end).contains(&last.last_middle)
            && span.direction == last.direction
            && (across - last.across).abs() <= last.height * LINE;
        let accented = overlaid_accents::with_accent(glyphs, accent).filter(|_| is_below)?;
        self.text.pop();
        self.line.pop_char();
        Some(accented)
    }

    /// A gap that the file itself makes between two letters.
    pub fn space(&mut self) {
        self.line.push_space();
        self.push_space();
    }

    fn push_space(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with([' ', '\n']) {
            self.text.push(' ');
        }
    }

    /// Puts a line with right-to-left letters into reading order, now that all of it is known.
    fn order_line(&mut self) {
        let line = self.line.take(SPACE, self.is_rtl);
        self.is_rtl = line.as_ref().is_some_and(|line| line.is_rtl);
        if let Some(line) = line {
            self.text.truncate(self.line_at);
            self.text.push_str(&line.text);
        }
    }

    fn end_line(&mut self) {
        let end = self.text.trim_end_matches(' ').len();
        self.text.truncate(end);
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    fn end_paragraph(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    pub fn len(&self) -> usize {
        self.text.len()
    }

    pub fn into_text(mut self) -> String {
        self.order_line();
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of pieces of one height with their start and width.
    fn text(pieces: &[((f32, f32), f32, &str)]) -> String {
        let mut lines = Lines::default();
        for (start, width, piece) in pieces {
            let mut glyphs = GlyphText::default();
            piece.chars().for_each(|c| glyphs.push(c.encode_utf8(&mut [0; 4]), 1.0));
            lines.put(
                PieceSpan { start: *start, direction: (1.0, 0.0), width: *width, height: 10.0 },
                &glyphs,
            );
        }
        lines.into_text()
    }

    #[test]
    fn strings_without_glyphs_move_nothing() {
        // WeasyPrint moves by empty strings between accents.
        let pieces = [((50.0, 0.0), 10.0, "םי"), ((60.0, 0.0), 3.0, " "), ((40.0, 0.0), 0.0, "")];
        assert_eq!(
            text(&[&pieces[..], &[((63.0, 0.0), 5.0, "ל"), ((40.0, 0.0), 10.0, "אב")]].concat()),
            "ל יםבא"
        );
    }

    #[test]
    fn accents_drawn_back_over_their_letter_make_no_space() {
        let pieces = [((0.0, 0.0), 6.0, "ป"), ((-1.0, 0.0), 0.0, "\u{e47}"), ((6.0, 0.0), 6.0, "น")];
        assert_eq!(text(&pieces), "ป\u{e47}น");
    }

    #[test]
    fn accents_high_above_and_deep_below_stay_on_their_line() {
        let pieces = [
            ((8.0, 4.5), 0.0, "\u{64e}"),
            ((5.0, 0.0), 5.0, "أ"),
            ((3.0, -3.0), 0.0, "\u{650}"),
            ((1.0, 4.0), 0.0, "\u{652}"),
            ((0.0, 0.0), 5.0, "ت"),
        ];
        let shown = text(&pieces);
        assert!(!shown.contains('\n'), "{shown:?}");
    }

    #[test]
    fn words_of_nastaliq_slope_and_stay_on_their_line() {
        // The left end of a word is low, and the next word begins high again.
        let pieces = [
            ((0.0, 0.0), 5.0, "ت"),
            ((5.0, 4.0), 5.0, "س"),
            ((10.0, 9.0), 5.0, "د"),
            ((15.0, 9.0), 3.0, " "),
        ];
        let word = [((18.0, 0.0), 5.0, "ن"), ((23.0, 8.0), 5.0, "آ")];
        assert_eq!(text(&[&pieces[..], &word].concat()), "آن دست");
        let next_line = [((0.0, -25.0), 5.0, "ب")];
        assert_eq!(text(&[&pieces[..], &next_line].concat()), "دست\n\nب");
    }

    #[test]
    fn accents_below_their_letter_are_part_of_it() {
        type Piece = ((f32, f32), f32, &'static str);
        let cases: &[(&[Piece], &str)] = &[
            (&[((0.0, 0.0), 15.0, "caf"), ((15.3, 0.0), 5.0, "´"), ((15.1, 0.0), 5.0, "e")], "café"),
            (&[((0.0, 0.0), 15.0, "na¨"), ((10.5, 0.0), 12.0, "ıve")], "naïve"),
            (&[((0.0, 0.0), 5.0, "a"), ((7.0, 0.0), 0.0, "\u{338}"), ((7.0, 0.0), 7.0, "=")], "a ≠"),
            // Beside it an accent is one by itself.
            (&[((0.0, 0.0), 5.0, "´"), ((5.0, 0.0), 5.0, "e")], "´e"),
        ];
        for (pieces, expected) in cases {
            assert_eq!(text(pieces), *expected, "{pieces:?}");
        }
    }
}
