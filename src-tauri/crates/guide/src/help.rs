//! The user guide for the interface: its articles, and the search for one that answers a question.

use crate::{Article, Guide, Language, OpenTarget};
use contract::types::{HelpArgs, HelpArticle, HelpSearchArgs, HelpTarget, HelpTopic};

/// Articles that a search offers.
const MAX_RESULTS: usize = 12;

fn guide_in(language: &str) -> &'static Guide {
    Guide::in_language(Language::from_code(language).unwrap_or(Language::English))
}

/// All articles in reading order.
pub fn topics(args: &HelpArgs) -> Vec<HelpTopic> {
    let guide = guide_in(&args.language);
    let topic = |(heading, articles): (&str, &[Article])| HelpTopic {
        heading: heading.into(),
        articles: articles.iter().map(|article| article_of(guide, article)).collect(),
    };
    guide.topics().map(topic).collect()
}

/// Ids of articles about the question, best first.
pub fn search(args: &HelpSearchArgs) -> Vec<String> {
    let found = guide_in(&args.language).search(&args.question, MAX_RESULTS);
    found.into_iter().map(|it| it.article).collect()
}

fn article_of(guide: &Guide, article: &Article) -> HelpArticle {
    HelpArticle {
        id: article.id.clone(),
        title: article.title.clone(),
        text: guide.text(article),
        related: guide.related(article),
        targets: guide.targets(article).into_iter().map(target_of).collect(),
        errors: guide.errors(article),
        settings: guide.settings(article),
    }
}

fn target_of(target: &OpenTarget) -> HelpTarget {
    match target {
        OpenTarget::Section(key) => HelpTarget::Section { key: key.clone() },
        OpenTarget::Setting(key) => HelpTarget::Setting { key: key.clone() },
        OpenTarget::Command(id) => HelpTarget::Command { id: id.clone() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_the_same_articles_with_places_to_open() {
        let ids = |language: &str| -> Vec<(String, usize)> {
            let topics = topics(&HelpArgs { language: language.into() });
            topics.into_iter().flat_map(|it| it.articles).map(|it| (it.id, it.targets.len())).collect()
        };
        let english = ids("en");
        assert!(english.contains(&("print-a-chat".into(), 1)));
        assert_eq!(ids("ja"), english);
        assert_eq!(ids("xx"), english, "English where the language is unknown");
    }

    #[test]
    fn a_question_finds_its_article() {
        let search =
            |question: &str| search(&HelpSearchArgs { language: "en".into(), question: question.into() });
        assert_eq!(search("Can I print a chat to PDF?")[0], "print-a-chat");
        assert_eq!(search("?"), Vec::<String>::new());
    }
}
