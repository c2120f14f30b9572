//! The search form of a text: two texts count as the same where their search forms are equal.
//!
//! `tests/fixtures/search-normalisation.json` states the rule and its cases; find in chat follows it in TypeScript. A
//! changed rule needs a migration that indexes everything again.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// The breve of the Cyrillic short i, a separate letter.
const BREVE: char = '\u{306}';

/// Brings a text or a query into its search form: without case, accents, vowel points, widths and invisible characters.
pub(crate) fn search_form(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let mut base = '\0';
    let is_kept = move |c: &char| {
        let is_kept = !is_dropped(*c) || (*c == BREVE && matches!(base, 'И' | 'и'));
        if is_kept {
            base = *c;
        }
        is_kept
    };
    let letters = text.nfkd().filter(is_kept).flat_map(char::to_lowercase);
    letters.flat_map(|c| replacement(c).chars().chain(replacement(c).is_empty().then_some(c))).nfc().collect()
}

/// What stands for a character in the search form; empty where it stands for itself.
fn replacement(c: char) -> &'static str {
    match c {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'đ' => "d",
        'ł' => "l",
        'ħ' => "h",
        'ς' => "σ",
        'ٱ' => "ا",
        'ى' | 'ی' => "ي",
        'ة' => "ه",
        'ک' => "ك",
        '\u{2018}' | '\u{2019}' | '\u{2BC}' => "'",
        '\u{201C}' | '\u{201D}' => "\"",
        '\u{2010}' => "-",
        _ => "",
    }
}

/// Whether a character of NFKD has no place in the search form: invisible ones, the tatweel, accents and vowel points.
fn is_dropped(c: char) -> bool {
    is_invisible(c)
        || matches!(c,
            '\u{300}'..='\u{34E}' | '\u{350}'..='\u{36F}' | '\u{483}'..='\u{487}' | '\u{591}'..='\u{5BD}' | '\u{5BF}'
            | '\u{5C1}'..='\u{5C2}' | '\u{5C4}'..='\u{5C5}' | '\u{5C7}' | '\u{610}'..='\u{61A}' | '\u{640}'
            | '\u{64B}'..='\u{65F}' | '\u{670}' | '\u{6D6}'..='\u{6DC}' | '\u{6DF}'..='\u{6E4}'
            | '\u{6E7}'..='\u{6E8}' | '\u{6EA}'..='\u{6ED}' | '\u{711}' | '\u{730}'..='\u{74A}'
            | '\u{897}'..='\u{89F}' | '\u{8CA}'..='\u{8E1}' | '\u{8E3}'..='\u{8FF}' | '\u{1AB0}'..='\u{1AFF}'
            | '\u{1DC0}'..='\u{1DFF}' | '\u{20D0}'..='\u{20FF}' | '\u{FE20}'..='\u{FE2F}')
}

/// Characters that Unicode calls default ignorable.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}'..='\u{1160}' | '\u{17B4}'..='\u{17B5}' | '\u{180B}'..='\u{180F}'
        | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{3164}'
        | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{E0000}'..='\u{E0FFF}')
}

/// Whether a character belongs to the one before it: marks, the later letters of a Hangul syllable, invisible ones.
fn continues_cluster(c: char) -> bool {
    is_combining_mark(c)
        || is_dropped(c)
        || matches!(c, '\u{1160}'..='\u{11FF}' | '\u{D7B0}'..='\u{D7FF}' | '\u{FF9E}'..='\u{FF9F}')
}

/// Characters with what belongs to them, each with its first byte in `text`.
pub(crate) fn clusters(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut chars = text.char_indices().peekable();
    std::iter::from_fn(move || {
        let (start, _) = chars.next()?;
        while chars.next_if(|(_, c)| continues_cluster(*c)).is_some() {}
        let end = chars.peek().map_or(text.len(), |(at, _)| *at);
        Some((start, text.get(start..end).unwrap_or_default()))
    })
}

/// Whether a character belongs to a script that does not, or only loosely, separate words by spaces.
pub(crate) fn has_no_spaces(c: char) -> bool {
    matches!(c,
        '\u{0E00}'..='\u{0EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}'
        | '\u{3040}'..='\u{31FF}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}'
        | '\u{AC00}'..='\u{D7AF}' | '\u{F900}'..='\u{FAFF}' | '\u{FF66}'..='\u{FF9F}' | '\u{20000}'..='\u{3FFFF}')
}

/// Whether a character of a search form belongs to a word. Vowel signs do, as in Devanagari.
fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || is_combining_mark(c)
}

/// A word of a text, as the index separates them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceWord {
    /// Its search form.
    pub form: String,
    /// First byte in the text.
    pub start: usize,
    /// End byte in the text, exclusive.
    pub end: usize,
}

