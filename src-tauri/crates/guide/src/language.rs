//! Languages of the guide: those of the interface.

use std::cmp::Ordering;

/// A language with a complete set of articles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// English, the source of the others.
    English,
    /// German.
    German,
    /// Japanese.
    Japanese,
    /// Arabic.
    Arabic,
}

impl Language {
    /// All languages, in the order of their discriminants.
    pub const ALL: [Self; 4] = [Self::English, Self::German, Self::Japanese, Self::Arabic];

    /// Two-letter code of ISO 639-1.
    pub fn code(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::German => "de",
            Self::Japanese => "ja",
            Self::Arabic => "ar",
        }
    }

    /// The language of a code such as `de`, `de-AT` or `de_AT.UTF-8`; `None` if the guide does not speak it.
    pub fn from_code(code: &str) -> Option<Self> {
        let primary = code.split(['-', '_', '.']).next().unwrap_or_default();
        Self::ALL.into_iter().find(|language| language.code().eq_ignore_ascii_case(primary))
    }

    /// The language that a text is written in, by its script; Latin script without German words counts as English.
    pub fn of_text(text: &str) -> Self {
        Self::of_question(text).unwrap_or(Self::English)
    }

    /// The language that a question is written in; `None` where it may be any, such as a product's name.
    pub fn of_question(text: &str) -> Option<Self> {
        let count = |is: fn(char) -> bool| text.chars().filter(|&c| is(c)).count();
        if count(|c| matches!(c, '\u{3040}'..='\u{30ff}' | '\u{4e00}'..='\u{9fff}')) > 0 {
            return Some(Self::Japanese);
        }
        if count(|c| matches!(c, '\u{0600}'..='\u{06ff}')) > 0 {
            return Some(Self::Arabic);
        }
        let lower = text.to_lowercase();
        let n_of = |known: &[&str]| {
            lower.split(|c: char| !c.is_alphabetic()).filter(|word| known.contains(word)).count()
        };
        let n_umlauts = usize::from(lower.contains(['ä', 'ö', 'ü', 'ß']));
        let (n_german, n_english) = (n_umlauts + n_of(GERMAN_WORDS), n_of(ENGLISH_WORDS));
        match n_german.cmp(&n_english) {
            Ordering::Greater => Some(Self::German),
            Ordering::Less => Some(Self::English),
            Ordering::Equal => (n_german > 0).then_some(Self::German),
        }
    }
}

/// Frequent English words that are no German words.
const ENGLISH_WORDS: &[&str] = &[
    "the", "how", "what", "where", "why", "who", "when", "which", "is", "are", "do", "does", "can", "i",
    "my", "it", "to", "of", "this", "that", "a", "an", "you", "your", "not", "with", "for", "hello",
    "thanks", "thank", "please", "me", "we", "they", "there", "on", "at", "from", "be", "have", "has", "had",
    "did", "its", "don", "get", "make", "want", "need", "and", "or", "if", "but", "out", "into", "than",
    "too", "just",
];

/// Frequent German words that are rare in English sentences.
const GERMAN_WORDS: &[&str] = &[
    "wie", "ich", "kann", "ist", "das", "der", "wo", "wer", "warum", "ein", "eine", "einen", "nicht", "und",
    "mein", "meine", "meinen", "geht", "gibt", "es", "auf", "welche", "welches", "welcher", "wieso",
    "werden", "soll", "muss", "kein", "keine", "bitte", "oder", "vom", "zum", "zur", "dem", "sind", "heißt",
    "macht", "hallo", "danke", "die", "den", "des", "mir", "mich", "ihm", "ihn", "du", "er", "sie", "wir",
    "man", "im", "am", "zu", "mit", "von", "bei", "beim", "aus", "nach", "als", "wenn", "wird", "wurde",
    "habe", "hab", "hat", "noch", "nur", "schon", "auch", "hier", "dann", "immer", "alle", "alles", "mehr",
    "viel", "viele", "nichts", "nix", "jetzt", "wieder", "weg", "gibts", "sowas", "statt", "ohne", "obwohl",
    "weil", "damit", "dass", "ob", "jedes", "jeder", "jede", "diese", "dieses", "diesem", "diesen", "dieser",
    "einem", "einer", "eines", "nochmal", "mal", "meinem", "meiner", "kannst", "woher", "wohin", "ins",
    "nie", "ganz", "ans",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_with_a_region_are_understood() {
        assert_eq!(Language::from_code("de_AT.UTF-8"), Some(Language::German));
        assert_eq!(Language::from_code("ja-JP"), Some(Language::Japanese));
        assert_eq!(Language::from_code("fr"), None);
    }

    #[test]
    fn a_question_tells_its_language() {
        for (text, language) in [
            ("How do I print?", Language::English),
            ("wie drucke ich", Language::German),
            ("neues thema anfangen, ohne das alte", Language::German),
            ("does it die after a while", Language::English),
            ("印刷するには", Language::Japanese),
            ("كيف أطبع المحادثة؟", Language::Arabic),
        ] {
            assert_eq!(Language::of_question(text), Some(language), "{text}");
        }
        assert_eq!((Language::of_question("GPU"), Language::of_text("GPU")), (None, Language::English));
    }
}
