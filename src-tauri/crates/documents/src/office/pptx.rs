//! Text of presentations (ECMA-376, PresentationML): slide by slide, each with its title first and its notes last.
//!
//! A slide that can't be read is named, and the others are read. Slide numbers, dates and footers are left out.

use super::archive::Archive;
use super::relationships::{self, Relationship};
use super::xml::{XmlElement, XmlEvent, XmlReader};
use crate::block_builder::{BlockBuilder, BlockShape, TextBlock, markdown};
use crate::extract_error::ExtractError;
use crate::list_label::NumberStyle;

/// Levels of a list.
const N_LEVELS: usize = 9;

/// The title of a slide, and what else it has.
#[derive(Default)]
struct SlideText {
    title: String,
    blocks: Vec<TextBlock>,
    is_hidden: bool,
}

/// What a shape is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShapeRole {
    Title,
    /// Its paragraphs are items of a list.
    Body,
    /// Number, date, footer, or the picture of a slide.
    Furniture,
    Other,
}

impl ShapeRole {
    fn of_placeholder(kind: &str) -> Self {
        match kind {
            "title" | "ctrTitle" => Self::Title,
            "" | "body" | "obj" => Self::Body,
            "sldNum" | "dt" | "ftr" | "hdr" | "sldImg" => Self::Furniture,
            _ => Self::Other,
        }
    }
}

/// The presentation in `part` as Markdown.
pub fn read(archive: &Archive<'_>, part: &str) -> Result<String, ExtractError> {
    let links = relationships::read(archive, part)?;
    let text = archive.require_text(part)?;
    let mut xml = XmlReader::new(archive, part, &text);
    let (mut builder, mut first_error) = (BlockBuilder::default(), None);
    let (mut n, mut n_read) = (0, 0);
    while let Some(event) = xml.next()? {
        let XmlEvent::Start(element) = event else { continue };
        if element.name() != "sldId" || builder.is_full() {
            continue;
        }
        n += 1;
        let Some(name) = element.relationship().and_then(|id| relationships::of_id(&links, &id)) else {
            continue;
        };
        match slide(archive, name) {
            Ok(slide) => {
                n_read += 1;
                write(&mut builder, n, slide);
            }
            Err(error) => {
                builder.begin(BlockShape::Heading(2));
                builder.text(&format!("Slide {n}"));
                builder.begin(BlockShape::Paragraph);
                builder.text(&format!("[This slide can't be read: {}.]", error.why));
                first_error.get_or_insert(error);
            }
        }
    }
    match first_error {
        Some(error) if n_read == 0 => Err(error),
        _ => builder.finish(),
    }
}

fn write(builder: &mut BlockBuilder, n: usize, slide: SlideText) {
    builder.begin(BlockShape::Heading(2));
    let hidden = if slide.is_hidden { " (hidden)" } else { "" };
    builder.text(&format!("Slide {n}{hidden}"));
    if !slide.title.is_empty() {
        builder.text(&format!(": {}", slide.title));
    }
    builder.end();
    for block in slide.blocks {
        builder.count(markdown(std::slice::from_ref(&block)).len());
        builder.push(block);
    }
}

fn slide(archive: &Archive<'_>, name: &str) -> Result<SlideText, ExtractError> {
    let links = relationships::read(archive, name)?;
    let text = archive.require_text(name)?;
    let mut slide = shapes(archive, XmlReader::new(archive, name, &text), &links)?;
    if let Some(notes) = relationships::of_kind(&links, "notesSlide") {
        let text = archive.require_text(notes)?;
        let notes = shapes(archive, XmlReader::new(archive, notes, &text), &[])?;
        let mut blocks = notes.blocks.into_iter().map(|block| match block {
            // the notes of a speaker are plain paragraphs
            TextBlock::Line(BlockShape::Item(0, label), line) if label == "-" => {
                TextBlock::Line(BlockShape::Paragraph, line)
            }
            other => other,
        });
        if let Some(first) = blocks.next() {
            slide.blocks.push(TextBlock::Line(BlockShape::Heading(3), "Notes".into()));
            slide.blocks.push(first);
            slide.blocks.extend(blocks);
        }
    }
    Ok(slide)
}

/// Reads the shapes of a slide in their order.
struct ShapeReader {
    builder: BlockBuilder,
    role: ShapeRole,
    /// Numbers of lists, by level.
    counts: [u32; N_LEVELS],
    slide: SlideText,
}

fn shapes(
    archive: &Archive<'_>,
    mut xml: XmlReader<'_>,
    links: &[Relationship],
) -> Result<SlideText, ExtractError> {
    let mut reader = ShapeReader {
        builder: BlockBuilder::default(),
        role: ShapeRole::Other,
        counts: [0; N_LEVELS],
        slide: SlideText::default(),
    };
    while let Some(event) = xml.next()? {
        match event {
            XmlEvent::Start(element) => reader.start(archive, &mut xml, &element, links)?,
            XmlEvent::End(name) => reader.end(&name),
            XmlEvent::Text(_) => {}
        }
        if reader.builder.is_full() {
            break;
        }
    }
    let rest = reader.builder.take_blocks();
    reader.slide.blocks.extend(rest);
    Ok(reader.slide)
}

