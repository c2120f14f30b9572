//! Reading order of lines with letters that are written from right to left. A page shows their glyphs from left to right;
//! this inverts the reordering of the Unicode bidirectional algorithm (UAX #9), with
//! the line's main direction taken from its letters.

use unicode_bidi::{BidiClass, bidi_class};

use super::brackets::{BracketPair, LineGlyph, PairOrder, bracket_pairs, mirror, single};
use super::font_source::Mirroring;

/// How many words the direction of the line before counts for.
const PARAGRAPH_WEIGHT: usize = 2;

/// How many words a stop at one end of a line counts for.
const STOP_WEIGHT: usize = 3;

/// What a glyph does to the order of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A letter that is written from left to right.
    Left,
    /// A letter that is written from right to left.
    Right,
    Number,
    /// A number in Arabic-Indic digits, which never belongs to Latin words.
    ArabicNumber,
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
            Self::Number | Self::ArabicNumber => 3,
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

/// A line in the order in which it is read.
#[derive(Debug, Default)]
pub struct OrderedLine {
    pub text: String,
    /// Its main direction.
    pub is_rtl: bool,
}

/// The text of a line whose glyphs are given from left to right. `is_after_rtl`: it goes on after a line that is read
/// from right to left.
pub fn in_reading_order(glyphs: &[LineGlyph], is_after_rtl: bool) -> OrderedLine {
    let mut kinds: Vec<Kind> = glyphs.iter().map(|glyph| Kind::of(glyph.text)).collect();
    join_marks(&mut kinds);
    let is_rtl_line = is_rtl_line(glyphs, &kinds, is_after_rtl);
    join_numbers(glyphs, &mut kinds);
    find_arabic_numbers(glyphs, &mut kinds);
    let is_shown = join_brackets(glyphs, &mut kinds, is_rtl_line);
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
    let mut text = String::new();
    for at in order {
        let glyph = glyphs[at];
        match mirror(glyph.text).filter(|_| is_shown[at] && levels[at] == 1) {
            Some(other) => text.push(other),
            None => text.push_str(glyph.text),
        }
    }
    OrderedLine { text, is_rtl: is_rtl_line }
}

