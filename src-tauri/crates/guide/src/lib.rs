//! The user guide: articles in four languages, and the search that answers a question with one of them.
//!
//! Guarantees that every name of a setting, key or command in an article exists: unknown ones fail a test.
//! Knows nothing of models, conversations or files of the user.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod article;
mod articles;
mod classifier;
mod features;
pub mod help;
mod labels;
mod language;
mod open_target;
mod placeholder;
mod questions;
mod small_talk;
mod train;
mod user_guide;
mod words;

use std::sync::OnceLock;

pub use article::Article;
pub use language::Language;
pub use open_target::OpenTarget;
pub use train::{DEVELOPMENT_SET, HeldOutScore, Sample, answers_held_out, questions_of_set, samples, train};

use classifier::{Classifier, Verdict};
use labels::Labels;
use words::Synonyms;

/// The guide in one language.
pub struct Guide {
    language: Language,
    articles: Vec<Article>,
    /// Heading and number of articles of each topic.
    topics: Vec<(String, usize)>,
    labels: Labels,
    classifier: Classifier,
}

/// An article that answers a question, with its text filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct GuideAnswer {
    /// Id of the article, the same in every language.
    pub article: String,
    /// Title of the article.
    pub title: String,
    /// How sure the choice of the article is, from 0 to 1.
    pub score: f32,
    /// The article in Markdown, without its title.
    pub text: String,
}

/// What the guide says to a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// An article.
    Article {
        /// The article.
        answer: GuideAnswer,
        /// Id of another article that may be meant.
        see_also: Option<String>,
    },
    /// A greeting, thanks and the like, answered in a few words.
    SmallTalk {
        /// The answer.
        text: &'static str,
    },
    /// The message is not about the application.
    OutOfScope,
}

impl Guide {
    /// The guide in a language. Its articles are read and indexed at the first call.
    pub fn in_language(language: Language) -> &'static Self {
        static GUIDES: [OnceLock<Guide>; Language::ALL.len()] =
            [const { OnceLock::new() }; Language::ALL.len()];
        GUIDES[language as usize].get_or_init(|| Self::new(language))
    }

    fn new(language: Language) -> Self {
        let topics = articles::of(language);
        let sizes = topics.iter().map(|topic| (topic.heading.clone(), topic.articles.len())).collect();
        let articles: Vec<_> = topics.into_iter().flat_map(|topic| topic.articles).collect();
        let classifier = Classifier::parse(language, Synonyms::of(language), classifier::weights(language))
            .expect("weights/*.bin is made by `make guide` and tested");
        Self { language, labels: Labels::of(language), classifier, articles, topics: sizes }
    }

    /// Its language.
    pub fn language(&self) -> Language {
        self.language
    }

    /// All articles, in reading order.
    pub fn articles(&self) -> &[Article] {
        &self.articles
    }

    /// Headings of the topics with their articles, in reading order.
    pub fn topics(&self) -> impl Iterator<Item = (&str, &[Article])> {
        let mut rest = self.articles.as_slice();
        self.topics.iter().map(move |(heading, n)| {
            let (of_topic, after) = rest.split_at(*n);
            rest = after;
            (heading.as_str(), of_topic)
        })
    }

    /// Ids of articles to read after this one. The English article has them for every language.
    pub fn related(&self, article: &Article) -> Vec<String> {
        self.english(article).related.clone()
    }

    /// Places that the article is about. The English article has them for every language.
    pub fn targets<'a>(&self, article: &'a Article) -> Vec<&'a OpenTarget> {
        self.english(article).targets.iter().collect()
    }

    /// Error codes, or their beginnings, that the article explains. The English article has them for every language.
    pub fn errors(&self, article: &Article) -> Vec<String> {
        self.english(article).errors.clone()
    }

    /// Keys of the settings that the article names.
    pub fn settings(&self, article: &Article) -> Vec<String> {
        placeholder::settings_in(&article.body)
    }

    fn english<'a>(&self, article: &'a Article) -> &'a Article {
        if self.language == Language::English {
            return article;
        }
        Self::in_language(Language::English).article(&article.id).unwrap_or(article)
    }

    /// The article with an id.
    pub fn article(&self, id: &str) -> Option<&Article> {
        self.articles.iter().find(|article| article.id == id)
    }

    /// The article's text with labels, keys and menu paths in place of its placeholders.
    pub fn text(&self, article: &Article) -> String {
        placeholder::fill(&article.body, |it| self.labels.text_of(it))
    }

    /// The article that answers a question; `None` if the guide has none.
    pub fn answer(&self, question: &str) -> Option<GuideAnswer> {
        match self.reply(question) {
            Reply::Article { answer, .. } => Some(answer),
            Reply::SmallTalk { .. } | Reply::OutOfScope => None,
        }
    }

    /// What the guide says to a message.
    pub fn reply(&self, message: &str) -> Reply {
        match self.classifier.classify(message) {
            Verdict::Article { best, other } => Reply::Article {
                answer: self.answer_of(best.article, best.score),
                see_also: other.map(|n| self.articles[n].id.clone()),
            },
            Verdict::SmallTalk => Reply::SmallTalk { text: small_talk::reply(self.language, message) },
            Verdict::OutOfScope => Reply::OutOfScope,
        }
    }

    /// One sentence that says what the guide is for.
    pub fn decline(&self) -> &'static str {
        small_talk::decline(self.language)
    }

    /// The same, with an offer of a model and its size in bytes.
    pub fn decline_with_offer(&self, model: &str, bytes: u64) -> String {
        small_talk::decline_with_offer(self.language, model, bytes)
    }

    /// Articles about a question, best first, whether or not they answer it.
    pub fn search(&self, question: &str, limit: usize) -> Vec<GuideAnswer> {
        let ranked = self.classifier.rank(question, limit);
        ranked.into_iter().map(|hit| self.answer_of(hit.article, hit.score)).collect()
    }

    /// The whole guide as one document in Markdown, for `docs/USER_GUIDE.md`.
    pub fn document(&self) -> String {
        user_guide::document(&articles::of(self.language), |article| self.text(article))
    }

    fn answer_of(&self, n: usize, score: f32) -> GuideAnswer {
        let article = &self.articles[n];
        GuideAnswer {
            article: article.id.clone(),
            title: article.title.clone(),
            score,
            text: self.text(article),
        }
    }
}

#[cfg(test)]
mod tests;
