//! Logical order of Brahmic scripts. A page shows some vowel signs and consonants left of the consonant that they follow
//! in a text, and a first `r` after it. This inverts that reordering (OpenType, "Developing fonts for Indic scripts").
//! Thai and Lao are shown as they are written, but for the parts of their sign `am`.

use unicode_normalization::char::canonical_combining_class;

use super::brahmic_letters::{
    INDIC, compose_signs, is_base, is_consonant_before, is_joiner, is_medial, is_sign, is_virama,
    is_vowel_before, reph_bytes,
};

/// A syllable has fewer glyphs.
const MAX_SYLLABLE_GLYPHS: usize = 32;

/// What the text of a glyph is within its syllable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyllableRole {
    /// Begins with a consonant or an independent vowel.
    Base,
    /// A vowel sign that is shown before its consonant.
    VowelBefore,
    /// A consonant that is shown before the one that it follows.
    ConsonantBefore,
    /// A consonant below or after the one that it follows.
    ConsonantAfter,
    /// A first `r` that is shown after its consonant.
    Reph,
    /// Another sign on a consonant.
    Sign,
    Other,
}

impl SyllableRole {
    pub fn of(text: &str) -> Self {
        let mut chars = text.chars();
        let Some(first) = chars.next() else { return Self::Other };
        if text.chars().all(is_vowel_before) {
            return Self::VowelBefore;
        }
        if is_consonant_before(text) {
            return Self::ConsonantBefore;
        }
        if reph_bytes(text).is_some_and(|n| text[n..].chars().all(is_sign)) {
            return Self::Reph;
        }
        match first {
            _ if is_virama(first) && chars.next().is_some_and(|c| is_base(c) || is_joiner(c)) => {
                Self::ConsonantAfter
            }
            '\u{103b}'..='\u{103e}' => Self::ConsonantAfter,
            _ if is_base(first) => Self::Base,
            _ if is_sign(first) => Self::Sign,
            _ => Self::Other,
        }
    }
}

/// The text of glyphs that scripts place below or after the glyph of a first consonant.
pub fn is_second_form(text: &str) -> bool {
    match SyllableRole::of(text) {
        SyllableRole::Reph => true,
        SyllableRole::ConsonantAfter | SyllableRole::ConsonantBefore => match text.chars().next() {
            Some('\u{980}'..='\u{9ff}') => text == "\u{9cd}\u{9af}",
            Some('\u{d00}'..='\u{d7f}') => {
                matches!(text, "\u{d4d}\u{d2f}" | "\u{d4d}\u{d35}" | "\u{d4d}\u{d30}")
            }
            // Their other conjuncts are ligatures.
            Some('\u{900}'..='\u{97f}' | '\u{a80}'..='\u{aff}' | '\u{b80}'..='\u{bff}') => false,
            _ => true,
        },
        SyllableRole::Base | SyllableRole::VowelBefore | SyllableRole::Sign | SyllableRole::Other => false,
    }
}

/// How often glyphs stand where only pages place them, and where only texts do.
#[derive(Debug, Clone, Copy, Default)]
pub struct OrderEvidence {
    n_visual: usize,
    n_logical: usize,
}

impl OrderEvidence {
    /// Adds the vowel signs of one run.
    pub fn add(&mut self, texts: &[&str]) {
        for (at, text) in texts.iter().enumerate() {
            if !text.starts_with(is_vowel_before) {
                continue;
            }
            let before = at.checked_sub(1).and_then(|at| texts.get(at));
            let is_after_base = before.is_some_and(|it| it.chars().any(is_base));
            let is_before_base =
                texts.get(at + 1).is_some_and(|it| it.chars().any(is_base) || it.starts_with(is_virama));
            self.n_visual += usize::from(!is_after_base && is_before_base);
            self.n_logical += usize::from(is_after_base && !is_before_base);
        }
    }

    /// Most files have been shaped: only what is there without shaping tells that it was not.
    pub fn is_visual(self) -> bool {
        self.n_visual >= self.n_logical
    }
}

/// Puts the texts of glyphs in the order of a page into that of a text. The first glyph of a syllable gets all of it.
pub fn in_logical_order(texts: &mut [String]) {
    let mut at = 0;
    while at < texts.len() {
        let Some((n_glyphs, text)) = first_syllable(&texts[at..]) else {
            at += 1;
            continue;
        };
        texts[at] = text;
        texts[at + 1..at + n_glyphs].iter_mut().for_each(String::clear);
        at += n_glyphs;
    }
}