impl ShapeReader {
    fn start(
        &mut self,
        archive: &Archive<'_>,
        xml: &mut XmlReader<'_>,
        element: &XmlElement<'_>,
        links: &[Relationship],
    ) -> Result<(), ExtractError> {
        match element.name() {
            "sld" => {
                self.slide.is_hidden = matches!(element.attribute("show").as_deref(), Some("0" | "false"));
            }
            "sp" | "graphicFrame" => {
                self.builder.open_frame();
                self.role = ShapeRole::Other;
                self.counts = [0; N_LEVELS];
            }
            "ph" => self.role = ShapeRole::of_placeholder(&element.attribute("type").unwrap_or_default()),
            "p" => self.builder.begin(self.default_shape(0)),
            "pPr" => self.paragraph_properties(xml, element)?,
            "t" => self.builder.text(&xml.text()?),
            "br" => self.builder.text("\n"),
            "den" => self.builder.text("/"),
            "sup" => self.builder.text("^"),
            "sub" => self.builder.text("_"),
            "tbl" => self.builder.open_table(),
            "tr" => self.builder.open_row(),
            "tc" => self.builder.open_cell(),
            // a diagram, whose text is in a separate part
            "relIds" => {
                let data = element.attribute("dm").and_then(|id| relationships::of_id(links, &id));
                if let Some(name) = data {
                    self.diagram(archive, name)?;
                }
            }
            "Fallback" | "tcPr" | "bodyPr" | "lstStyle" | "rPr" | "endParaRPr" => xml.skip()?,
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, name: &str) {
        match name {
            "p" => self.builder.end(),
            "tc" => self.builder.close_cell(1),
            "tbl" => self.builder.close_table(),
            "sp" | "graphicFrame" => {
                let blocks = self.builder.close_frame();
                match self.role {
                    ShapeRole::Title if self.slide.title.is_empty() => {
                        self.slide.title = markdown(&blocks).split_whitespace().collect::<Vec<_>>().join(" ");
                    }
                    ShapeRole::Furniture => {}
                    ShapeRole::Title | ShapeRole::Body | ShapeRole::Other => self.slide.blocks.extend(blocks),
                }
                self.role = ShapeRole::Other;
            }
            _ => {}
        }
    }

    fn default_shape(&self, level: usize) -> BlockShape {
        match self.role {
            ShapeRole::Body => BlockShape::Item(level, "-".into()),
            ShapeRole::Title | ShapeRole::Furniture | ShapeRole::Other => BlockShape::Paragraph,
        }
    }

    fn paragraph_properties(
        &mut self,
        xml: &mut XmlReader<'_>,
        element: &XmlElement<'_>,
    ) -> Result<(), ExtractError> {
        let level = element.number::<usize>("lvl").unwrap_or(0).min(N_LEVELS - 1);
        let mut shape = self.default_shape(level);
        let end = xml.depth() - 1;
        let mut is_numbered = false;
        while xml.depth() > end {
            let Some(event) = xml.next()? else { break };
            let XmlEvent::Start(element) = event else { continue };
            match element.name() {
                "buNone" => shape = BlockShape::Paragraph,
                "buChar" | "buBlip" => shape = BlockShape::Item(level, "-".into()),
                "buAutoNum" => {
                    let (style, pattern) =
                        NumberStyle::of_drawing(&element.attribute("type").unwrap_or_default());
                    let start = element.number("startAt").unwrap_or(1_u32);
                    let n = self.counts[level].saturating_add(1).max(start);
                    self.counts[level] = n;
                    self.counts[level + 1..].fill(0);
                    is_numbered = true;
                    shape = BlockShape::Item(level, pattern.replace("{}", &style.write(n)));
                }
                _ => {}
            }
        }
        if !is_numbered {
            self.counts[level..].fill(0);
        }
        self.builder.reshape(shape);
        Ok(())
    }

    /// The points of a diagram, as a list.
    fn diagram(&mut self, archive: &Archive<'_>, name: &str) -> Result<(), ExtractError> {
        let Some(text) = archive.text(name)? else { return Ok(()) };
        let mut xml = XmlReader::new(archive, name, &text);
        while let Some(event) = xml.next()? {
            match event {
                XmlEvent::Start(element) if element.name() == "p" => {
                    self.builder.begin(BlockShape::Item(0, "-".into()));
                }
                // `t` is also the name of what contains the paragraphs
                XmlEvent::Start(element) if matches!(element.name(), "r" | "fld") => {
                    self.builder.text(&xml.text()?);
                }
                XmlEvent::End(name) if &*name == "p" => self.builder.end(),
                XmlEvent::Start(_) | XmlEvent::End(_) | XmlEvent::Text(_) => {}
            }
        }
        Ok(())
    }
}
