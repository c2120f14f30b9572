//! The pieces of a line as they stand on the page, whatever the order in which they were drawn.
//!
//! Needed where letters are written from right to left. Some programs draw such a line from left to right, some letter by
//! letter from the right, and some draw all letters of one font before those of another.

use std::borrow::Cow;
use std::collections::HashMap;

use super::bidi::{self, OrderedLine};
use super::brackets::LineGlyph;
use super::font_source::{GlyphText, Mirroring};
use super::shown_piece::{COLUMN_GAP, ShownPiece};
use super::{arabic_ligatures, gap_filling};

/// An accent stands no farther from its letter, in heights of the letters.
const ACCENT_REACH: f32 = 1.0;

/// How much closer another letter has to be than the one that the drawing order speaks for, in heights of the letters.
/// Fonts place the origin of accents on either side of their shape, so small distances say nothing.
const CLEARLY_CLOSER: f32 = 0.25;

/// A gap wider than this is a space on a line that draws others as blanks, in heights of the letters.
const SPACE_BESIDE_BLANKS: f32 = 0.3;

/// Such a line has more blanks for each other gap. Some programs draw few blanks, of which none ends a word.
const BLANKS_OF_GAP: usize = 3;

/// Letters whose begins are closer begin at the same place, in heights of the letters.
const SAME_PLACE: f32 = 0.1;

/// The pieces at one height, in the order in which they were drawn.
#[derive(Default)]
pub struct ShownLine {
    pieces: Vec<ShownPiece>,
    has_right_to_left: bool,
    has_letters: bool,
}

impl ShownLine {
    /// Adds a piece from `begin` to `end`, measured in the direction of writing.
    pub fn push(&mut self, glyphs: &GlyphText, (begin, end): (f32, f32), height: f32) {
        self.has_right_to_left |= bidi::is_right_to_left(&glyphs.text);
        self.has_letters |= bidi::is_left_to_right(&glyphs.text);
        self.pieces.push(ShownPiece { glyphs: glyphs.clone(), begin, end, height });
    }

    /// The last piece reaches from `begin` to `end` too: glyphs without a text of their own follow it. Those that begin
    /// more than `back` before it stand elsewhere.
    pub fn extend(&mut self, (begin, end): (f32, f32), back: f32) {
        if let Some(last) = self.pieces.last_mut() {
            if begin >= last.begin - back {
                last.begin = last.begin.min(begin);
            }
            last.end = last.end.max(end);
        }
    }

    /// Some of its letters are written from right to left.
    pub fn has_right_to_left(&self) -> bool {
        self.has_right_to_left
    }

    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Takes away the last character of the last piece.
    pub fn pop_char(&mut self) {
        if let Some(last) = self.pieces.last_mut() {
            last.glyphs.pop_char();
        }
        self.pieces.pop_if(|last| last.glyphs.text.is_empty());
    }

    /// A gap without a width.
    pub fn push_space(&mut self) {
        if let Some(last) = self.pieces.last_mut() {
            last.glyphs.push(" ", 0.0);
        }
    }

    /// Takes all pieces out and returns the line in reading order, columns parted by line breaks. None: it has no
    /// right-to-left letters and was drawn in reading order. A gap of more than `space` heights stands for a space.
    /// `is_after_rtl`: so has the line before it, and a line without letters goes on like that.
    pub fn take(&mut self, space: f32, is_after_rtl: bool) -> Option<OrderedLine> {
        let Self { pieces, has_right_to_left, has_letters } = std::mem::take(self);
        // A stop that was drawn left of Latin words may end a sentence that is read from the right.
        let is_drawn_back = || pieces.windows(2).any(|pair| pair[1].begin < pair[0].begin);
        if !has_right_to_left && (!is_after_rtl || has_letters && !is_drawn_back()) {
            let runs = gap_filling::runs_with_filled_gaps(&pieces, space)?;
            let lines: Vec<String> = runs.iter().map(|run| one_line(run)).collect();
            return Some(OrderedLine { text: lines.join("\n"), is_rtl: false });
        }
        let clusters = clusters(&pieces);
        let order = order_from_left(&clusters);
        let mut columns = columns(&clusters, &order, space);
        // Letters lean over each other where blanks are drawn: a gap without one is no end of a word.
        let n_blanks = pieces.iter().filter(|piece| piece.glyphs.text.contains(' ')).count();
        let n_gaps: usize = columns.iter().map(|column| column.n_gaps).sum();
        if n_gaps > 0 && n_blanks > n_gaps * BLANKS_OF_GAP {
            columns = self::columns(&clusters, &order, space.max(SPACE_BESIDE_BLANKS));
        }
        columns.sort_by_key(|column| column.first);
        let lines: Vec<OrderedLine> =
            columns.iter().map(|column| bidi::in_reading_order(&column.glyphs, is_after_rtl)).collect();
        let is_rtl = lines.last().is_some_and(|line| line.is_rtl);
        let texts: Vec<String> = lines.into_iter().map(|line| one_line(line.text.trim())).collect();
        Some(OrderedLine { text: texts.join("\n"), is_rtl })
    }
}