/// Number of glyphs of the syllable at the front, and its text. None: no syllable begins here.
fn first_syllable(texts: &[String]) -> Option<(usize, String)> {
    let texts = &texts[..texts.len().min(MAX_SYLLABLE_GLYPHS)];
    let role = |at: usize| texts.get(at).map_or(SyllableRole::Other, |text| SyllableRole::of(text));
    let mut at = 0;
    let (mut vowels, mut consonants) = (String::new(), String::new());
    loop {
        match role(at) {
            SyllableRole::VowelBefore => vowels.push_str(&texts[at]),
            SyllableRole::ConsonantBefore => consonants.push_str(&texts[at]),
            _ => break,
        }
        at += 1;
    }
    if role(at) != SyllableRole::Base {
        return None;
    }
    let mut base = texts[at].clone();
    // Malayalam writes it before other second consonants, Khmer after them.
    if consonants.starts_with('\u{d4d}') {
        base.push_str(&std::mem::take(&mut consonants));
    }
    let (mut reph, mut signs) = (String::new(), String::new());
    at += 1;
    while let Some(text) = texts.get(at) {
        let is_open = signs.is_empty() && base.trim_end_matches(is_joiner).ends_with(is_virama);
        match SyllableRole::of(text) {
            SyllableRole::Base if is_open => base.push_str(text),
            SyllableRole::Reph => {
                let (first, rest) = text.split_at(reph_bytes(text).unwrap_or(0));
                reph.push_str(first);
                signs.push_str(rest);
            }
            // Vowel signs follow all consonants.
            SyllableRole::ConsonantAfter => {
                let end = base.trim_end_matches(|c| is_vowel_sign(c) || is_joiner(c)).len();
                // Telugu draws `r` before others below the first consonant, and writes it last.
                let end = base[..end].strip_suffix("\u{c4d}\u{c30}").map_or(end, str::len);
                base.insert_str(end, text);
            }
            SyllableRole::Sign => signs.push_str(text),
            SyllableRole::Base
            | SyllableRole::VowelBefore
            | SyllableRole::ConsonantBefore
            | SyllableRole::Other => break,
        }
        at += 1;
    }
    let own_signs = base.split_off(base.trim_end_matches(is_vowel_sign).len());
    let mut text = reph + &base + &consonants;
    sort_medials(&mut text);
    push_signs(&mut text, &vowels, &(own_signs + &signs));
    Some((at, text))
}

/// A sign that follows all consonants of its syllable.
fn is_vowel_sign(c: char) -> bool {
    is_sign(c) && !is_virama(c) && !is_medial(c) && !is_joiner(c)
}

/// Appends signs to the consonants of a syllable: those shown before them, and those on or after them.
fn push_signs(text: &mut String, before: &str, signs: &str) {
    // A nukta belongs to its consonant, a register shifter precedes the vowel.
    let is_close = |c: &char| match c {
        '\u{17c9}' | '\u{17ca}' => true,
        // The Burmese dot below follows the vowels.
        '\u{1037}' => false,
        c => canonical_combining_class(*c) == 7,
    };
    let (close, signs): (Vec<char>, Vec<char>) = signs.chars().partition(is_close);
    text.extend(close);
    // A consonant with a vowel sign has no virama: in Sinhala it is a part of the vowel.
    let virama = text.chars().next_back().filter(|c| !before.is_empty() && is_virama(*c));
    text.truncate(text.len() - virama.map_or(0, char::len_utf8));
    // Nasals and breath follow the vowel.
    let is_last = |c: &char| INDIC.contains(c) && *c < '\u{d80}' && u32::from(*c) & 0x7f < 0x04;
    let (last, signs): (Vec<char>, Vec<char>) = virama.into_iter().chain(signs).partition(is_last);
    let signs: String = signs.into_iter().chain(last).collect();
    // The Burmese one follows a vowel below the consonant.
    let signs = signs.replace("\u{1036}\u{102f}", "\u{102f}\u{1036}");
    let signs = signs.replace("\u{1036}\u{1030}", "\u{1030}\u{1036}");
    // Its dot below comes before what ends a syllable.
    let (dots, signs): (String, String) = signs.chars().partition(|c| *c == '\u{1037}');
    let end = signs.find(['\u{1038}', '\u{103a}']).unwrap_or(signs.len());
    let signs = [&signs[..end], &dots, &signs[end..]].concat();
    // The right half of such a vowel stands for all of it.
    let is_whole = match before {
        "\u{17c1}" => signs.contains(['\u{17be}', '\u{17bf}', '\u{17c0}', '\u{17c4}', '\u{17c5}']),
        "\u{dd9}" => signs.contains(['\u{dda}', '\u{ddc}', '\u{dde}']),
        _ => false,
    };
    let before = if is_whole { "" } else { before };
    for c in before.chars().chain(signs.chars()) {
        match text.chars().next_back().and_then(|last| Some((last, compose_signs(last, c)?))) {
            Some((last, both)) => {
                text.truncate(text.len() - last.len_utf8());
                text.push(both);
            }
            None => text.push(c),
        }
    }
}

