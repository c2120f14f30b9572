//! Reading order of lines with letters that are written from right to left. A page shows their glyphs from left to right;
//! this inverts the reordering of the Unicode bidirectional algorithm (UAX #9), with
//! the line's main direction taken from its letters.

use unicode_bidi::{BidiClass, bidi_class};

/// What a glyph does to the order of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A letter that is written from left to right.
    Left,
    /// A letter that is written from right to left.
    Right,
    Number,
    /// Belongs to a number between digits, such as a decimal point.
    Separator,
    /// Belongs to a number beside digits, such as a percent sign.
    Terminator,
    /// An accent.
    Mark,
    Neutral,
}

impl Kind {
    fn of(glyph: &str) -> Self {
        let kinds = glyph.chars().map(Self::of_char);
        kinds
            .clone()
            .find(|kind| matches!(kind, Self::Left | Self::Right))
            .or(kinds.max_by_key(Self::weight))
            .unwrap_or(Self::Neutral)
    }

    fn of_char(c: char) -> Self {
        match bidi_class(c) {
            BidiClass::L => Self::Left,
            BidiClass::R | BidiClass::AL => Self::Right,
            BidiClass::EN | BidiClass::AN => Self::Number,
            BidiClass::ES | BidiClass::CS => Self::Separator,
            BidiClass::ET => Self::Terminator,
            BidiClass::NSM => Self::Mark,
            _ => Self::Neutral,
        }
    }

    /// Which of several characters decides for their glyph.
    fn weight(&self) -> u8 {
        match self {
            Self::Left | Self::Right => 4,
            Self::Number => 3,
            Self::Separator | Self::Terminator => 2,
            Self::Mark => 1,
            Self::Neutral => 0,
        }
    }
}

/// The text has letters that are written from right to left.
pub fn is_right_to_left(text: &str) -> bool {
    text.chars().any(|c| Kind::of_char(c) == Kind::Right)
}

/// The text has letters that are written from left to right.
pub fn is_left_to_right(text: &str) -> bool {
    Kind::of(text) == Kind::Left
}

/// The text is accents alone.
pub fn is_mark(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| Kind::of_char(c) == Kind::Mark)
}

/// The text of a line whose glyphs are given from left to right.
pub fn in_reading_order(glyphs: &[&str]) -> String {
    let mut kinds: Vec<Kind> = glyphs.iter().map(|glyph| Kind::of(glyph)).collect();
    join_marks(&mut kinds);
    join_numbers(&mut kinds, is_arabic(glyphs));
    // By words: a long foreign name does not turn a line.
    let begins = |wanted: Kind, at: usize| kinds[at] == wanted && (at == 0 || kinds[at - 1] != wanted);
    let n_words = |wanted: Kind| (0..kinds.len()).filter(|at| begins(wanted, *at)).count();
    let is_rtl_line = n_words(Kind::Right) >= n_words(Kind::Left);
    let levels = levels(&kinds, is_rtl_line);
    let mut order: Vec<usize> = (0..glyphs.len()).collect();
    for level in (1..=2).rev() {
        let mut at = 0;
        while at < order.len() {
            let length = order[at..].iter().take_while(|glyph| levels[**glyph] >= level).count();
            order[at..at + length].reverse();
            at += length.max(1);
        }
    }
    order.into_iter().map(|at| glyphs[at]).collect()
}

/// Accents go with the letter that they stand on: before it on the page where it is written from right to left.
fn join_marks(kinds: &mut [Kind]) {
    for at in (1..kinds.len()).rev() {
        if kinds[at - 1] == Kind::Mark && kinds[at] == Kind::Right {
            kinds[at - 1] = Kind::Right;
        }
    }
    let mut before = Kind::Neutral;
    for kind in kinds {
        match *kind {
            Kind::Mark => *kind = before,
            other => before = other,
        }
    }
}

/// Percent and currency signs stand apart from numbers among Arabic letters.
fn is_arabic(glyphs: &[&str]) -> bool {
    glyphs.iter().any(|glyph| glyph.chars().any(|c| bidi_class(c) == BidiClass::AL))
}

/// Numbers with their points, signs and units.
fn join_numbers(kinds: &mut [Kind], is_arabic: bool) {
    for at in 1..kinds.len().saturating_sub(1) {
        if kinds[at] == Kind::Separator && kinds[at - 1] == Kind::Number && kinds[at + 1] == Kind::Number {
            kinds[at] = Kind::Number;
        }
    }
    if is_arabic {
        return;
    }
    for at in 1..kinds.len() {
        if kinds[at] == Kind::Terminator && kinds[at - 1] == Kind::Number {
            kinds[at] = Kind::Number;
        }
    }
    for at in (1..kinds.len()).rev() {
        if kinds[at - 1] == Kind::Terminator && kinds[at] == Kind::Number {
            kinds[at - 1] = Kind::Number;
        }
    }
}

