//! Classes of the characters of Brahmic scripts (Unicode, IndicSyllabicCategory and IndicPositionalCategory), as far as the
//! order of glyphs asks for them.

use unicode_normalization::char::compose;

/// Blocks of 128 characters that are laid out alike begin and end here: Devanagari to Sinhala.
pub const INDIC: std::ops::RangeInclusive<char> = '\u{900}'..='\u{dff}';

/// Vowel signs that some fonts draw as two others. Unicode does not decompose them.
const TWO_PART_VOWELS: [(char, [char; 2]); 4] = [
    ('\u{17be}', ['\u{17c1}', '\u{17b8}']),
    ('\u{17c4}', ['\u{17c1}', '\u{17b6}']),
    ('\u{94b}', ['\u{93e}', '\u{947}']),
    ('\u{94c}', ['\u{93e}', '\u{948}']),
];

/// A vowel sign that is shown before the consonant that it follows.
pub fn is_vowel_before(c: char) -> bool {
    matches!(
        c,
        '\u{93f}' | '\u{94e}' | '\u{9bf}' | '\u{9c7}' | '\u{9c8}' | '\u{a3f}' | '\u{abf}' | '\u{b47}'
            | '\u{bc6}'..='\u{bc8}' | '\u{d46}'..='\u{d48}' | '\u{dd9}' | '\u{ddb}'
            | '\u{1031}' | '\u{17c1}'..='\u{17c3}' | '\u{1b3e}' | '\u{1b3f}' | '\u{a9ba}' | '\u{a9bb}'
    )
}

/// The sign of a script that fonts draw in several forms before a consonant. Bengali has such a form for the
/// beginning of words.
pub fn usual_sign_before(base: &str, is_word_start: bool) -> Option<&'static str> {
    match base.chars().next().filter(|c| is_base(*c))? {
        '\u{980}'..='\u{9ff}' if is_word_start => Some("\u{9c7}"),
        '\u{900}'..='\u{97f}' => Some("\u{93f}"),
        '\u{980}'..='\u{9ff}' => Some("\u{9bf}"),
        '\u{a00}'..='\u{a7f}' => Some("\u{a3f}"),
        '\u{a80}'..='\u{aff}' => Some("\u{abf}"),
        '\u{d00}'..='\u{d7f}' => Some("\u{d4d}\u{d30}"),
        '\u{1000}'..='\u{109f}' => Some("\u{103c}"),
        '\u{1780}'..='\u{17ff}' => Some("\u{17d2}\u{179a}"),
        _ => None,
    }
}

/// `r` in Malayalam, Khmer and Burmese.
pub fn is_consonant_before(text: &str) -> bool {
    matches!(text, "\u{d4d}\u{d30}" | "\u{17d2}\u{179a}" | "\u{103c}")
}

/// Bytes of `r` and its virama at the front of a text, or of a Burmese kinzi.
pub fn reph_bytes(text: &str) -> Option<usize> {
    const REPHS: [&str; 8] = [
        "\u{930}\u{94d}",
        "\u{9b0}\u{9cd}",
        "\u{9f0}\u{9cd}",
        "\u{ab0}\u{acd}",
        "\u{b30}\u{b4d}",
        "\u{cb0}\u{ccd}",
        "\u{dbb}\u{dca}\u{200d}",
        "\u{1004}\u{103a}\u{1039}",
    ];
    let reph = REPHS.into_iter().find(|reph| text.starts_with(reph))?;
    // With a joiner it is another form, which stays before its consonant.
    (!text[reph.len()..].starts_with(is_joiner)).then_some(reph.len())
}

/// The same in characters, where more than it follows.
pub fn reph_chars(text: &[char]) -> Option<usize> {
    let text: String = text.iter().collect();
    let n = reph_bytes(&text).filter(|n| *n < text.len())?;
    Some(text[..n].chars().count())
}

pub fn is_virama(c: char) -> bool {
    match c {
        '\u{dca}' | '\u{1039}' | '\u{17d2}' => true,
        c => INDIC.contains(&c) && c < '\u{d80}' && u32::from(c) & 0x7f == 0x4d,
    }
}

pub fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

