//! Questions to comparable words: one spelling, runs of one script, stems.

use std::collections::{BTreeSet, HashMap};

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::Language;
use crate::articles;

/// Words and phrases with what they are about, by their stems. A word may have several meanings.
#[derive(Debug, Default)]
pub struct Synonyms(HashMap<String, Vec<String>>);

/// Longest phrase that has a meaning, in words.
const MAX_PHRASE_WORDS: usize = 3;
/// Shortest part of a German compound that is looked for.
const MIN_PART_CHARS: usize = 4;

impl Synonyms {
    /// Reads lines such as `delete: remove, throw away`: what stands after the colon means the same as what stands before it.
    pub fn parse(language: Language, text: &str) -> Self {
        let phrase = |text: &str| match language {
            Language::Japanese => fold(text.trim()),
            Language::English | Language::German | Language::Arabic => stems(language, text).join(" "),
        };
        let mut map: HashMap<String, Vec<String>> = HashMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some((to, from)) = line.split_once(':') else { continue };
            let to = phrase(to);
            let words = from.split(',').map(phrase).chain([to.clone()]).filter(|word| !word.is_empty());
            for key in words.flat_map(|word| root_key(language, &word).into_iter().chain([word])) {
                let meanings = map.entry(key).or_default();
                if !meanings.contains(&to) {
                    meanings.push(to.clone());
                }
            }
        }
        Self(map)
    }

    /// The synonyms of a language and the words of other subjects.
    pub fn of(language: Language) -> Self {
        let files = [articles::synonyms(language), articles::other_subjects(language)];
        Self::parse(language, &files.join("\n"))
    }

    /// What a word or phrase is about, by its stems.
    pub fn meanings(&self, phrase: &str) -> &[String] {
        self.0.get(phrase).map_or(&[], Vec::as_slice)
    }

    /// What each word is about, alone, within a phrase, as a compound, or as another form of an Arabic word. The meanings
    /// of a phrase stand at its first word.
    pub fn meanings_by_word(&self, language: Language, stems: &[String]) -> Vec<Vec<&str>> {
        let mut by_word: Vec<Vec<&str>> = vec![Vec::new(); stems.len()];
        for (n, stem) in stems.iter().enumerate() {
            for n_words in 2..=MAX_PHRASE_WORDS.min(stems.len() - n) {
                let phrase = stems[n..n + n_words].join(" ");
                by_word[n].extend(self.meanings(&phrase).iter().map(String::as_str));
            }
            by_word[n].extend(self.meanings(stem).iter().map(String::as_str));
            if !self.meanings(stem).is_empty() {
                continue;
            }
            if language == Language::German {
                by_word[n].extend(self.meanings_of_parts(stem));
            } else if let Some(root) = root_key(language, stem) {
                by_word[n].extend(self.meanings(&root).iter().map(String::as_str));
            }
        }
        by_word
    }

    /// What the beginning and the end of a German compound are about: the longest of each that have a meaning.
    fn meanings_of_parts<'s>(&'s self, word: &str) -> Vec<&'s str> {
        let chars: Vec<usize> = word.char_indices().map(|(at, _)| at).collect();
        let mut found: Vec<&'s str> = Vec::new();
        let mut add = |meanings: &'s [String]| found.extend(meanings.iter().map(String::as_str));
        let firsts = chars.iter().skip(MIN_PART_CHARS).rev();
        let first = firsts.map(|&cut| self.meanings(&stem(Language::German, &word[..cut])));
        first.filter(|it| !it.is_empty()).take(1).for_each(&mut add);
        let lasts = chars.iter().take((chars.len() + 1).saturating_sub(MIN_PART_CHARS)).skip(1);
        let last = lasts.map(|&cut| self.meanings(&word[cut..]));
        last.filter(|it| !it.is_empty()).take(1).for_each(&mut add);
        found
    }

    /// What the words that occur anywhere in a folded text are about, each once and in order.
    pub fn meanings_in(&self, text: &str) -> Vec<&str> {
        let found: BTreeSet<&str> = self
            .0
            .iter()
            .filter(|(word, _)| text.contains(word.as_str()))
            .flat_map(|(_, to)| to.iter().map(String::as_str))
            .collect();
        found.into_iter().collect()
    }
}

/// Key of the meanings that all forms of an Arabic word share. `None` for phrases, for short roots, and in other
/// languages.
fn root_key(language: Language, word: &str) -> Option<String> {
    if language != Language::Arabic || word.contains(' ') {
        return None;
    }
    let root = arabic_root(word).filter(|root| root.chars().count() >= MIN_STEM_CHARS)?;
    Some(format!("√{root}"))
}

/// The words and phrases of such lines, as they are written.
pub fn phrases(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(':'));
    lines
        .flat_map(|(to, from)| std::iter::once(to).chain(from.split(',')))
        .map(str::trim)
        .filter(|it| !it.is_empty())
}

