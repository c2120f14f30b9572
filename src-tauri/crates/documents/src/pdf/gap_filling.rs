//! Lines whose pieces were not drawn from left to right. LibreOffice draws letters that another font lends last, back in
//! the gaps that it left for them. They return there; everything else keeps the order in which it was drawn.

use super::bidi;
use super::shown_piece::{COLUMN_GAP, ShownPiece};

/// Pieces of one line that are looked at. Lines have fewer.
const MAX_PIECES: usize = 4096;

/// Parts of a line that are looked at for a gap.
const MAX_RUNS: usize = 16;

/// The next word of a line begins closer, in heights of the letters.
const WORD_GAP: f32 = 0.5;

/// How far letters reach into the gap beside them, in heights of the letters.
const OVERHANG: f32 = 0.2;

/// Pieces from left to right, none over another.
struct PieceRun<'a> {
    pieces: Vec<&'a ShownPiece>,
}

impl<'a> PieceRun<'a> {
    /// A piece goes on after the one at a place, is an accent on it, or the letter below it.
    fn goes_on_after(&self, at: usize, piece: &ShownPiece) -> bool {
        let (last, next) = (self.pieces[at], self.pieces.get(at + 1));
        let is_before_next = next.is_none_or(|next| piece.begin <= next.begin);
        let is_below_accent = bidi::is_mark(&last.glyphs.text)
            && (piece.begin..=piece.end + piece.height * WORD_GAP).contains(&last.begin);
        bidi::is_mark(&piece.glyphs.text) || is_below_accent || piece.begin >= last.begin && is_before_next
    }

    /// A piece stands over the one at a place: an index over another, or a letter of two glyphs.
    fn covers(&self, at: usize, piece: &ShownPiece) -> bool {
        let last = self.pieces[at];
        piece.begin < last.end && piece.end > last.begin
    }

    /// Where a piece fits without covering others. None: nowhere near these.
    fn gap_for(&self, piece: &ShownPiece) -> Option<usize> {
        let overhang = piece.height * OVERHANG;
        let at = self.pieces.partition_point(|other| other.begin <= piece.begin);
        let before = at.checked_sub(1).map(|at| self.pieces[at]);
        let after = self.pieces.get(at);
        let covers = before.is_some_and(|before| before.end > piece.begin + overhang)
            || after.is_some_and(|after| piece.end > after.begin + overhang);
        // What stands farther before a line is a note in the margin.
        let is_near = before.is_some_and(|before| piece.begin - before.end < piece.height * COLUMN_GAP)
            || after.is_some_and(|after| after.begin - piece.end < piece.height * WORD_GAP);
        (is_near && !covers).then_some(at)
    }
}

/// The texts of the parts of a line without right-to-left letters. None: no piece fills a gap.
/// A gap of more than `space` heights stands for a space.
pub fn runs_with_filled_gaps(pieces: &[ShownPiece], space: f32) -> Option<Vec<String>> {
    let is_drawn_back = pieces.windows(2).any(|pair| pair[1].begin < pair[0].begin);
    if !is_drawn_back || pieces.len() > MAX_PIECES {
        return None;
    }
    let mut runs: Vec<PieceRun> = Vec::new();
    // Where the last piece went: its run, and its place there.
    let mut last: Option<(usize, usize)> = None;
    let mut n_filled = 0;
    for piece in pieces {
        let next = last.filter(|(run, at)| runs[*run].goes_on_after(*at, piece));
        let near_runs = (runs.len().saturating_sub(MAX_RUNS)..runs.len()).rev();
        let gap = || near_runs.filter_map(|run| Some((run, runs[run].gap_for(piece)?))).next();
        let after_last = next.map(|(run, at)| (run, at + 1));
        let over_last =
            || last.filter(|(run, at)| runs[*run].covers(*at, piece)).map(|(run, at)| (run, at + 1));
        let (run, at) = after_last.or_else(gap).or_else(over_last).unwrap_or((runs.len(), 0));
        if run == runs.len() {
            runs.push(PieceRun { pieces: Vec::new() });
        }
        n_filled += usize::from(next.is_none() && at < runs[run].pieces.len());
        runs[run].pieces.insert(at, piece);
        last = Some((run, at));
    }
    (n_filled > 0).then(|| runs.iter().map(|run| text(run, space)).collect())
}

fn text(run: &PieceRun, space: f32) -> String {
    let mut text = String::new();
    let mut end = f32::INFINITY;
    for piece in &run.pieces {
        let shown = &piece.glyphs.text;
        if piece.begin > end + piece.height * space && !text.ends_with(' ') && !shown.starts_with(' ') {
            text.push(' ');
        }
        text.push_str(shown);
        end = piece.end;
    }
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pdf::font_source::GlyphText;

    /// Pieces with the place where they begin; each letter is one wide and one high.
    fn runs(pieces: &[(f32, &str)]) -> Option<Vec<String>> {
        let piece = |(begin, text): &(f32, &str)| {
            let mut glyphs = GlyphText::default();
            text.chars().for_each(|c| glyphs.push(c.encode_utf8(&mut [0; 4]), 1.0));
            let end = begin + glyphs.widths.iter().sum::<f32>();
            ShownPiece { glyphs, begin: *begin, end, height: 1.0 }
        };
        runs_with_filled_gaps(&pieces.iter().map(piece).collect::<Vec<_>>(), 0.3)
    }

    #[test]
    fn borrowed_letters_return_to_their_gaps() {
        let cases: &[(&[(f32, &str)], &str)] = &[
            (&[(0.0, "Ti"), (3.0, "ng Vi"), (9.0, "t"), (2.0, "ế"), (8.0, "ệ")], "Tiếng Việt"),
            (&[(1.0, " is first"), (0.0, "ℵ")], "ℵ is first"),
            (&[(0.0, "a"), (5.0, "d"), (2.0, "bc")], "a bc d"),
            // Two borrowed letters beside each other, the second one with an accent.
            (&[(0.0, "x"), (3.0, "y"), (1.0, "η"), (2.0, "a"), (2.0, "\u{301}")], "xηa\u{301}y"),
        ];
        for (pieces, expected) in cases {
            assert_eq!(runs(pieces).unwrap(), [*expected], "{pieces:?}");
        }
    }

    #[test]
    fn what_fills_no_gap_stays_as_it_was_drawn() {
        // From left to right; an index over another one; a column left of the last one.
        for pieces in [
            &[(0.0, "plain"), (5.0, " text")][..],
            &[(0.0, "x"), (1.0, "2"), (1.0, "i"), (3.0, "y")],
            &[(20.0, "right"), (0.0, "left")],
        ] {
            assert_eq!(runs(pieces), None, "{pieces:?}");
        }
        let columns = [(20.0, "ri"), (23.0, "ht"), (22.0, "g"), (0.0, "left")];
        assert_eq!(runs(&columns).unwrap(), ["right", "left"]);
    }

    #[test]
    fn a_line_of_many_pieces_takes_no_longer_than_it_must() {
        let scattered: Vec<(f32, &str)> =
            (0..MAX_PIECES).map(|n| ((n * 7919 % 10_007) as f32, "x")).collect();
        let began = std::time::Instant::now();
        drop(runs(&scattered));
        assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
        assert_eq!(runs(&[scattered, vec![(0.0, "x")]].concat()), None);
    }
}