/// One glyph of a piece.
struct ShownGlyph<'a> {
    text: &'a str,
    piece: &'a ShownPiece,
    begin: f32,
    end: f32,
    is_mark: bool,
}

impl<'a> ShownGlyph<'a> {
    /// The glyphs of a piece, in the order in which they were drawn.
    fn of_piece(piece: &'a ShownPiece) -> impl Iterator<Item = Self> {
        let total: f32 = piece.glyphs.widths.iter().sum();
        let scale = if total > 0.0 { (piece.end - piece.begin) / total } else { 0.0 };
        let mut begin = piece.begin;
        piece.glyphs.iter().zip(&piece.glyphs.widths).map(move |(text, width)| {
            let start = begin;
            begin += width * scale;
            let end = if total > 0.0 { begin } else { piece.end };
            Self { text, piece, begin: start, end, is_mark: bidi::is_mark(text) }
        })
    }

    /// How far the middle of an accent is from this letter, in heights of the letters.
    fn distance(&self, mark: &Self) -> f32 {
        let middle = (mark.begin + mark.end) / 2.0;
        (self.begin - middle).max(middle - self.end).max(0.0) / self.piece.height
    }
}

/// A letter with the accents on it.
struct Cluster<'a> {
    text: Cow<'a, str>,
    piece: &'a ShownPiece,
    /// Of the letter among the glyphs that were drawn.
    at: usize,
}

/// The letters in the order in which they were drawn, each followed by its accents.
fn clusters<'a>(pieces: &'a [ShownPiece]) -> Vec<Cluster<'a>> {
    let glyphs: Vec<ShownGlyph<'a>> = pieces.iter().flat_map(ShownGlyph::of_piece).collect();
    let bases = bases(&glyphs);
    let mut texts: Vec<Cow<'a, str>> = glyphs.iter().map(|glyph| Cow::Borrowed(glyph.text)).collect();
    let marks: Vec<(usize, usize)> =
        bases.iter().enumerate().filter_map(|(mark, base)| Some((mark, (*base)?))).collect();
    // What is drawn before its letter is drawn backwards: the accent next to the letter is its first one.
    let before = marks.iter().rev().filter(|(mark, base)| mark < base);
    let after = marks.iter().filter(|(mark, base)| mark > base);
    let mut accents: HashMap<usize, Vec<&str>> = HashMap::new();
    for (mark, base) in before.chain(after) {
        accents.entry(*base).or_default().push(glyphs[*mark].text);
    }
    for (base, accents) in accents {
        texts[base] = arabic_ligatures::with_accents(&texts[base], &accents).into();
    }
    let all = texts.into_iter().zip(&glyphs).zip(&bases).enumerate();
    all.filter(|(_, (_, base))| base.is_none())
        .map(|(at, ((text, glyph), _))| Cluster { text, piece: glyph.piece, at })
        .collect()
}

/// The numbers of letters by their place. Letters that begin at the same place, such as both of a ligature, follow each other in
/// the direction in which their neighbours were drawn.
fn order_from_left(clusters: &[Cluster]) -> Vec<usize> {
    let begins: Vec<f32> = clusters.iter().map(|cluster| cluster.piece.begin).collect();
    let mut order: Vec<usize> = (0..clusters.len()).collect();
    order.sort_by(|one, other| begins[*one].total_cmp(&begins[*other]));
    for at in 1..order.len() {
        let [left, right] = [order[at - 1], order[at]];
        let (first, second) = (left.min(right), left.max(right));
        let (one, other) = (clusters[first].piece, clusters[second].piece);
        let same = one.height * SAME_PLACE;
        let is_of_word = [left, right].iter().all(|at| is_of_rtl_word(&clusters[*at].text));
        if !is_of_word
            || second - first > 1
            || std::ptr::eq(one, other)
            || begins[right] - begins[left] > same
        {
            continue;
        }
        let before = first.checked_sub(1).and_then(|at| begins.get(at));
        let comes_from = before.map(|before| before - begins[first]).filter(|way| way.abs() > same);
        let goes_to = begins.get(second + 1).map(|after| begins[second] - after);
        let is_from_right = comes_from.or(goes_to).is_some_and(|way| way > 0.0);
        (order[at - 1], order[at]) = if is_from_right { (second, first) } else { (first, second) };
    }
    order
}