/// Gives brackets the direction that they have as a pair (UAX #9, N0). It is that of the line, unless what is in them and
/// before them has the other one. Returns which texts say how their glyph looks.
fn join_brackets(glyphs: &[LineGlyph], kinds: &mut [Kind], is_rtl_line: bool) -> Vec<bool> {
    let mut is_shown: Vec<bool> = glyphs.iter().map(|glyph| glyph.mirroring == Mirroring::Shown).collect();
    let (own, other) = if is_rtl_line { (Kind::Right, Kind::Left) } else { (Kind::Left, Kind::Right) };
    let mut pairs = bracket_pairs(glyphs);
    if !is_rtl_line {
        // In the order in which right-to-left text is read.
        pairs.reverse();
    }
    for BracketPair { left, right, order } in pairs {
        // Numbers go with the letters before them.
        let is_strong = |kind: &&Kind| matches!(kind, Kind::Left | Kind::Right);
        let direction = || {
            let has_own = kinds[left + 1..right].contains(&own);
            // What is read in the other direction comes from the other side.
            let before = match is_rtl_line {
                true => kinds[..left].iter().rev().find(is_strong),
                false => kinds[right + 1..].iter().find(is_strong),
            };
            if !has_own && before == Some(&other) { other } else { own }
        };
        let (direction, is_pair_shown) = match order {
            PairOrder::Shown => (direction(), true),
            PairOrder::MeantLeft => (Kind::Left, false),
            PairOrder::MeantRight => (Kind::Right, false),
        };
        if !glyphs[left].is_quote() {
            (kinds[left], kinds[right]) = (direction, direction);
        }
        (is_shown[left], is_shown[right]) = (is_pair_shown, is_pair_shown);
    }
    is_shown
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

/// Main direction of a line, by its words: a long foreign name does not turn it.
fn is_rtl_line(glyphs: &[LineGlyph], kinds: &[Kind], is_after_rtl: bool) -> bool {
    let is_blank = |glyph: &LineGlyph| glyph.text.trim().is_empty();
    let (mut n_right, mut n_left) = (0, 0);
    let mut is_in_word = false;
    for (glyph, kind) in glyphs.iter().zip(kinds) {
        match kind {
            Kind::Right if !is_in_word => n_right += 1,
            Kind::Left if !is_in_word => n_left += 1,
            _ => {}
        }
        is_in_word = !is_blank(glyph) && (is_in_word || matches!(kind, Kind::Right | Kind::Left));
    }
    if n_right + n_left == 0 {
        return is_after_rtl;
    }
    // Sentences end at the end of a line, not at its beginning.
    let is_stop = |glyph: &LineGlyph| {
        matches!(single(glyph.text), Some('.' | ',' | ';' | ':' | '!' | '?' | '،' | '؛' | '؟'))
    };
    let mut shown = glyphs.iter().filter(|glyph| !is_blank(glyph));
    if is_after_rtl {
        n_right += PARAGRAPH_WEIGHT;
    }
    match (shown.next().is_some_and(is_stop), shown.next_back().is_some_and(is_stop)) {
        (true, false) => n_right += STOP_WEIGHT,
        (false, true) => n_left += STOP_WEIGHT,
        _ => {}
    }
    n_right >= n_left
}

/// Of each glyph: the letter that is read before it is an Arabic one. Signs and units stand apart from numbers there.
fn after_arabic(glyphs: &[LineGlyph], kinds: &[Kind]) -> Vec<bool> {
    let is_arabic = |glyph: &LineGlyph| glyph.text.chars().any(|c| bidi_class(c) == BidiClass::AL);
    // What comes before a line is not known.
    let mut last = glyphs.iter().any(is_arabic);
    let mut after: Vec<bool> = Vec::with_capacity(glyphs.len());
    for (glyph, kind) in glyphs.iter().zip(kinds).rev() {
        after.push(last);
        if matches!(kind, Kind::Left | Kind::Right) {
            last = is_arabic(glyph);
        }
    }
    after.reverse();
    let mut is_after_left = false;
    for (after, kind) in after.iter_mut().zip(kinds) {
        *after &= !is_after_left;
        if matches!(kind, Kind::Left | Kind::Right) {
            is_after_left = *kind == Kind::Left;
        }
    }
    after
}

/// Numbers with their points, signs and units.
fn join_numbers(glyphs: &[LineGlyph], kinds: &mut [Kind]) {
    let after_arabic = after_arabic(glyphs, kinds);
    let is_sign = |glyph: &LineGlyph| glyph.text.chars().all(|c| bidi_class(c) == BidiClass::ES);
    for at in 1..kinds.len().saturating_sub(1) {
        if kinds[at] == Kind::Separator
            && kinds[at - 1] == Kind::Number
            && kinds[at + 1] == Kind::Number
            && !(after_arabic[at] && is_sign(&glyphs[at]))
        {
            kinds[at] = Kind::Number;
        }
    }
    for at in 1..kinds.len() {
        if kinds[at] == Kind::Terminator && kinds[at - 1] == Kind::Number && !after_arabic[at] {
            kinds[at] = Kind::Number;
        }
    }
    for at in (1..kinds.len()).rev() {
        if kinds[at - 1] == Kind::Terminator && kinds[at] == Kind::Number && !after_arabic[at - 1] {
            kinds[at - 1] = Kind::Number;
        }
    }
}

/// Numbers with a digit that is Arabic-Indic.
fn find_arabic_numbers(glyphs: &[LineGlyph], kinds: &mut [Kind]) {
    let is_arabic = |glyph: &LineGlyph| glyph.text.chars().any(|c| bidi_class(c) == BidiClass::AN);
    let mut at = 0;
    while at < kinds.len() {
        let end = at + kinds[at..].iter().take_while(|kind| **kind == Kind::Number).count();
        if glyphs[at..end].iter().any(is_arabic) {
            kinds[at..end].fill(Kind::ArabicNumber);
        }
        at = end.max(at + 1);
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
    // Such a line begins right of its last right-to-left letter.
    let line_start = strong.iter().rposition(|kind| *kind == Kind::Right);
    let level = |at: usize| -> u8 {
        let is_between = |wanted: Kind| before[at] == Some(wanted) && after[at] == Some(wanted);
        // A number stands left of Latin words only where both go on with those that end the line before.
        let is_after_number = line_start.is_none_or(|start| at > start)
            && (before[at], after[at]) == (Some(Kind::Number), Some(Kind::Left));
        match (strong[at], is_rtl_line) {
            (Kind::Left | Kind::Number | Kind::ArabicNumber, true) => 2,
            (Kind::Right, _) => 1,
            (Kind::Left, false) => 0,
            (Kind::Number | Kind::ArabicNumber, false) if is_between(Kind::Right) => 2,
            (_, true) if is_between(Kind::Left) || is_after_number => 2,
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
        if matches!(kind, Kind::Left | Kind::Right | Kind::Number | Kind::ArabicNumber) {
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
        let glyphs: Vec<LineGlyph> =
            glyphs.iter().map(|text| LineGlyph::new(text, Mirroring::Shown)).collect();
        in_reading_order(&glyphs, false).text
    }

    fn read_texts(texts: &[&str]) -> String {
        in_reading_order(
            &texts.iter().map(|text| LineGlyph::new(text, Mirroring::Meant)).collect::<Vec<_>>(),
            false,
        )
        .text
    }

    #[test]
    fn brackets_have_the_direction_of_their_pair() {
        for (shown, expected) in [
            ("הסיפדמ print(x) היצקנופה", "הפונקציה print(x) מדפיסה"),
            ("Windows לש (beta) 3.1 הסרג", "גרסה 3.1 (beta) של Windows"),
            ("(א)3 ףיעס", "סעיף 3(א)"),
            ("ףוס (test (inner) end) דוע הזו", "וזה עוד (test (inner) end) סוף"),
            ("[p. 12 :האר] (תיתפרצב)", "(בצרפתית) [ראה: p. 12]"),
            ("The word (םולש) is short", "The word (שלום) is short"),
            ("The word (א) םולש is short", "The word שלום (א) is short"),
            ("please see [(א)].", "please see [(א)]."),
            ("<ןאכ> ואר", "ראו <כאן>"),
            ("(ןאכ ואר", "ראו כאן)"),
        ] {
            assert_eq!(read(shown), expected, "{shown}");
        }
        // How they look where nothing but the map of the font has them.
        let unknown: Vec<LineGlyph> =
            ["»", "א", "«"].map(|text| LineGlyph::new(text, Mirroring::Unknown)).to_vec();
        assert_eq!(in_reading_order(&unknown, false).text, "«א»");
        let unknown: Vec<LineGlyph> = unknown.into_iter().rev().collect();
        assert_eq!(in_reading_order(&unknown, false).text, "«א»");
        // The same where the file tells which brackets are meant.
        let texts: Vec<String> = ")beta( םולש".chars().map(String::from).collect();
        assert_eq!(read_texts(&texts.iter().map(String::as_str).collect::<Vec<_>>()), "שלום (beta)");
    }

    #[test]
    fn a_line_without_letters_goes_on_like_the_one_before() {
        let glyphs: Vec<LineGlyph> =
            [".", "2", "0"].map(|text| LineGlyph::new(text, Mirroring::Shown)).to_vec();
        assert_eq!(in_reading_order(&glyphs, true).text, "20.");
        assert_eq!(in_reading_order(&glyphs, false).text, ".20");
    }

    #[test]
    fn hebrew_with_numbers_and_latin_words() {
        assert_eq!(read("םולש"), "שלום");
        assert_eq!(read("0 .םלוע םולש"), "שלום עולם. 0");
        assert_eq!(read("12.50 ריחמ"), "מחיר 12.50");
        assert_eq!(read("שדח Windows 11 שי"), "יש Windows 11 חדש");
        assert_eq!(read("!hello world הזכ רבד רמא"), "אמר דבר כזה hello world!");
        // The line before ends with "iPhone".
        assert_eq!(read(".בטיה םירכמנ 15 Pro"), "15 Pro נמכרים היטב.");
    }

    #[test]
    fn arabic_with_numbers() {
        assert_eq!(
            read("2024 ماع يف ةئملاب 45.6 ةبسنلاو 123 ددعلا"),
            "العدد 123 والنسبة 45.6 بالمئة في عام 2024"
        );
    }

    #[test]
    fn arabic_indic_numbers_are_no_part_of_latin_words() {
        assert_eq!(read("ديدج ١١ Windows جمانرب"), "برنامج Windows ١١ جديد");
        assert_eq!(read("ديدج Windows 11 جمانرب"), "برنامج Windows 11 جديد");
    }

    #[test]
    fn stops_tell_the_direction_of_a_line() {
        let link = ".(תילגנאב) https://example.org/he";
        assert_eq!(read(link), "https://example.org/he (באנגלית).");
        let prices = "Prices: ריחמ and (לאיר) שקל ןכו.";
        assert_eq!(read(prices), "Prices: מחיר and וכן לקש (ריאל).");
        assert_eq!(read("789-456-0123 :فتاه"), "هاتف: 0123-456-789");
        assert_eq!(read("03-1234567 ןופלט"), "טלפון 03-1234567");
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
        let glyph = |text| LineGlyph::new(text, Mirroring::Shown);
        let glyphs: Vec<LineGlyph> =
            ["\u{5b0}", ".", "ש"].map(glyph).into_iter().cycle().take(1 << 20).collect();
        let marks: Vec<LineGlyph> = std::iter::repeat_n(glyph("\u{5b0}"), 1 << 20).collect();
        let brackets: Vec<LineGlyph> = [glyph("("), glyph(")"), glyph("ש")].repeat(1 << 14);
        let began = std::time::Instant::now();
        assert!(in_reading_order(&glyphs, false).text.len() > glyphs.len());
        assert_eq!(in_reading_order(&marks, false).text.len(), 2 * marks.len());
        assert!(in_reading_order(&brackets, false).text.len() > brackets.len());
        assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    }

    #[test]
    fn ligatures_and_accents_stay_whole() {
        // The glyph of lam and alef, and a vowel sign over beh.
        assert_eq!(read_texts(&["م", "لا", "س"]), "سلام");
        assert_eq!(read_texts(&["\u{64e}", "ب", "ت"]), "تب\u{64e}");
    }
}
