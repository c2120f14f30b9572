//! Goes through the body of a Word document, or through one of its notes.

use std::collections::HashMap;

use super::numbering::Numbering;
use super::styles::{ParagraphProperties, Styles, paragraph_properties};
use crate::block_builder::{BlockBuilder, BlockShape};
use crate::extract_error::ExtractError;
use crate::office::xml::{XmlElement, XmlEvent, XmlReader};

/// Columns that a cell may span.
const MAX_SPAN: usize = 64;

/// Text that stands apart from the body, with a mark in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoteKind {
    Footnote,
    Endnote,
    Comment,
}

impl NoteKind {
    pub const ALL: [Self; 3] = [Self::Footnote, Self::Endnote, Self::Comment];

    /// Kind of the relationship to the part with these notes.
    pub fn part(self) -> &'static str {
        match self {
            Self::Footnote => "footnotes",
            Self::Endnote => "endnotes",
            Self::Comment => "comments",
        }
    }

    /// Name of the element with such a note.
    pub fn element(self) -> &'static str {
        match self {
            Self::Footnote => "footnote",
            Self::Endnote => "endnote",
            Self::Comment => "comment",
        }
    }

    /// What comes before the number in a mark.
    fn prefix(self) -> &'static str {
        match self {
            Self::Footnote => "",
            Self::Endnote => "e",
            Self::Comment => "c",
        }
    }
}

/// A mark in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteReference {
    pub kind: NoteKind,
    pub id: String,
    /// As it stands in the text, such as `1` or `e1`.
    pub label: String,
}

/// Reads paragraphs and tables into a builder.
pub struct DocumentWalker<'a> {
    styles: &'a Styles,
    numbering: &'a mut Numbering,
    pub builder: BlockBuilder,
    /// In the order in which they are first mentioned.
    pub references: Vec<NoteReference>,
    labels: HashMap<(NoteKind, String), String>,
    counts: HashMap<NoteKind, usize>,
    /// Columns that each open cell spans.
    spans: Vec<usize>,
}

impl<'a> DocumentWalker<'a> {
    pub fn new(styles: &'a Styles, numbering: &'a mut Numbering) -> Self {
        Self {
            styles,
            numbering,
            builder: BlockBuilder::default(),
            references: Vec::new(),
            labels: HashMap::new(),
            counts: HashMap::new(),
            spans: Vec::new(),
        }
    }

    /// Reads until only `end` elements are open.
    pub fn walk(&mut self, xml: &mut XmlReader<'_>, end: usize) -> Result<(), ExtractError> {
        while let Some(event) = xml.next()? {
            let is_end = matches!(event, XmlEvent::End(_));
            match event {
                XmlEvent::Start(element) => self.start(xml, &element)?,
                XmlEvent::End(name) => self.end(&name),
                XmlEvent::Text(_) => {}
            }
            if is_end && xml.depth() <= end || self.builder.is_full() {
                break;
            }
        }
        Ok(())
    }

    fn start(&mut self, xml: &mut XmlReader<'_>, element: &XmlElement<'_>) -> Result<(), ExtractError> {
        match element.name() {
            "p" => self.builder.begin(BlockShape::Paragraph),
            "pPr" => {
                let properties = paragraph_properties(xml)?;
                let shape = self.shape(&properties);
                self.builder.reshape(shape);
            }
            "rPr" => self.run_properties(xml)?,
            "t" => self.builder.text(&xml.text()?),
            "tab" => self.builder.text("\t"),
            "br" | "cr" => self.builder.text("\n"),
            "noBreakHyphen" => self.builder.text("\u{2011}"),
            // formulas on one line
            "den" => self.builder.text("/"),
            "sup" => self.builder.text("^"),
            "sub" => self.builder.text("_"),
            "tbl" => self.builder.open_table(),
            "tr" => self.builder.open_row(),
            "tc" => {
                self.builder.open_cell();
                self.spans.push(1);
            }
            "gridSpan" => {
                if let Some(span) = self.spans.last_mut() {
                    *span = element.number("val").unwrap_or(1).clamp(1, MAX_SPAN);
                }
            }
            "txbxContent" => self.builder.open_frame(),
            "footnoteReference" => self.note_reference(NoteKind::Footnote, element),
            "endnoteReference" => self.note_reference(NoteKind::Endnote, element),
            "commentReference" => self.note_reference(NoteKind::Comment, element),
            // what is no longer in the text, what says it a second time, and what is no text
            "del" | "moveFrom" | "Fallback" | "instrText" | "delText" | "rt" | "sdtPr" | "tblPr" | "trPr"
            | "sectPr" => xml.skip()?,
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, name: &str) {
        match name {
            "p" => self.builder.end(),
            "txbxContent" => {
                let blocks = self.builder.close_frame();
                self.builder.defer(blocks);
            }
            "tc" => {
                let span = self.spans.pop().unwrap_or(1);
                self.builder.close_cell(span);
            }
            "tbl" => self.builder.close_table(),
            _ => {}
        }
    }

    /// Leaves out the rest of a hidden run, which Word does not show.
    fn run_properties(&mut self, xml: &mut XmlReader<'_>) -> Result<(), ExtractError> {
        let end = xml.depth() - 1;
        let mut is_hidden = false;
        while xml.depth() > end {
            match xml.next()? {
                Some(XmlEvent::Start(element)) => is_hidden |= element.name() == "vanish" && element.is_on(),
                Some(_) => {}
                None => break,
            }
        }
        if is_hidden { xml.close(end.saturating_sub(1)) } else { Ok(()) }
    }

    fn shape(&mut self, properties: &ParagraphProperties) -> BlockShape {
        let heading = self.styles.heading_level(properties);
        let label = self
            .styles
            .numbering(properties)
            .and_then(|(reference, style)| self.numbering.next_label(reference, style));
        match (heading, label) {
            (Some(level), label) => {
                let label = label.map(|(_, label)| label).filter(|label| !label.is_empty() && label != "-");
                if let Some(label) = label {
                    self.builder.text(&format!("{label} "));
                }
                BlockShape::Heading(level)
            }
            (None, Some((depth, label))) if !label.is_empty() => BlockShape::Item(depth, label),
            (None, _) => BlockShape::Paragraph,
        }
    }

    fn note_reference(&mut self, kind: NoteKind, element: &XmlElement<'_>) {
        let id = element.attribute("id").unwrap_or_default();
        let label = self.labels.entry((kind, id.clone())).or_insert_with(|| {
            let n = self.counts.entry(kind).or_default();
            *n += 1;
            let label = format!("{}{n}", kind.prefix());
            self.references.push(NoteReference { kind, id, label: label.clone() });
            label
        });
        let mark = format!("[^{label}]");
        self.builder.text(&mark);
    }
}