/// A word without its endings.
pub fn stem(language: Language, word: &str) -> String {
    match language {
        Language::English | Language::Japanese => english_stem(word),
        Language::German => german_stem(word),
        Language::Arabic => arabic_stem(word),
    }
}

fn stems(language: Language, text: &str) -> Vec<String> {
    runs(&fold(text)).into_iter().map(|word| stem(language, word)).collect()
}

/// One spelling: compatibility forms, lower case, no accents, no vowel marks, one form of each Arabic letter.
pub fn fold(text: &str) -> String {
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
pub fn runs(text: &str) -> Vec<&str> {
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

/// Endings of German nouns, verbs and adjectives. The last letter of a short word such as `chat` is none.
fn german_stem(word: &str) -> String {
    if word.ends_with('t') && word.chars().count() <= MIN_STEM_CHARS + 1 {
        return word.to_owned();
    }
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

/// What most forms of an Arabic word have in common: its consonants without prefixes, suffixes and long vowels. `None`
/// where fewer than two are left.
pub fn arabic_root(word: &str) -> Option<String> {
    const PREFIXES: &[&str] = &["ال", "لل", "ل", "و", "ف", "ب", "ك", "س", "است", "ان", "ت", "ي", "ن", "م"];
    const ENDINGS: &[&str] =
        &["تها", "ها", "هم", "كم", "نا", "ني", "ات", "ين", "ون", "ان", "وا", "ه", "ك", "ت", "ي"];
    let mut rest = word;
    let enough = |it: &&str| it.chars().filter(|c| !is_long_vowel(*c)).count() >= MIN_STEM_CHARS;
    // Conjunction, article, and the prefix of a verb or participle.
    for _ in 0..MIN_STEM_CHARS {
        let Some(shorter) = PREFIXES.iter().find_map(|it| rest.strip_prefix(it).filter(enough)) else {
            break;
        };
        rest = shorter;
    }
    for _ in 0..2 {
        let Some(shorter) = ENDINGS.iter().find_map(|it| rest.strip_suffix(it).filter(enough)) else { break };
        rest = shorter;
    }
    let root: String = rest.chars().filter(|c| !is_long_vowel(*c)).collect();
    (root.chars().count() >= 2).then_some(root)
}

fn is_long_vowel(c: char) -> bool {
    matches!(c, 'ا' | 'و' | 'ي' | 'ء' | 'ئ' | 'ؤ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_an_arabic_word_share_their_root() {
        for (words, root) in [
            (["المحادثة", "محادثات", "والمحادثات"], "حدث"),
            (["تنزيل", "أنزل", "نزل"], "نزل"),
            (["حذف", "أحذف", "حذفتها"], "حذف"),
        ] {
            for word in words {
                assert_eq!(arabic_root(&fold(word)).as_deref(), Some(root), "{word}");
            }
        }
        assert_eq!(arabic_root("و"), None);
    }

    #[track_caller]
    fn check(language: Language, text: &str, expected: &[&str]) {
        assert_eq!(stems(language, text), expected, "{text}");
    }

    #[test]
    fn stems_of_each_language() {
        check(Language::English, "Stopping chats, deleted files?", &["stop", "chat", "delet", "file"]);
        check(Language::German, "Wie lösche ich Chats?", &["wie", "losch", "ich", "chat"]);
        check(Language::Japanese, "GPUを使う", &["gpu", "を使う"]);
        check(Language::Arabic, "المُحادثات والمحادثة", &["محادث", "محادث"]);
    }

    #[test]
    fn synonyms_count_as_one_word() {
        let synonyms = Synonyms::parse(Language::English, "# note\ndelete: remove, erase\n");
        assert_eq!(synonyms.meanings(&stem(Language::English, "removing")), ["delet"]);
        assert_eq!(synonyms.meanings("delet"), ["delet"]);
        assert_eq!(synonyms.meanings("chat"), [""; 0]);
    }

    #[test]
    fn phrases_and_compounds_have_meanings() {
        let check = |language, synonyms: &str, text: &str, expected: &[&[&str]]| {
            let synonyms = Synonyms::parse(language, synonyms);
            assert_eq!(synonyms.meanings_by_word(language, &stems(language, text)), expected, "{text}");
        };
        let english = "delete: throw away, bin\nbasket: bin\n";
        check(
            Language::English,
            english,
            "throwing away a bin",
            &[&["delet"], &[], &[], &["delet", "basket"]],
        );
        let german = "chat: unterhaltung\nsuche: suchen\n";
        check(Language::German, german, "Chatverlauf", &[&["chat"]]);
        check(Language::German, german, "Unterhaltungssuche", &[&["chat", "such"]]);
        check(Language::Arabic, "حذف: محو\n", "ستحذفونها", &[&["حذف"]]);
    }
}
