//! The pieces of a line as they stand on the page, whatever the order in which they were drawn.
//!
//! Needed where letters are written from right to left. Some programs draw such a line from left to right, some letter by
//! letter from the right, and some draw all letters of one font before those of another.

use super::bidi;
use super::font_source::GlyphText;

/// A wider gap parts columns, in heights of the letters.
const COLUMN_GAP: f32 = 2.0;

/// Longest line in which accents look for their letter. Hostile files have longer ones.
const MAX_PIECES: usize = 4096;

/// Text that was drawn in one go.
struct ShownPiece {
    glyphs: GlyphText,
    begin: f32,
    end: f32,
    height: f32,
    is_mark: bool,
}

/// The pieces at one height, in the order in which they were drawn.
#[derive(Default)]
pub struct ShownLine {
    pieces: Vec<ShownPiece>,
    has_right_to_left: bool,
}

impl ShownLine {
    /// Adds a piece from `begin` to `end`, measured in the direction of writing.
    pub fn push(&mut self, glyphs: &GlyphText, (begin, end): (f32, f32), height: f32) {
        self.has_right_to_left |= bidi::is_right_to_left(&glyphs.text);
        let (glyphs, is_mark) = (glyphs.clone(), bidi::is_mark(&glyphs.text));
        self.pieces.push(ShownPiece { glyphs, begin, end, height, is_mark });
    }

    /// The last piece reaches to `end`: glyphs without a text follow it.
    pub fn extend(&mut self, end: f32) {
        if let Some(last) = self.pieces.last_mut() {
            last.end = last.end.max(end);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// A gap without a width.
    pub fn push_space(&mut self) {
        if let Some(last) = self.pieces.last_mut() {
            last.glyphs.push(" ");
        }
    }

    /// Takes all pieces out and returns the line in reading order, columns parted by line breaks. None: it has no
    /// right-to-left letters, so that it was drawn in reading order. A gap of more than `space` heights stands for a space.
    pub fn take(&mut self, space: f32) -> Option<String> {
        let Self { pieces, has_right_to_left } = std::mem::take(self);
        if !has_right_to_left {
            return None;
        }
        let mut places: Vec<(f32, usize)> = Vec::new();
        let bases = if pieces.len() <= MAX_PIECES { &pieces[..] } else { &[] };
        for (at, piece) in pieces.iter().enumerate() {
            let base = bases.iter().find(|base| piece.is_mark && !base.is_mark && base.is_around(piece));
            places.push((base.map_or(piece.begin, |base| base.begin.min(piece.begin)), at));
        }
        // An accent comes before its letter, as in what is drawn from left to right.
        places.sort_by(|(one, a), (other, b)| {
            one.total_cmp(other).then(pieces[*b].is_mark.cmp(&pieces[*a].is_mark)).then(a.cmp(b))
        });
        let mut columns: Vec<Column> = Vec::new();
        for (_, at) in places {
            let piece = &pieces[at];
            match columns.last_mut() {
                Some(column) if piece.begin - column.end < piece.height * COLUMN_GAP => {
                    column.push(at, piece, space);
                }
                Some(_) | None => columns.push(Column::new(at, piece)),
            }
        }
        columns.sort_by_key(|column| column.first);
        let texts: Vec<String> =
            columns.iter().map(|column| one_line(bidi::in_reading_order(&column.glyphs).trim())).collect();
        Some(texts.join("\n"))
    }
}

impl ShownPiece {
    fn is_around(&self, mark: &Self) -> bool {
        let middle = (mark.begin + mark.end) / 2.0;
        self.begin <= middle && middle <= self.end
    }
}

/// Pieces that stand close to each other.
struct Column<'a> {
    /// The first of them that was drawn.
    first: usize,
    end: f32,
    glyphs: Vec<&'a str>,
}

impl<'a> Column<'a> {
    fn new(at: usize, piece: &'a ShownPiece) -> Self {
        Self { first: at, end: piece.end, glyphs: piece.glyphs.iter().collect() }
    }

    fn push(&mut self, at: usize, piece: &'a ShownPiece, space: f32) {
        let is_spaced =
            self.glyphs.last().is_some_and(|last| last.ends_with(' ')) || piece.glyphs.text.starts_with(' ');
        if piece.begin > self.end + piece.height * space && !is_spaced {
            self.glyphs.push(" ");
        }
        self.glyphs.extend(piece.glyphs.iter());
        (self.first, self.end) = (self.first.min(at), self.end.max(piece.end));
    }
}

/// A text without line breaks.
fn one_line(text: &str) -> String {
    text.replace(['\r', '\n', super::PAGE_BREAK, '\0'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces with the place where they begin; a letter is one wide.
    fn taken(pieces: &[(f32, &str)]) -> Option<String> {
        let mut line = ShownLine::default();
        for (begin, text) in pieces {
            let mut glyphs = GlyphText::default();
            text.chars().for_each(|c| glyphs.push(c.encode_utf8(&mut [0; 4])));
            line.push(&glyphs, (*begin, begin + text.chars().count() as f32), 1.0);
        }
        line.take(0.3)
    }

    #[test]
    fn pieces_are_read_where_they_stand_whatever_was_drawn_first() {
        assert_eq!(taken(&[(0.0, "plain"), (5.0, " text")]), None);
        assert_eq!(
            taken(&[(3.0, "ש"), (2.0, "ל"), (1.0, "ו"), (0.0, "ם")]).unwrap(),
            "שלום",
            "letter by letter"
        );
        assert_eq!(taken(&[(5.0, "םולש"), (0.0, "םלוע")]).unwrap(), "שלום עולם", "word by word");
        assert_eq!(taken(&[(5.0, "םולש"), (0.0, "12"), (3.0, ".")]).unwrap(), "שלום . 12");
    }

    #[test]
    fn columns_stay_apart_in_the_order_in_which_they_were_drawn() {
        assert_eq!(taken(&[(20.0, "םולש"), (0.0, "םלוע")]).unwrap(), "שלום\nעולם");
        assert_eq!(taken(&[(0.0, "total"), (20.0, "םולש")]).unwrap(), "total\nשלום");
    }

    #[test]
    fn an_accent_goes_with_the_letter_below_it() {
        let dagesh = "\u{5bc}";
        assert_eq!(taken(&[(1.0, "ב"), (1.2, dagesh), (0.0, "ר")]).unwrap(), format!("ב{dagesh}ר"));
    }
}