/// The words of a text, in order. Characters of scripts without spaces are words of their own.
pub(crate) fn words(text: &str) -> impl Iterator<Item = SourceWord> {
    let mut clusters = clusters(text);
    let mut ready = std::collections::VecDeque::new();
    let mut current: Option<SourceWord> = None;
    std::iter::from_fn(move || {
        while ready.is_empty() {
            let Some((start, cluster)) = clusters.next() else { return current.take() };
            let end = start + cluster.len();
            let mut add = |c: char| {
                if !is_word_char(c) {
                    ready.extend(current.take());
                } else if has_no_spaces(c) {
                    ready.extend(current.take());
                    ready.push_back(SourceWord { form: c.to_string(), start, end });
                } else {
                    let word = current.get_or_insert(SourceWord { form: String::new(), start, end });
                    word.form.push(c);
                    word.end = end;
                }
            };
            match cluster.as_bytes() {
                [byte] => add(char::from(byte.to_ascii_lowercase())),
                _ => search_form(cluster).chars().for_each(add),
            }
        }
        ready.pop_front()
    })
}

/// Where a search form occurs first in a text, as a range of the text's bytes.
pub(crate) fn find_form(text: &str, form: &str) -> Option<std::ops::Range<usize>> {
    let mut whole = String::with_capacity(text.len());
    let mut origins = Vec::new();
    for (start, cluster) in clusters(text) {
        origins.push((whole.len(), start));
        whole.push_str(&search_form(cluster));
    }
    let first = whole.find(form)?;
    let last = (first + form.len()).saturating_sub(1);
    let cluster_of = |at: usize| origins.partition_point(|(begin, _)| *begin <= at);
    let start = origins.get(cluster_of(first).checked_sub(1)?)?.1;
    let end = origins.get(cluster_of(last)).map_or(text.len(), |(_, start)| *start);
    Some(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of `"key": "…"` in a line of the table, with its escapes resolved.
    fn value(line: &str, key: &str) -> Option<String> {
        let rest = line.split_once(&format!("\"{key}\": \""))?.1;
        let mut units = Vec::new();
        let mut chars = rest.chars();
        while let Some(c) = chars.next() {
            match c {
                '"' => return String::from_utf16(&units).ok(),
                '\\' => match chars.next()? {
                    'u' => {
                        let digits: String = chars.by_ref().take(4).collect();
                        units.push(u16::from_str_radix(&digits, 16).ok()?);
                    }
                    other => units.push(other as u16),
                },
                other => units.extend(other.encode_utf16(&mut [0; 2]).iter()),
            }
        }
        None
    }

    const CASES: &str = include_str!("../../../../tests/fixtures/search-normalisation.json");

    #[test]
    fn texts_come_into_their_search_form() {
        let mut n_cases = 0;
        for line in CASES.lines().filter(|line| line.contains("\"folded\": ")) {
            let (text, folded) = (value(line, "text").unwrap(), value(line, "folded").unwrap());
            assert_eq!(search_form(&text), folded, "{line}");
            assert_eq!(search_form(&folded), folded, "a search form is its own: {line}");
            n_cases += 1;
        }
        assert!(n_cases >= 40, "{n_cases} cases were read");
    }

    #[test]
    fn queries_are_found_whatever_the_form() {
        let mut n_cases = 0;
        for line in CASES.lines().filter(|line| line.contains("\"found\": ")) {
            let (text, query) = (value(line, "text").unwrap(), value(line, "query").unwrap());
            let found = find_form(&text, &search_form(&query));
            assert_eq!(found.is_some(), line.contains("\"found\": true"), "{line}");
            n_cases += 1;
        }
        assert!(n_cases >= 20, "{n_cases} cases were read");
    }

    #[test]
    fn a_match_is_marked_in_the_text_as_it_was_written() {
        let cases = [
            ("Die Straße hier", "strasse", "Straße"),
            ("un cafe\u{301} noir", "cafe", "cafe\u{301}"),
            ("the o\u{FB03}ce", "off", "o\u{FB03}"),
            ("\u{1112}\u{1161}\u{11AB}\u{1100}\u{116E}\u{11A8}", "국", "\u{1100}\u{116E}\u{11A8}"),
            ("I ❤\u{FE0F} it", "❤", "❤\u{FE0F}"),
        ];
        for (text, form, expected) in cases {
            let range = find_form(text, form).unwrap();
            assert_eq!(&text[range], expected, "{text}");
        }
    }

    #[test]
    fn words_are_separated_as_the_index_does() {
        let cases: [(&str, &[&str]); 6] = [
            ("Hello, WORLD!", &["hello", "world"]),
            ("東京タワー", &["東", "京", "タ", "ワ", "ー"]),
            ("a東b", &["a", "東", "b"]),
            ("हिन्दी में", &["हिन्दी", "में"]),
            ("\u{200B}\u{AD}", &[]),
            ("1½", &["11", "2"]),
        ];
        for (text, expected) in cases {
            let forms: Vec<String> = words(text).map(|word| word.form).collect();
            assert_eq!(forms, expected, "{text}");
        }
    }
}
