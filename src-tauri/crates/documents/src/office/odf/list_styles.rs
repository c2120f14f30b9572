//! Styles of OpenDocument: labels of lists, titles, and what is hidden.

use std::collections::{HashMap, HashSet};

use crate::extract_error::ExtractError;
use crate::list_label::NumberStyle;
use crate::office::xml::{XmlElement, XmlEvent, XmlReader};

/// Levels of a list.
pub const N_LEVELS: usize = 10;

/// Name under which the numbering of headings is kept.
pub const OUTLINE: &str = "\0outline";

/// Longest text before or after a number. Characters.
const MAX_AFFIX_CHARS: usize = 50;

/// Styles that a style may be based on, one after another.
const MAX_BASES: usize = 32;

/// How a level of a list is labelled.
#[derive(Debug, Clone, Default)]
pub struct OdfListLevel {
    pub style: NumberStyle,
    pub start: u32,
    prefix: String,
    suffix: String,
    /// Levels whose numbers are shown, with its own.
    n_shown: usize,
}

/// Levels of a style of lists.
pub type OdfListLevels = [OdfListLevel; N_LEVELS];

/// The label for the numbers of all levels down to the one meant.
pub fn label(levels: &OdfListLevels, numbers: &[u32]) -> String {
    let Some(level) = numbers.len().checked_sub(1).and_then(|at| levels.get(at)) else { return "-".into() };
    match level.style {
        NumberStyle::Bullet => return "-".into(),
        NumberStyle::Hidden => return String::new(),
        _ => {}
    }
    let first = numbers.len().saturating_sub(level.n_shown.max(1));
    let shown = (first..numbers.len()).map(|at| levels[at].style.write(numbers[at]));
    let shown: Vec<String> = shown.filter(|number| !number.is_empty()).collect();
    format!("{}{}{}", level.prefix, shown.join("."), level.suffix)
}

/// A style of paragraphs.
#[derive(Debug, Clone, Default)]
struct OdfParagraphStyle {
    base: Option<String>,
    list: Option<String>,
}

/// Styles of a document, by their names.
#[derive(Debug, Clone, Default)]
pub struct OdfStyles {
    lists: HashMap<String, OdfListLevels>,
    paragraphs: HashMap<String, OdfParagraphStyle>,
    /// Styles of text that is not shown.
    hidden: HashSet<String>,
}

impl OdfStyles {
    /// Adds the styles of a part.
    pub fn read(&mut self, mut xml: XmlReader<'_>) -> Result<(), ExtractError> {
        while let Some(event) = xml.next()? {
            let XmlEvent::Start(element) = event else { continue };
            match element.name() {
                "list-style" => {
                    let name = element.attribute("name").unwrap_or_default();
                    self.lists.insert(name, levels(&mut xml)?);
                }
                "outline-style" => {
                    let levels = levels(&mut xml)?;
                    self.lists.insert(OUTLINE.into(), levels);
                }
                "style" => self.read_style(&mut xml, &element)?,
                "body" => break,
                _ => {}
            }
        }
        Ok(())
    }

    fn read_style(&mut self, xml: &mut XmlReader<'_>, element: &XmlElement<'_>) -> Result<(), ExtractError> {
        let name = element.attribute("name").unwrap_or_default();
        let end = xml.depth() - 1;
        while xml.depth() > end {
            let Some(event) = xml.next()? else { break };
            let XmlEvent::Start(properties) = event else { continue };
            let is_hidden = properties.name() == "text-properties"
                && properties.attribute("display").is_some_and(|it| it == "none");
            if is_hidden {
                self.hidden.insert(name.clone());
            }
        }
        if element.attribute("family").as_deref() == Some("paragraph") {
            let style = OdfParagraphStyle {
                base: element.attribute("parent-style-name"),
                list: element.attribute("list-style-name"),
            };
            self.paragraphs.insert(name, style);
        }
        Ok(())
    }

    pub fn list(&self, name: &str) -> Option<&OdfListLevels> {
        self.lists.get(name)
    }

    /// The style of lists that a style of paragraphs names.
    pub fn list_of_paragraph(&self, style: &str) -> Option<&str> {
        let found = self.bases(style).find_map(|style| self.paragraphs.get(style)?.list.as_deref());
        found.filter(|name| !name.is_empty())
    }

    /// The paragraph is the title of the document.
    pub fn is_title(&self, style: &str) -> bool {
        self.bases(style).any(|style| style == "Title")
    }

    pub fn is_hidden(&self, style: &str) -> bool {
        self.hidden.contains(style)
    }

    fn bases<'a>(&'a self, style: &'a str) -> impl Iterator<Item = &'a str> {
        let base = |style: &&'a str| self.paragraphs.get(*style)?.base.as_deref();
        std::iter::successors(Some(style), base).take(MAX_BASES)
    }
}

fn levels(xml: &mut XmlReader<'_>) -> Result<OdfListLevels, ExtractError> {
    let end = xml.depth() - 1;
    let mut levels = OdfListLevels::default();
    while xml.depth() > end {
        let Some(event) = xml.next()? else { break };
        let XmlEvent::Start(element) = event else { continue };
        let style = match element.name() {
            "list-level-style-number" | "outline-level-style" => {
                NumberStyle::of_open_document(&element.attribute("num-format").unwrap_or_default())
            }
            "list-level-style-bullet" | "list-level-style-image" => NumberStyle::Bullet,
            _ => continue,
        };
        let affix = |name: &str| -> String {
            element.attribute(name).unwrap_or_default().chars().take(MAX_AFFIX_CHARS).collect()
        };
        let at = element.number::<usize>("level").unwrap_or(1).clamp(1, N_LEVELS) - 1;
        levels[at] = OdfListLevel {
            style,
            start: element.number("start-value").unwrap_or(1),
            prefix: affix("num-prefix"),
            suffix: affix("num-suffix"),
            n_shown: element.number("display-levels").unwrap_or(1),
        };
    }
    Ok(levels)
}
