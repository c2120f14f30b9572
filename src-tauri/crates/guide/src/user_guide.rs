//! The articles as one document: a table of contents, then topic by topic.

use crate::article::{Article, Topic};

/// What a reader of the document has to know first.
const PREFACE: &str = "# User guide

Made from the articles in [guide](guide/README.md) by `make guide`: change them, not this file. Inside Inglenook, open
**Help**, or run `nook guide QUESTION`. Keys are those of Linux and Windows; on a Mac, Ctrl is ⌘. The pictures show
scripted answers, not those of a real model.
";

/// All topics in Markdown. `text_of` fills in the placeholders of an article.
pub fn document(topics: &[Topic], text_of: impl Fn(&Article) -> String) -> String {
    let mut document = PREFACE.to_owned();
    document.push('\n');
    for topic in topics {
        document.push_str(&format!("- **{}**\n", topic.heading));
        for article in &topic.articles {
            document.push_str(&format!("  - [{}](#{})\n", article.title, article.id));
        }
    }
    let all = || topics.iter().flat_map(|topic| &topic.articles);
    for topic in topics {
        document.push_str(&format!("\n## {}\n", topic.heading));
        if !topic.introduction.is_empty() {
            document.push_str(&format!("\n{}\n", topic.introduction));
        }
        for article in &topic.articles {
            document.push_str(&format!(
                "\n<a id=\"{}\"></a>\n\n### {}\n\n{}\n",
                article.id,
                article.title,
                text_of(article)
            ));
            let related = article.related.iter().filter_map(|id| all().find(|it| it.id == *id));
            let links: Vec<_> = related.map(|it| format!("[{}](#{})", it.title, it.id)).collect();
            if !links.is_empty() {
                document.push_str(&format!("\nSee also: {}\n", links.join(" · ")));
            }
        }
    }
    document
}