/// Level of each glyph. 0: never reversed; 1: reversed; 2: reversed twice, so in order within what is reversed.
fn levels(kinds: &[Kind], is_rtl_line: bool) -> Vec<u8> {
    // Numbers right after left-to-right words belong to them, such as the 11 of "Windows 11".
    let mut strong: Vec<Kind> = Vec::with_capacity(kinds.len());
    let mut is_after_left = false;
    for kind in kinds {
        match kind {
            Kind::Left => is_after_left = true,
            Kind::Right => is_after_left = false,
            _ => {}
        }
        strong.push(if *kind == Kind::Number && is_after_left { Kind::Left } else { *kind });
    }
    let before = nearest_strong(strong.iter());
    let mut after = nearest_strong(strong.iter().rev());
    after.reverse();
    let level = |at: usize| -> u8 {
        let is_between = |wanted: Kind| before[at] == Some(wanted) && after[at] == Some(wanted);
        match (strong[at], is_rtl_line) {
            (Kind::Left, true) | (Kind::Number, true) => 2,
            (Kind::Right, _) => 1,
            (Kind::Left, false) => 0,
            (Kind::Number, false) if is_between(Kind::Right) => 2,
            (_, true) if is_between(Kind::Left) => 2,
            (_, true) => 1,
            (_, false) if is_between(Kind::Right) => 1,
            (_, false) => 0,
        }
    };
    (0..strong.len()).map(level).collect()
}

/// The nearest letter or number before each glyph.
fn nearest_strong<'a>(kinds: impl Iterator<Item = &'a Kind>) -> Vec<Option<Kind>> {
    let mut last = None;
    let mut nearest = Vec::new();
    for kind in kinds {
        nearest.push(last);
        if matches!(kind, Kind::Left | Kind::Right | Kind::Number) {
            last = Some(*kind);
        }
    }
    nearest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a page shows from left to right.
    fn read(shown: &str) -> String {
        let glyphs: Vec<String> = shown.chars().map(String::from).collect();
        in_reading_order(&glyphs.iter().map(String::as_str).collect::<Vec<_>>())
    }

    #[test]
    fn hebrew_with_numbers_and_latin_words() {
        assert_eq!(read("םולש"), "שלום");
        assert_eq!(read("0 .םלוע םולש"), "שלום עולם. 0");
        assert_eq!(read("12.50 ריחמ"), "מחיר 12.50");
        assert_eq!(read("שדח Windows 11 שי"), "יש Windows 11 חדש");
        assert_eq!(read("!hello world הזכ רבד רמא"), "אמר דבר כזה hello world!");
    }

    #[test]
    fn arabic_with_numbers() {
        assert_eq!(
            read("2024 ماع يف ةئملاب 45.6 ةبسنلاو 123 ددعلا"),
            "العدد 123 والنسبة 45.6 بالمئة في عام 2024"
        );
    }

    #[test]
    fn units_belong_to_numbers_but_among_arabic_letters() {
        assert_eq!(read("50% לש החנה"), "הנחה של 50%");
        assert_eq!(read("غلبملا نم %50 يأ"), "أي 50% من المبلغ");
    }

    #[test]
    fn a_left_to_right_line_keeps_its_order_around_a_foreign_word() {
        assert_eq!(read("The word םולש means peace."), "The word שלום means peace.");
        assert_eq!(read("plain text, 12.5 %"), "plain text, 12.5 %");
    }

    #[test]
    fn a_line_of_a_million_glyphs_takes_no_longer_than_it_must() {
        let glyphs: Vec<&str> = ["\u{5b0}", ".", "ש"].into_iter().cycle().take(1 << 20).collect();
        let marks: Vec<&str> = std::iter::repeat_n("\u{5b0}", 1 << 20).collect();
        let began = std::time::Instant::now();
        assert!(in_reading_order(&glyphs).len() > glyphs.len());
        assert_eq!(in_reading_order(&marks).len(), 2 * marks.len());
        assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    }

    #[test]
    fn ligatures_and_accents_stay_whole() {
        // The glyph of lam and alef, and a vowel sign over beh.
        assert_eq!(in_reading_order(&["م", "لا", "س"]), "سلام");
        assert_eq!(in_reading_order(&["\u{64e}", "ب", "ت"]), "تب\u{64e}");
    }
}