/// Has right-to-left letters, or is a joiner or non-joiner between them.
fn is_of_rtl_word(text: &str) -> bool {
    bidi::is_right_to_left(text) || matches!(text, "\u{200c}" | "\u{200d}")
}

/// Of each accent the letter that it stands on. None: no accent, or one that stands alone.
fn bases(glyphs: &[ShownGlyph]) -> Vec<Option<usize>> {
    let before = nearest_letters(glyphs.iter().enumerate());
    let mut after = nearest_letters(glyphs.iter().enumerate().rev());
    after.reverse();
    let neighbours = before.into_iter().zip(after);
    let base = |(mark, (before, after)): (&ShownGlyph, (Option<usize>, Option<usize>))| {
        if !mark.is_mark {
            return None;
        }
        let in_reach = |at: &usize| glyphs[*at].distance(mark) <= ACCENT_REACH;
        match (before.filter(in_reach), after.filter(in_reach)) {
            (Some(before), Some(after)) => {
                let (one, other) = (&glyphs[before], &glyphs[after]);
                // Drawn from the left, right-to-left text has its accents before their letter.
                if one.begin < other.begin && !bidi::is_left_to_right(one.text) {
                    return Some(after);
                }
                if one.begin > other.begin && one.piece.begin != other.piece.begin {
                    return Some(before);
                }
                let closer = one.distance(mark) - other.distance(mark);
                Some(if closer > CLEARLY_CLOSER { after } else { before })
            }
            (before, after) => before.or(after),
        }
    };
    glyphs.iter().zip(neighbours).map(base).collect()
}

/// The last letter that came before each glyph, within its word.
fn nearest_letters<'a, 'b: 'a>(
    glyphs: impl Iterator<Item = (usize, &'a ShownGlyph<'b>)>,
) -> Vec<Option<usize>> {
    let mut last = None;
    let mut nearest = Vec::new();
    for (at, glyph) in glyphs {
        nearest.push(last);
        if !glyph.is_mark {
            last = Some(at).filter(|_| !glyph.text.trim().is_empty());
        }
    }
    nearest
}

/// Letters from left to right, parted where wide gaps are.
fn columns<'a>(clusters: &'a [Cluster], order: &[usize], space: f32) -> Vec<Column<'a>> {
    let mut columns: Vec<Column> = Vec::new();
    for cluster in order.iter().map(|at| &clusters[*at]) {
        match columns.last_mut() {
            Some(column) if cluster.piece.begin - column.end < cluster.piece.height * COLUMN_GAP => {
                column.push(cluster, space);
            }
            Some(_) | None => columns.push(Column::new(cluster)),
        }
    }
    columns
}

/// Letters that stand close to each other.
struct Column<'a> {
    /// The first of them that was drawn.
    first: usize,
    end: f32,
    glyphs: Vec<LineGlyph<'a>>,
    /// Gaps that stand for spaces.
    n_gaps: usize,
}

impl<'a> Column<'a> {
    fn new(cluster: &'a Cluster) -> Self {
        let mut column = Self { first: cluster.at, end: cluster.piece.end, glyphs: Vec::new(), n_gaps: 0 };
        column.push_text(cluster);
        column
    }

    fn push(&mut self, cluster: &'a Cluster, space: f32) {
        let piece = cluster.piece;
        let is_spaced =
            self.glyphs.last().is_some_and(|last| last.text.ends_with(' ')) || cluster.text.starts_with(' ');
        if piece.begin > self.end + piece.height * space && !is_spaced {
            self.glyphs.push(LineGlyph::new(" ", Mirroring::Shown));
            self.n_gaps += 1;
        }
        self.push_text(cluster);
        (self.first, self.end) = (self.first.min(cluster.at), self.end.max(piece.end));
    }