/// A Thai or Lao tone mark.
pub fn is_thai_tone(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| matches!(c, '\u{e48}'..='\u{e4c}' | '\u{ec8}'..='\u{ecc}'))
}

pub fn is_thai_vowel_below(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| matches!(c, '\u{e38}'..='\u{e3a}' | '\u{eb8}'..='\u{eba}'))
}

/// A consonant or an independent vowel.
pub fn is_base(c: char) -> bool {
    match c {
        '\u{d80}'..='\u{dff}' => matches!(c, '\u{d85}'..='\u{dc6}'),
        '\u{c80}' | '\u{9f0}' | '\u{9f1}' | '\u{a72}'..='\u{a74}' | '\u{b71}' | '\u{cf1}' | '\u{cf2}' => true,
        '\u{1000}'..='\u{102a}' | '\u{103f}' | '\u{1050}'..='\u{1055}' | '\u{105a}'..='\u{105d}' => true,
        '\u{1061}' | '\u{1065}' | '\u{1066}' | '\u{106e}'..='\u{1070}' | '\u{1075}'..='\u{1081}' => true,
        '\u{1780}'..='\u{17b3}' | '\u{25cc}' => true,
        c if INDIC.contains(&c) => {
            let offset = u32::from(c) & 0x7f;
            let is_extra = matches!(c, '\u{978}'..='\u{97f}' | '\u{9ce}' | '\u{d54}'..='\u{d56}' | '\u{d7a}'..='\u{d7f}');
            (0x05..=0x39).contains(&offset) || (0x58..=0x61).contains(&offset) || is_extra
        }
        _ => false,
    }
}

/// Stands on or beside a consonant.
pub fn is_sign(c: char) -> bool {
    match c {
        '\u{102b}'..='\u{103e}' | '\u{1056}'..='\u{1059}' | '\u{105e}'..='\u{1060}' => true,
        '\u{17b6}'..='\u{17d3}' | '\u{17dd}' => true,
        '\u{d81}'..='\u{d83}' | '\u{dca}'..='\u{ddf}' | '\u{df2}' | '\u{df3}' => true,
        '\u{a70}' | '\u{a71}' | '\u{a75}' => true,
        c if INDIC.contains(&c) && c < '\u{d80}' => {
            let offset = u32::from(c) & 0x7f;
            let is_vowel = (0x3e..=0x4d).contains(&offset) && c != '\u{93d}';
            offset < 0x04
                || offset == 0x3c
                || is_vowel
                || (0x55..=0x57).contains(&offset)
                || (0x62..=0x63).contains(&offset)
        }
        c => is_joiner(c),
    }
}

/// The text has letters that pages show in another order.
pub fn is_reordered(text: &str) -> bool {
    text.chars().any(is_reordered_char)
}

/// A letter that pages show in another order, or a sign that makes others be.
pub fn is_reordered_char(c: char) -> bool {
    is_vowel_before(c) || is_virama(c) || matches!(c, '\u{e32}' | '\u{eb2}' | '\u{103c}')
}

/// A Khmer vowel sign whose right half is no other sign.
pub fn is_right_half(text: &str) -> bool {
    text.starts_with(['\u{17bf}', '\u{17c0}', '\u{17c5}']) && text.chars().all(is_sign)
}

/// A sign on a consonant of a Brahmic script.
pub fn is_single_sign(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| is_sign(c) && !is_joiner(c)) && chars.next().is_none()
}

/// The halves of such a sign.
pub fn decompose_vowel(vowel: char) -> Option<[char; 2]> {
    TWO_PART_VOWELS.into_iter().find(|(whole, _)| *whole == vowel).map(|(_, parts)| parts)
}

/// Parts of vowel signs of two halves as one.
pub fn compose_signs(first: char, second: char) -> Option<char> {
    let vowel = TWO_PART_VOWELS.into_iter().find(|(_, parts)| *parts == [first, second]);
    vowel.map(|(whole, _)| whole).or_else(|| compose(first, second))
}

/// Burmese signs of second consonants.
pub fn is_medial(c: char) -> bool {
    matches!(c, '\u{103b}'..='\u{103e}')
}
