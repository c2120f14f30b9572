//! Languages of the guide: those of the interface.

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
        let count = |is: fn(char) -> bool| text.chars().filter(|&c| is(c)).count();
        if count(|c| matches!(c, '\u{3040}'..='\u{30ff}' | '\u{4e00}'..='\u{9fff}')) > 0 {
            return Self::Japanese;
        }
        if count(|c| matches!(c, '\u{0600}'..='\u{06ff}')) > 0 {
            return Self::Arabic;
        }
        let is_german = text.contains(['ä', 'ö', 'ü', 'ß', 'Ä', 'Ö', 'Ü'])
            || text
                .split(|c: char| !c.is_alphabetic())
                .any(|word| GERMAN_WORDS.contains(&word.to_lowercase().as_str()));
        if is_german { Self::German } else { Self::English }
    }
}

/// Frequent German words that no English sentence has.
const GERMAN_WORDS: &[&str] = &[
    "wie", "ich", "kann", "ist", "das", "der", "wo", "wer", "warum", "ein", "eine", "einen", "nicht", "und",
    "mein", "meine", "meinen", "geht", "gibt", "es", "auf", "welche", "welches", "welcher", "wieso",
    "werden", "soll", "muss", "kein", "keine", "bitte", "oder", "vom", "zum", "zur", "dem", "sind", "heißt",
    "macht", "hallo", "danke",
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
            ("印刷するには", Language::Japanese),
            ("كيف أطبع المحادثة؟", Language::Arabic),
        ] {
            assert_eq!(Language::of_text(text), language, "{text}");
        }
    }
}
