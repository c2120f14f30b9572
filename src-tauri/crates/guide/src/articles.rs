//! The files of `docs/guide`, embedded. A new topic is one line here and one file per language.

use crate::Language;
use crate::article::{Topic, parse};

/// The topics in reading order, with their files in the order of `Language::ALL`.
macro_rules! topics {
    ($($topic:literal),* $(,)?) => {
        const TOPICS: &[(&str, [&str; 4])] = &[$(($topic, [
            include_str!(concat!("../../../../docs/guide/en/", $topic, ".md")),
            include_str!(concat!("../../../../docs/guide/de/", $topic, ".md")),
            include_str!(concat!("../../../../docs/guide/ja/", $topic, ".md")),
            include_str!(concat!("../../../../docs/guide/ar/", $topic, ".md")),
        ])),*];
    };
}

topics![
    "start",
    "chats",
    "answers",
    "models",
    "downloads",
    "files",
    "long-chats",
    "sampling",
    "organize",
    "tools",
    "servers",
    "privacy",
    "data",
    "speed",
    "window",
    "terminal",
    "trouble",
];

/// All topics of a language.
///
/// # Panics
/// If an embedded file is no guide, which a test rules out.
pub fn of(language: Language) -> Vec<Topic> {
    let files = TOPICS.iter().map(|(topic, files)| (topic, files[language as usize]));
    let parsed = files.map(|(topic, file)| {
        parse(file).unwrap_or_else(|error| panic!("docs/guide/{}/{topic}.md, {error}", language.code()))
    });
    parsed.collect()
}

/// The synonyms of a language.
pub fn synonyms(language: Language) -> &'static str {
    match language {
        Language::English => include_str!("../../../../docs/guide/en/synonyms.txt"),
        Language::German => include_str!("../../../../docs/guide/de/synonyms.txt"),
        Language::Japanese => include_str!("../../../../docs/guide/ja/synonyms.txt"),
        Language::Arabic => include_str!("../../../../docs/guide/ar/synonyms.txt"),
    }
}

/// Words of subjects that are not about the application, in the form of the synonyms.
pub fn other_subjects(language: Language) -> &'static str {
    match language {
        Language::English => include_str!("../../../../docs/guide/en/other-subjects.txt"),
        Language::German => include_str!("../../../../docs/guide/de/other-subjects.txt"),
        Language::Japanese => include_str!("../../../../docs/guide/ja/other-subjects.txt"),
        Language::Arabic => include_str!("../../../../docs/guide/ar/other-subjects.txt"),
    }
}
