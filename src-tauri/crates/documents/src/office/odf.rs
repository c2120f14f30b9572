//! Text of OpenDocument files (ISO/IEC 26300): texts, presentations and workbooks.

mod list_styles;
mod spreadsheet;
#[cfg(test)]
mod tests;
mod walker;

use super::archive::Archive;
use super::xml::{XmlEvent, XmlReader};
use crate::block_builder::{BlockBuilder, BlockShape, markdown};
use crate::extract_error::ExtractError;
use list_styles::OdfStyles;
use walker::OdfWalker;

/// Where the document itself is.
const CONTENT: &str = "content.xml";

/// Parts of an OpenDocument file that are encrypted are listed so.
pub fn check_password(archive: &Archive<'_>) -> Result<(), ExtractError> {
    const MANIFEST: &str = "META-INF/manifest.xml";
    let Some(text) = archive.text(MANIFEST)? else { return Ok(()) };
    let mut xml = XmlReader::new(archive, MANIFEST, &text);
    while let Some(event) = xml.next()? {
        if matches!(&event, XmlEvent::Start(element) if element.name() == "encryption-data") {
            return Err(ExtractError::locked());
        }
    }
    Ok(())
}

/// A text document as Markdown.
pub fn read_text(archive: &Archive<'_>) -> Result<String, ExtractError> {
    let (styles, content) = open(archive)?;
    let mut walker = OdfWalker::new(&styles);
    walker.walk(&mut XmlReader::new(archive, CONTENT, &content), 0)?;
    let notes = std::mem::take(&mut walker.notes);
    let mut builder = walker.builder;
    write_notes(&mut builder, notes);
    builder.finish()
}

/// A workbook as Markdown.
pub fn read_workbook(archive: &Archive<'_>) -> Result<String, ExtractError> {
    let content = archive.require_text(CONTENT)?;
    spreadsheet::read(XmlReader::new(archive, CONTENT, &content))
}

/// A presentation as Markdown.
pub fn read_presentation(archive: &Archive<'_>) -> Result<String, ExtractError> {
    let (styles, content) = open(archive)?;
    let mut xml = XmlReader::new(archive, CONTENT, &content);
    let mut builder = BlockBuilder::default();
    let mut n = 0;
    while let Some(event) = xml.next()? {
        let XmlEvent::Start(element) = event else { continue };
        if element.name() != "page" {
            continue;
        }
        n += 1;
        let mut walker = OdfWalker::new(&styles);
        walker.walk_page(&mut xml)?;
        builder.begin(BlockShape::Heading(2));
        builder.text(&match walker.title.is_empty() {
            true => format!("Slide {n}"),
            false => format!("Slide {n}: {}", walker.title),
        });
        builder.end();
        let speaker_notes = std::mem::take(&mut walker.speaker_notes);
        let blocks = walker.builder.take_blocks();
        builder.count(markdown(&blocks).len() + markdown(&speaker_notes).len());
        blocks.into_iter().for_each(|block| builder.push(block));
        if !speaker_notes.is_empty() {
            builder.begin(BlockShape::Heading(3));
            builder.text("Notes");
            speaker_notes.into_iter().for_each(|block| builder.push(block));
        }
        if builder.is_full() {
            break;
        }
    }
    builder.finish()
}

fn open(archive: &Archive<'_>) -> Result<(OdfStyles, String), ExtractError> {
    const STYLES: &str = "styles.xml";
    let content = archive.require_text(CONTENT)?;
    let mut styles = OdfStyles::default();
    if let Some(text) = archive.text(STYLES)? {
        styles.read(XmlReader::new(archive, STYLES, &text))?;
    }
    styles.read(XmlReader::new(archive, CONTENT, &content))?;
    Ok((styles, content))
}

fn write_notes(builder: &mut BlockBuilder, notes: Vec<walker::OdfNote>) {
    for note in notes {
        builder.begin(BlockShape::Item(0, format!("[^{}]:", note.label)));
        builder.text(&markdown(&note.blocks).replace("\n\n", "\n"));
    }
    builder.end();
}