    fn push_text(&mut self, cluster: &'a Cluster) {
        self.glyphs.push(LineGlyph::new(&cluster.text, cluster.piece.glyphs.mirroring));
    }
}

/// A text without line breaks.
fn one_line(text: &str) -> String {
    text.replace(['\r', '\n', super::PAGE_BREAK, '\0'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces with the place where they begin; a letter is one wide, an accent has no width.
    fn taken(pieces: &[(f32, &str)]) -> Option<String> {
        let mut line = ShownLine::default();
        for (begin, text) in pieces {
            let mut glyphs = GlyphText::default();
            for c in text.chars() {
                let letter = c.to_string();
                glyphs.push(&letter, if bidi::is_mark(&letter) { 0.0 } else { 1.0 });
            }
            let width: f32 = glyphs.widths.iter().sum();
            line.push(&glyphs, (*begin, begin + width), 1.0);
        }
        line.take(0.3, false).map(|line| line.text)
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
    fn accents_follow_their_letter_whatever_was_drawn_first() {
        let cases: &[&[(f32, &str)]] = &[
            // Letter by letter from the right.
            &[(1.0, "ב"), (1.2, "\u{5bc}"), (1.3, "\u{5b0}"), (0.0, "ר")],
            // From the left: the accents come before their letter, the last one first.
            &[(0.0, "ר"), (1.3, "\u{5b0}"), (1.2, "\u{5bc}"), (1.0, "ב")],
            // Their origin is left of the letter.
            &[(0.0, "ר"), (0.6, "\u{5b0}"), (0.7, "\u{5bc}"), (1.0, "ב")],
            // The line begins with them.
            &[(1.3, "\u{5b0}"), (1.2, "\u{5bc}"), (1.0, "ב"), (0.0, "ר")],
        ];
        for case in cases {
            assert_eq!(taken(case).unwrap(), "ב\u{5bc}\u{5b0}ר", "{case:?}");
        }
        let latin = [(0.0, "e"), (1.0, "\u{301}"), (1.0, "t"), (3.0, "ר")];
        assert_eq!(taken(&latin).unwrap(), "ר e\u{301}t");
    }

    #[test]
    fn a_line_of_many_accents_takes_no_longer_than_it_must() {
        let mut line = ShownLine::default();
        for at in 0..1 << 18 {
            let mut glyphs = GlyphText::default();
            glyphs.push(if at % 1024 == 0 { "ש" } else { "\u{5b0}" }, 0.0);
            line.push(&glyphs, (0.0, 0.0), 1.0);
        }
        let began = std::time::Instant::now();
        assert_eq!(line.take(0.3, false).unwrap().text.len(), 2 << 18);
        assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    }

    #[test]
    fn an_accent_far_right_of_its_letter_begin_makes_no_space() {
        let pieces = [(0.0, "ר"), (1.9, "\u{5b0}"), (1.0, "ב"), (2.0, "ם")];
        assert_eq!(taken(&pieces).unwrap(), "םב\u{5b0}ר");
    }

    #[test]
    fn letters_at_one_place_follow_the_direction_of_their_neighbours() {
        // LuaTeX draws from the right; the alef of such a ligature has no width.
        assert_eq!(taken(&[(2.0, "ق"), (1.0, "ل"), (1.0, "ا"), (0.0, "م")]).unwrap(), "قلام");
        // Chromium draws from the left.
        assert_eq!(taken(&[(0.0, "م"), (1.05, "ا"), (1.0, "ل"), (2.0, "ق")]).unwrap(), "قلام");
        // Beside a piece of which it is no part, a stop stays where it is.
        assert_eq!(taken(&[(2.0, "ש"), (1.0, "ל"), (1.0, "."), (0.0, "ם")]).unwrap(), "ש.לם");
    }

    #[test]
    fn a_stop_left_of_latin_words_ends_a_right_to_left_sentence() {
        let mut line = ShownLine::default();
        for (begin, text) in [(1.0, "3.5 MB"), (0.0, ".")] {
            let mut glyphs = GlyphText::default();
            text.chars().for_each(|c| glyphs.push(c.encode_utf8(&mut [0; 4]), 1.0));
            line.push(&glyphs, (begin, begin + text.len() as f32), 1.0);
        }
        assert_eq!(line.take(0.3, true).unwrap().text, "3.5 MB.");
    }
}
