//! Questions and articles to comparable words: one spelling, stems, and pairs of characters where words are not spaced.

use std::collections::HashMap;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::Language;

/// Words that mean the same in questions about the application, by their stems.
#[derive(Debug, Default)]
pub struct Synonyms(HashMap<String, String>);

impl Synonyms {
    /// Reads lines such as `delete: remove, erase`: the words after the colon count as the one before it.
    pub fn parse(language: Language, text: &str) -> Self {
        let mut map = HashMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some((to, from)) = line.split_once(':') else { continue };
            let Some(to) = stems(language, to).next() else { continue };
            for word in from.split(',') {
                if let Some(word) = stems(language, word).next() {
                    map.insert(word, to.clone());
                }
            }
        }
        Self(map)
    }

    fn canonical(&self, word: String) -> String {
        self.0.get(&word).cloned().unwrap_or(word)
    }
}

/// The words of a text in the order of the text, synonyms joined.
pub fn words(language: Language, synonyms: &Synonyms, text: &str) -> Vec<String> {
    stems(language, text).map(|word| synonyms.canonical(word)).collect()
}

fn stems(language: Language, text: &str) -> impl Iterator<Item = String> {
    let folded = fold(text);
    let mut found = Vec::new();
    for run in runs(&folded) {
        if run.chars().any(is_unspaced) {
            found.extend(pairs(run));
        } else {
            found.push(match language {
                Language::English => english_stem(run),
                Language::German => german_stem(run),
                Language::Arabic => arabic_stem(run),
                Language::Japanese => english_stem(run),
            });
        }
    }
    found.into_iter()
}

/// One spelling: compatibility forms, lower case, no accents, no vowel marks, one form of each Arabic letter.
fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for c in text.nfkd().flat_map(char::to_lowercase) {
        match c {
            // Japanese sound marks distinguish words; NFKC below joins them again.
            '\u{3099}' | '\u{309a}' => folded.push(c),
            _ if is_combining_mark(c) => {}
            'ß' => folded.push_str("ss"),
            'ى' => folded.push('ي'),
            'ة' => folded.push('ه'),
            'ـ' => {}
            '\u{2019}' | '\'' => folded.push('\''),
            _ => folded.push(c),
        }
    }
    folded.nfkc().collect()
}

/// Runs of letters and digits of one kind of script.
fn runs(text: &str) -> Vec<&str> {
    let mut runs = Vec::new();
    let mut start: Option<usize> = None;
    let mut was_unspaced = false;
    for (at, c) in text.char_indices() {
        let belongs = c.is_alphanumeric() || c == 'ー';
        if let Some(from) = start.filter(|_| !belongs || is_unspaced(c) != was_unspaced) {
            runs.push(&text[from..at]);
            start = None;
        }
        if belongs {
            start.get_or_insert(at);
            was_unspaced = is_unspaced(c);
        }
    }
    runs.extend(start.map(|from| &text[from..]));
    runs
}

/// Scripts that are written without spaces.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

fn pairs(run: &str) -> Vec<String> {
    let chars: Vec<char> = run.chars().collect();
    match chars.as_slice() {
        [one] => vec![one.to_string()],
        _ => chars.windows(2).map(|pair| pair.iter().collect()).collect(),
    }
}

/// Shortest stem that an ending may leave.
const MIN_STEM_CHARS: usize = 3;

fn without_ending(word: &str, endings: &[(&str, &str)]) -> Option<String> {
    endings.iter().find_map(|(ending, instead)| {
        let stem = word.strip_suffix(ending)?;
        (stem.chars().count() >= MIN_STEM_CHARS).then(|| format!("{stem}{instead}"))
    })
}

/// Plural, participle and gerund of English words. A doubled last consonant becomes single (`stopping`, `stop`).
fn english_stem(word: &str) -> String {
    let plain = without_ending(word, &[("sses", "ss"), ("ies", "y"), ("ss", "ss"), ("us", "us"), ("s", "")]);
    let plain = plain.unwrap_or_else(|| word.to_owned());
    let Some(stem) = without_ending(&plain, &[("ing", ""), ("ed", "")]) else {
        return plain
            .strip_suffix('e')
            .filter(|it| it.len() > MIN_STEM_CHARS)
            .map_or(plain.clone(), str::to_owned);
    };
    let mut chars = stem.chars().rev();
    match (chars.next(), chars.next()) {
        (Some(a), Some(b)) if a == b && !matches!(a, 'l' | 's' | 'e' | 'o') => {
            stem[..stem.len() - a.len_utf8()].to_owned()
        }
        _ => stem,
    }
}

/// Endings of German nouns, verbs and adjectives.
fn german_stem(word: &str) -> String {
    const ENDINGS: &[(&str, &str)] = &[
        ("ungen", "ung"),
        ("ern", ""),
        ("est", ""),
        ("em", ""),
        ("en", ""),
        ("er", ""),
        ("es", ""),
        ("e", ""),
        ("n", ""),
        ("s", ""),
        ("t", ""),
    ];
    without_ending(word, ENDINGS).unwrap_or_else(|| word.to_owned())
}

/// Prefixes and suffixes of Arabic words: article, conjunctions, plural and possessive.
fn arabic_stem(word: &str) -> String {
    let mut stem = word;
    for prefix in ["وال", "بال", "كال", "فال", "لل", "ال", "و", "ب", "ل"] {
        if let Some(rest) = stem.strip_prefix(prefix).filter(|rest| rest.chars().count() >= MIN_STEM_CHARS) {
            stem = rest;
            break;
        }
    }
    const ENDINGS: &[(&str, &str)] = &[("ات", ""), ("ين", ""), ("ون", ""), ("ها", ""), ("ه", ""), ("ي", "")];
    without_ending(stem, ENDINGS).unwrap_or_else(|| stem.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(language: Language, text: &str, expected: &[&str]) {
        assert_eq!(words(language, &Synonyms::default(), text), expected, "{text}");
    }

    #[test]
    fn words_of_each_language() {
        check(Language::English, "Stopping chats, deleted files?", &["stop", "chat", "delet", "file"]);
        check(Language::German, "Wie lösche ich Chats?", &["wie", "losch", "ich", "chat"]);
        check(Language::Japanese, "GPUを使う", &["gpu", "を使", "使う"]);
        check(Language::Arabic, "المُحادثات والمحادثة", &["محادث", "محادث"]);
    }

    #[test]
    fn synonyms_count_as_one_word() {
        let synonyms = Synonyms::parse(Language::English, "# note\ndelete: remove, erase\n");
        assert_eq!(words(Language::English, &synonyms, "removing"), ["delet"]);
    }
}
