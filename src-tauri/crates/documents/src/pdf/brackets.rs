//! Pairs of brackets on a line, and what their texts say of the direction in which they are read.

use super::font_source::Mirroring;

/// What a glyph of a line stands for.
#[derive(Debug, Clone, Copy)]
pub struct LineGlyph<'a> {
    pub text: &'a str,
    pub mirroring: Mirroring,
}

impl<'a> LineGlyph<'a> {
    pub fn new(text: &'a str, mirroring: Mirroring) -> Self {
        Self { text, mirroring }
    }

    /// It belongs to a pair without an own direction.
    pub fn is_quote(self) -> bool {
        self.text.contains(|c| QUOTES.contains(c))
    }

    /// The pair that a bracket belongs to, by its first character, and whether it is that one.
    fn bracket(self) -> Option<(char, bool)> {
        let bracket = single(self.text)?;
        let other = mirrored(bracket)?;
        let pairs = if BRACKETS.contains(bracket) { BRACKETS } else { QUOTES };
        let at = pairs.chars().position(|c| c == bracket)?;
        let opening = if at % 2 == 0 { bracket } else { other };
        Some((opening, at % 2 == 0))
    }
}

/// Pairs of brackets (Unicode, BidiBrackets).
const BRACKETS: &str = "()[]{}⁅⁆⟦⟧⟨⟩⟪⟫⟬⟭⟮⟯〈〉《》「」『』【】〔〕〖〗〘〙〚〛（）［］｛｝";

/// Pairs that have no direction of their own.
const QUOTES: &str = "<>«»‹›";

/// Other pairs that are mirrored among right-to-left letters (Unicode, BidiMirroring).
const MIRRORED: &str = "<>«»‹›≤≥≪≫≮≯≺≻⊂⊃⊆⊇⊏⊐⊢⊣＜＞";

/// Brackets within brackets.
const MAX_OPEN_BRACKETS: usize = 63;

pub fn single(text: &str) -> Option<char> {
    let mut chars = text.chars();
    chars.next().filter(|_| chars.next().is_none())
}

/// The other one of a pair.
fn mirrored(c: char) -> Option<char> {
    // Of letters it need not be asked.
    if c.is_ascii_alphanumeric() || c == ' ' || ('\u{bc}'..'\u{2000}').contains(&c) {
        return None;
    }
    [BRACKETS, MIRRORED].into_iter().find_map(|pairs| {
        let at = pairs.chars().position(|other| other == c)?;
        pairs.chars().nth(at ^ 1)
    })
}

/// The other one of a pair of characters that look like each other's mirror image.
pub fn mirror(text: &str) -> Option<char> {
    single(text).and_then(mirrored)
}

/// What the texts of two brackets on a page say of their direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PairOrder {
    /// They look like a pair.
    Shown,
    /// They are meant as a pair that is read from the left.
    MeantLeft,
    /// They are meant as a pair that is read from the right.
    MeantRight,
}

/// Where brackets of one pair stand.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub struct BracketPair {
    pub left: usize,
    pub right: usize,
    pub order: PairOrder,
}

/// The pairs, in the order in which they begin on the page.
pub fn bracket_pairs(glyphs: &[LineGlyph]) -> Vec<BracketPair> {
    let mut open: Vec<(char, bool, usize)> = Vec::new();
    let mut pairs = Vec::new();
    for (right, glyph) in glyphs.iter().enumerate() {
        let Some((bracket, is_first)) = glyph.bracket() else { continue };
        let may_be_reversed = glyph.mirroring != Mirroring::Shown;
        let found = open.iter().rposition(|it| (it.0, it.1) == (bracket, !is_first));
        if let Some(n) = found.filter(|_| may_be_reversed || !is_first) {
            let left = open[n].2;
            let is_meant = |at: usize| glyphs[at].mirroring == Mirroring::Meant;
            let order = match is_first {
                true => PairOrder::MeantRight,
                false if is_meant(left) && is_meant(right) => PairOrder::MeantLeft,
                false => PairOrder::Shown,
            };
            // Signs of comparison have blanks on both sides.
            let is_blank = |at: usize| glyphs[at].text.trim().is_empty();
            if !(bracket == '<' && (is_blank(left + 1) || is_blank(right - 1))) {
                pairs.push(BracketPair { left, right, order });
            }
            open.truncate(n);
        } else if (may_be_reversed || is_first) && open.len() < MAX_OPEN_BRACKETS {
            open.push((bracket, is_first, right));
        }
    }
    pairs.sort_unstable();
    pairs
}
