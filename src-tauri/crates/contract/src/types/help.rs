//! The user guide inside the application.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Asks for the guide in a language.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct HelpArgs {
    /// Code of ISO 639-1; English where the guide does not speak it.
    pub language: String,
}

/// Asks for the ids of articles about a question, best first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct HelpSearchArgs {
    /// Code of ISO 639-1; English where the guide does not speak it.
    pub language: String,
    /// A question, or a few words of it.
    pub question: String,
}

/// A group of articles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct HelpTopic {
    pub heading: String,
    pub articles: Vec<HelpArticle>,
}

/// An article.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct HelpArticle {
    /// The same in every language.
    pub id: String,
    pub title: String,
    /// Markdown, with the names of settings, keys and commands filled in.
    pub text: String,
    /// Ids of articles to read next.
    pub related: Vec<String>,
    /// Places that the article is about.
    pub targets: Vec<HelpTarget>,
    /// Error codes that the article explains, or their beginnings, which end in `.` or `_`.
    pub errors: Vec<String>,
    /// Keys of the settings that the article names.
    pub settings: Vec<String>,
}

/// What the user guide answered a message with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum GuideReply {
    /// The text of an article.
    Article {
        /// Its id.
        article: String,
        /// Id of another article that may be meant.
        #[ts(optional = nullable)]
        see_also: Option<String>,
    },
    /// A few kind words.
    SmallTalk,
    /// The guide has no answer; the text offers a model that has.
    OutOfScope {
        /// Id of the catalogue's model that is recommended here. None: no model fits.
        #[ts(optional = nullable)]
        model: Option<String>,
    },
}

/// A place that a button under an article opens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum HelpTarget {
    /// A section of the settings, by the interface's key.
    Section { key: String },
    /// One setting.
    Setting { key: String },
    /// What a command shows.
    Command { id: String },
}
