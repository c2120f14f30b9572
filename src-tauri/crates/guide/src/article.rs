//! Reads articles from Markdown. A topic's file holds several.
//!
//! A topic begins with `# Heading` and may have an introduction. An article begins with `## Title {#id}`. An HTML comment after its text holds one `key: value` per line: `ask`
//! (another phrasing of the question), and in English also `related`, `open` and `errors`.

use crate::open_target::OpenTarget;

/// A group of articles: one file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Topic {
    /// Its heading.
    pub heading: String,
    /// Text in Markdown before the first article; only the document shows it.
    pub introduction: String,
    /// Its articles, in reading order.
    pub articles: Vec<Article>,
}

/// One article of the guide, in one language. Placeholders such as `{keys:print}` are not filled in yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Article {
    /// Stable id, the same in every language.
    pub id: String,
    /// Title.
    pub title: String,
    /// Text in Markdown, without the title.
    pub body: String,
    /// Questions that the article answers, in the words of people who ask.
    pub phrasings: Vec<String>,
    /// Ids of articles to read next.
    pub related: Vec<String>,
    /// Places in the application that the article is about.
    pub targets: Vec<OpenTarget>,
    /// Error codes, or their beginnings, that the article explains.
    pub errors: Vec<String>,
}

/// Why a file of articles can't be read.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct ArticleError {
    /// Line of the file, from 1.
    pub line: usize,
    /// What is wrong.
    pub reason: String,
}

impl ArticleError {
    fn new(line: usize, reason: impl Into<String>) -> Self {
        Self { line, reason: reason.into() }
    }
}

/// Reads the articles of one topic.
///
/// # Errors
/// Names the line that is not as described at the top of this module.
pub fn parse(text: &str) -> Result<Topic, ArticleError> {
    let mut reader = Reader::default();
    for (n, line) in text.lines().enumerate() {
        reader.read(n + 1, line)?;
    }
    if reader.in_comment {
        return Err(ArticleError::new(text.lines().count(), "the comment is not closed"));
    }
    let mut topic = reader.topic;
    topic.introduction = topic.introduction.trim().to_owned();
    for article in &mut topic.articles {
        article.body = article.body.trim().to_owned();
    }
    Ok(topic)
}

/// The state between two lines.
#[derive(Default)]
struct Reader {
    topic: Topic,
    in_comment: bool,
}

impl Reader {
    fn read(&mut self, n: usize, line: &str) -> Result<(), ArticleError> {
        if self.in_comment {
            return self.read_metadata(n, line.trim());
        }
        if let Some(heading) = line.strip_prefix("# ") {
            self.topic.heading = heading.trim().to_owned();
        } else if let Some(heading) = line.strip_prefix("## ") {
            self.topic.articles.push(article_of(n, heading)?);
        } else if line.trim() == "<!--" {
            self.in_comment = true;
        } else {
            let text = self.topic.articles.last_mut().map_or(&mut self.topic.introduction, |it| &mut it.body);
            text.push_str(line);
            text.push('\n');
        }
        Ok(())
    }

    fn read_metadata(&mut self, n: usize, line: &str) -> Result<(), ArticleError> {
        if line == "-->" {
            self.in_comment = false;
            return Ok(());
        }
        // A comment before the first article is for authors.
        let Some(article) = self.topic.articles.last_mut() else { return Ok(()) };
        let (key, value) = line
            .split_once(':')
            .ok_or_else(|| ArticleError::new(n, "expected `key: value`, such as `ask: How …?`"))?;
        let list = || value.split(',').map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned);
        match key.trim() {
            "ask" => article.phrasings.push(value.trim().to_owned()),
            "related" => article.related.extend(list()),
            "errors" => article.errors.extend(list()),
            "open" => {
                for target in list() {
                    let target = OpenTarget::parse(&target)
                        .ok_or_else(|| ArticleError::new(n, format!("`{target}` names nothing to open")))?;
                    article.targets.push(target);
                }
            }
            other => return Err(ArticleError::new(n, format!("unknown key `{other}`"))),
        }
        Ok(())
    }
}

fn article_of(n: usize, heading: &str) -> Result<Article, ArticleError> {
    let (title, id) = heading
        .trim()
        .strip_suffix('}')
        .and_then(|rest| rest.split_once(" {#"))
        .ok_or_else(|| ArticleError::new(n, "a heading ends with its id: ## Title {#id}"))?;
    let is_id = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if id.is_empty() || !id.chars().all(is_id) {
        return Err(ArticleError::new(n, format!("`{id}` is no id: lower-case letters, digits and hyphens")));
    }
    Ok(Article {
        id: id.to_owned(),
        title: title.trim().to_owned(),
        body: String::new(),
        phrasings: Vec::new(),
        related: Vec::new(),
        targets: Vec::new(),
        errors: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOPIC: &str = "# Chats\n\nAbout chats.\n\n## Print a chat {#print-a-chat}\n\nPress {keys:print}.\n\n<!--\nopen: command:print\n\
                         related: export-a-chat, find-in-a-chat\nask: How do I print: on paper?\n-->\n";

    #[test]
    fn an_article_has_text_and_metadata() {
        let topic = parse(TOPIC).expect("valid");
        assert_eq!((topic.heading.as_str(), topic.introduction.as_str()), ("Chats", "About chats."));
        let [article] = topic.articles.as_slice() else { panic!("one article") };
        assert_eq!(
            (article.id.as_str(), article.title.as_str(), article.body.as_str()),
            ("print-a-chat", "Print a chat", "Press {keys:print}.")
        );
        assert_eq!(article.related, ["export-a-chat", "find-in-a-chat"]);
        assert_eq!(article.phrasings, ["How do I print: on paper?"]);
        assert_eq!(article.targets, [OpenTarget::Command("print".into())]);
    }

    #[test]
    fn faults_name_their_line() {
        for (text, line) in [
            ("# A\n## No id\n", 2),
            ("## A {#Bad}\n", 1),
            ("## A {#a}\n<!--\nnonsense\n-->\n", 3),
            ("## A {#a}\n<!--\nopen: nowhere\n-->\n", 3),
            ("## A {#a}\n<!--\nask: x\n", 3),
        ] {
            assert_eq!(parse(text).expect_err(text).line, line, "{text}");
        }
    }
}
