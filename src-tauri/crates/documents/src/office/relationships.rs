//! Relationships between the parts of an Office file: which part an id stands for, and of what kind it is.

use super::archive::Archive;
use super::xml::{XmlEvent, XmlReader};
use crate::extract_error::ExtractError;

/// One target of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relationship {
    pub id: String,
    /// The last component of its type, such as `styles`.
    pub kind: String,
    /// Name of the part in the archive.
    pub target: String,
}

/// The relationships of a part, without those to other files or the web. `part` is empty for the file as a whole.
pub fn read(archive: &Archive<'_>, part: &str) -> Result<Vec<Relationship>, ExtractError> {
    let (folder, name) = part.rsplit_once('/').unwrap_or(("", part));
    let list = resolve(folder, &format!("_rels/{name}.rels"));
    let Some(text) = archive.text(&list)? else { return Ok(Vec::new()) };
    let mut xml = XmlReader::new(archive, &list, &text);
    let mut found = Vec::new();
    while let Some(event) = xml.next()? {
        let XmlEvent::Start(element) = event else { continue };
        let is_outside = element.attribute("TargetMode").is_some_and(|mode| mode == "External");
        if element.name() != "Relationship" || is_outside {
            continue;
        }
        let word = |name: &str| element.attribute(name).unwrap_or_default();
        let kind = word("Type").rsplit('/').next().unwrap_or_default().to_owned();
        found.push(Relationship { id: word("Id"), kind, target: resolve(folder, &word("Target")) });
    }
    Ok(found)
}

/// The part of this kind that a part names first.
pub fn of_kind<'a>(relationships: &'a [Relationship], kind: &str) -> Option<&'a str> {
    relationships.iter().find(|it| it.kind == kind).map(|it| it.target.as_str())
}

/// The part that an id stands for.
pub fn of_id<'a>(relationships: &'a [Relationship], id: &str) -> Option<&'a str> {
    relationships.iter().find(|it| it.id == id).map(|it| it.target.as_str())
}

/// The name of a part, from a path relative to `folder`.
pub fn resolve(folder: &str, target: &str) -> String {
    let whole = if target.starts_with('/') { target.to_owned() } else { format!("{folder}/{target}") };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_relative_to_their_folder() {
        for (folder, target, expected) in [
            ("ppt/slides", "../notesSlides/n1.xml", "ppt/notesSlides/n1.xml"),
            ("xl", "/xl/styles.xml", "xl/styles.xml"),
            ("", "word/document.xml", "word/document.xml"),
            ("OEBPS", "./a/../../../b.xhtml", "b.xhtml"),
        ] {
            assert_eq!(resolve(folder, target), expected);
        }
    }
}
