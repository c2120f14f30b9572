//! Text of Word documents (ECMA-376, WordprocessingML): headings, lists with their labels, tables, notes, comments.
//!
//! Deleted, moved and hidden text is left out, as are headers and footers.

mod numbering;
mod styles;
#[cfg(test)]
mod tests;
mod walker;

use std::collections::HashMap;

use super::archive::Archive;
use super::relationships;
use super::xml::{XmlEvent, XmlReader};
use crate::block_builder::{BlockShape, TextBlock, markdown};
use crate::extract_error::ExtractError;
use numbering::Numbering;
use styles::Styles;
use walker::{DocumentWalker, NoteKind};

/// The document in `part` as Markdown.
pub fn read(archive: &Archive<'_>, part: &str) -> Result<String, ExtractError> {
    let links = relationships::read(archive, part)?;
    let optional = |kind: &str| -> Result<Option<(&str, String)>, ExtractError> {
        let Some(name) = relationships::of_kind(&links, kind) else { return Ok(None) };
        Ok(archive.text(name)?.map(|text| (name, text)))
    };
    let styles = match optional("styles")? {
        Some((name, text)) => Styles::read(XmlReader::new(archive, name, &text))?,
        None => Styles::default(),
    };
    let mut numbering = match optional("numbering")? {
        Some((name, text)) => Numbering::read(XmlReader::new(archive, name, &text))?,
        None => Numbering::default(),
    };
    let mut notes = HashMap::new();
    for kind in NoteKind::ALL {
        let Some((name, text)) = optional(kind.part())? else { continue };
        let mut xml = XmlReader::new(archive, name, &text);
        while let Some(event) = xml.next()? {
            let XmlEvent::Start(element) = event else { continue };
            // those with a type are lines between notes and text
            if element.name() != kind.element() || element.attribute("type").is_some_and(|it| it != "normal")
            {
                continue;
            }
            let id = element.attribute("id").unwrap_or_default();
            let author = element.attribute("author").filter(|_| kind == NoteKind::Comment);
            notes.insert((kind, id), (author, note(&mut xml, &styles, &mut numbering)?));
        }
    }
    let text = archive.require_text(part)?;
    let mut walker = DocumentWalker::new(&styles, &mut numbering);
    walker.walk(&mut XmlReader::new(archive, part, &text), 0)?;
    let references = std::mem::take(&mut walker.references);
    let mut builder = walker.builder;
    for reference in references {
        let Some((author, blocks)) = notes.get(&(reference.kind, reference.id)) else { continue };
        builder.begin(BlockShape::Item(0, format!("[^{}]:", reference.label)));
        if let Some(author) = author {
            builder.text(&format!("{author}: "));
        }
        builder.text(&markdown(blocks).replace("\n\n", "\n"));
    }
    builder.finish()
}

/// The blocks of the note that just began.
fn note(
    xml: &mut XmlReader<'_>,
    styles: &Styles,
    numbering: &mut Numbering,
) -> Result<Vec<TextBlock>, ExtractError> {
    let end = xml.depth() - 1;
    let mut walker = DocumentWalker::new(styles, numbering);
    walker.walk(xml, end)?;
    Ok(walker.builder.take_blocks())
}
