//! Wordings of questions by article, from `docs/guide/questions`: what the classifier learns from, besides the articles.
//!
//! A block is `# ID` and one question per line. `out-of-scope` and `small-talk` hold what no article answers.

use crate::Language;

/// Name of the block of questions that are not about the application.
pub const OUT_OF_SCOPE: &str = "out-of-scope";
/// Name of the block of greetings, thanks and the like.
pub const SMALL_TALK: &str = "small-talk";

/// Questions under one heading.
#[derive(Debug, PartialEq)]
pub struct QuestionBlock {
    /// An article's id, or one of the two names above.
    pub id: &'static str,
    /// The questions, as they were written.
    pub questions: Vec<&'static str>,
}

/// The questions of a language, in the order of its file. A line before the first heading is left out, which a test
/// rules out.
pub fn of(language: Language) -> Vec<QuestionBlock> {
    parse(source(language))
}

pub(crate) fn source(language: Language) -> &'static str {
    match language {
        Language::English => include_str!("../../../../docs/guide/questions/en.txt"),
        Language::German => include_str!("../../../../docs/guide/questions/de.txt"),
        Language::Japanese => include_str!("../../../../docs/guide/questions/ja.txt"),
        Language::Arabic => include_str!("../../../../docs/guide/questions/ar.txt"),
    }
}

fn parse(text: &'static str) -> Vec<QuestionBlock> {
    let mut blocks: Vec<QuestionBlock> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(id) = line.strip_prefix("# ") {
            blocks.push(QuestionBlock { id: id.trim(), questions: Vec::new() });
        } else if let Some(block) = blocks.last_mut() {
            block.questions.push(line);
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::Guide;
    use crate::words::fold;

    #[test]
    fn blocks_have_headings() {
        let blocks = parse("# a\nHow?\n\n# b\nWhat?\nWho?\n");
        let expected = [("a", vec!["How?"]), ("b", vec!["What?", "Who?"])];
        assert_eq!(blocks, expected.map(|(id, questions)| QuestionBlock { id, questions }));
    }

    #[test]
    fn every_article_has_questions_and_no_question_stands_twice() {
        for language in Language::ALL {
            let (guide, blocks) = (Guide::in_language(language), of(language));
            assert!(source(language).trim_start().starts_with("# "), "{}", language.code());
            let headed: BTreeSet<&str> = blocks.iter().map(|block| block.id).collect();
            let articles = guide.articles().iter().map(|article| article.id.as_str());
            let expected: BTreeSet<&str> = articles.chain([OUT_OF_SCOPE, SMALL_TALK]).collect();
            assert_eq!(headed, expected, "{}", language.code());
            let mut seen = BTreeMap::new();
            for block in &blocks {
                assert!(!block.questions.is_empty(), "{}: {}", language.code(), block.id);
                for question in &block.questions {
                    let earlier = seen.insert(fold(question), block.id);
                    assert_eq!(earlier, None, "{}, {}: {question}", language.code(), block.id);
                }
            }
        }
    }

    #[test]
    fn no_question_that_measures_the_guide_is_learned() {
        let known = |language| -> BTreeSet<String> {
            let articles = Guide::in_language(language).articles().iter();
            let wordings = articles.flat_map(|it| &it.phrasings).map(|wording| fold(wording));
            of(language).iter().flat_map(|it| &it.questions).map(|it| fold(it)).chain(wordings).collect()
        };
        let known = Language::ALL.map(known);
        let sets = [
            include_str!("../examples/questions.tsv"),
            include_str!("../examples/newcomers.tsv"),
            include_str!("../examples/impatient.tsv"),
        ];
        for line in sets.iter().flat_map(|set| set.lines()).filter(|line| !line.starts_with('#')) {
            let [code, _, question] = line.split('\t').collect::<Vec<_>>()[..] else { continue };
            let language = Language::from_code(code).expect("a language of the guide");
            assert!(!known[language as usize].contains(&fold(question.trim())), "{code}: {question}");
        }
    }
}