/// Burmese writes them in the order of their codes.
fn sort_medials(text: &mut String) {
    let start = text.trim_end_matches(is_medial).len();
    let mut medials: Vec<char> = text[start..].chars().collect();
    medials.sort_unstable();
    text.truncate(start);
    text.extend(medials);
}

/// Thai and Lao `am` is drawn as a ring and a stroke, with a tone mark between them or over the ring.
pub fn join_am(texts: &mut [String]) {
    const RINGS: [(char, char, char); 2] =
        [('\u{e4d}', '\u{e32}', '\u{e33}'), ('\u{ecd}', '\u{eb2}', '\u{eb3}')];
    for (ring, stroke, am) in RINGS {
        for at in 1..texts.len() {
            if !texts[at].starts_with(stroke) {
                continue;
            }
            // At most one tone mark lies between them.
            let found = (at.saturating_sub(2)..at).rev().find(|before| texts[*before].contains(ring));
            let is_tone = |c: char| matches!(c, '\u{e48}'..='\u{e4b}' | '\u{ec8}'..='\u{ecb}');
            if let Some(before) = found
                && texts[before + 1..at].iter().all(|text| text.chars().all(is_tone))
            {
                texts[before] = texts[before].replace(ring, "");
                texts[at] = texts[at].replacen(stroke, am.encode_utf8(&mut [0; 4]), 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Glyphs, in the order of the page, as a text.
    fn read(glyphs: &str) -> String {
        let mut texts: Vec<String> = glyphs.split('|').map(str::to_owned).collect();
        in_logical_order(&mut texts);
        join_am(&mut texts);
        texts.concat()
    }

    #[test]
    fn signs_and_consonants_return_to_where_they_are_written() {
        let cases = [
            // Devanagari: short i, half letters, reph.
            ("ि|ह|न्|द|ी", "हिन्दी"),
            ("स्|ि|थ|त", "स्थित"),
            ("ि|स्|थ|त", "स्थित"),
            ("क|ा|य|र्|क्र|म", "कार्यक्रम"),
            ("ध|म|ों|र्", "धर्मों"),
            ("म|र्ों", "र्मों"),
            ("य|ा|र्े|ध", "र्योध"),
            ("र्\u{200d}|य", "र्\u{200d}य"),
            // Bengali: e and o around their consonant.
            ("ে|দ|শ", "দেশ"),
            ("ব|ে|ল|া", "বলো"),
            ("ি|ক্ষ|া", "ক্ষিা"),
            ("ত|ঁ|া", "তাঁ"),
            // Tamil, Malayalam.
            ("ெ|ம|ா|ழ|ி", "மொழி"),
            ("ை|ப", "பை"),
            ("്ര|പ|ധ", "പ്രധ"),
            ("്ര|ന്ത|്യ", "ന്ത്ര്യ"),
            // Telugu and Kannada: second consonants after the vowel.
            ("ಕಿ|್ತ", "ಕ್ತಿ"),
            ("స|్ర|్త|ీ", "స్త్రీ"),
            ("ನ|ಾ|ರ್", "ರ್ನಾ"),
            // Khmer: coeng ro, then vowels of two halves.
            ("ែ|ខ|្ម|រ", "ខ្មែរ"),
            ("្រ|ស|្ត|ី", "ស្ត្រី"),
            ("េ|្រ|គ|ោ|ះ", "គ្រោះ"),
            ("េ|ក|ី|ត", "កើត"),
            ("េ|ភា", "ភោ"),
            // Burmese.
            ("ြ|မ|န|်", "မြန်"),
            ("ေ|က|ျ|ာ|င|်", "ကျောင်"),
            ("ေ|ြ|က|ွ", "ကြွေ"),
            ("ရ|ံ|ု|း", "ရုံး"),
            ("တ|့|ို", "တို့"),
            ("သ|င|့|်", "သင့်"),
            // Sinhala.
            ("ෙ|ව්", "වේ"),
            ("ෙ|ක|ා", "කො"),
            // Thai and Lao.
            ("น|ํ|้|า", "น้ำ"),
            ("น|้|ํ|า", "น้ำ"),
            ("ค|ํ|า", "คำ"),
            ("เ|ป|็|น", "เป็น"),
            ("plain| |text", "plain text"),
        ];
        for (glyphs, expected) in cases {
            assert_eq!(read(glyphs), expected, "{glyphs}");
        }
    }

    #[test]
    fn vowel_signs_show_in_which_order_glyphs_stand() {
        let is_visual = |glyphs: &str| {
            let mut evidence = OrderEvidence::default();
            evidence.add(&glyphs.split('|').collect::<Vec<_>>());
            evidence.is_visual()
        };
        assert!(is_visual("ि|ह|न| |ि|क"));
        assert!(!is_visual("ह|ि| |न|क|ि"));
        assert!(is_visual("न|म"));
    }
}
