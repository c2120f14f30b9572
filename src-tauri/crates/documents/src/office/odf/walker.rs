//! Goes through the paragraphs, lists, tables and notes of an OpenDocument text, or of a slide.

use std::collections::HashMap;

use super::list_styles::{N_LEVELS, OUTLINE, OdfStyles, label};
use crate::block_builder::{BlockBuilder, BlockShape, TextBlock, markdown};
use crate::extract_error::ExtractError;
use crate::office::xml::{XmlElement, XmlEvent, XmlReader};

/// Spaces that stand for one element.
const MAX_SPACES: usize = 100;

/// Columns that an empty cell may stand for.
const MAX_REPEATED_CELLS: usize = 1024;

/// A footnote or endnote.
pub struct OdfNote {
    /// As it stands in the text.
    pub label: String,
    pub blocks: Vec<TextBlock>,
}

/// A list that is open.
struct OpenList {
    /// Name of its style; empty: none.
    style: String,
    /// The next paragraph is the first one of an item.
    is_item_new: bool,
    has_header: bool,
}

/// A cell that is open.
struct OpenCell {
    n_repeated: usize,
}

/// Reads an OpenDocument text into a builder.
pub struct OdfWalker<'a> {
    styles: &'a OdfStyles,
    pub builder: BlockBuilder,
    pub notes: Vec<OdfNote>,
    /// Of a slide.
    pub title: String,
    pub speaker_notes: Vec<TextBlock>,
    lists: Vec<OpenList>,
    /// Lists outside of the cells and notes that are open.
    outer_lists: Vec<Vec<OpenList>>,
    /// Numbers of the levels, by style. None: the level has not begun.
    counts: HashMap<String, [Option<u32>; N_LEVELS]>,
    cells: Vec<OpenCell>,
    note_counts: [usize; 2],
    n_paragraphs: usize,
}

impl<'a> OdfWalker<'a> {
    pub fn new(styles: &'a OdfStyles) -> Self {
        Self {
            styles,
            builder: BlockBuilder::default(),
            notes: Vec::new(),
            title: String::new(),
            speaker_notes: Vec::new(),
            lists: Vec::new(),
            outer_lists: Vec::new(),
            counts: HashMap::new(),
            cells: Vec::new(),
            note_counts: [0; 2],
            n_paragraphs: 0,
        }
    }

    /// Reads until only `end` elements are open.
    pub fn walk(&mut self, xml: &mut XmlReader<'_>, end: usize) -> Result<(), ExtractError> {
        while let Some(event) = xml.next()? {
            let is_end = matches!(event, XmlEvent::End(_));
            match event {
                XmlEvent::Start(element) => self.start(xml, &element)?,
                XmlEvent::End(name) => self.end(&name),
                XmlEvent::Text(text) if self.n_paragraphs > 0 => self.builder.flowing_text(&text),
                XmlEvent::Text(_) => {}
            }
            if is_end && xml.depth() <= end || self.builder.is_full() {
                break;
            }
        }
        Ok(())
    }

    /// Reads the slide that just began.
    pub fn walk_page(&mut self, xml: &mut XmlReader<'_>) -> Result<(), ExtractError> {
        let end = xml.depth() - 1;
        self.walk(xml, end)?;
        // it may have more text than is kept
        xml.close(end)
    }

    fn start(&mut self, xml: &mut XmlReader<'_>, element: &XmlElement<'_>) -> Result<(), ExtractError> {
        let style = || element.attribute("style-name").unwrap_or_default();
        match element.name() {
            "h" | "p" | "span" if self.styles.is_hidden(&style()) => xml.skip()?,
            "h" => self.heading(element),
            "p" => {
                let shape = self.paragraph_shape(&style());
                self.begin_paragraph(shape);
            }
            "s" => {
                let n = element.number("c").unwrap_or(1).min(MAX_SPACES);
                self.builder.text(&" ".repeat(n));
            }
            "tab" => self.builder.text("\t"),
            "line-break" => self.builder.text("\n"),
            "list" => self.open_list(element),
            "list-item" | "list-header" => {
                if let Some(list) = self.lists.last_mut() {
                    list.is_item_new = true;
                    list.has_header = element.name() == "list-header";
                }
            }
            "table" => self.builder.open_table(),
            "table-row" => self.builder.open_row(),
            "table-cell" => self.open_cell(element),
            "covered-table-cell" => {
                for _ in 0..repeated(element) {
                    self.builder.add_cell(Vec::new());
                }
                xml.skip()?;
            }
            "note" => self.note(xml, element)?,
            "notes" => {
                self.speaker_notes = self.apart(xml)?;
            }
            "frame" | "custom-shape" => self.shape_on_slide(xml, element)?,
            "text-box" if self.n_paragraphs > 0 => {
                let blocks = self.apart(xml)?;
                self.builder.defer(blocks);
            }
            // what is no text of the document, or no longer in it
            "tracked-changes" | "annotation" | "ruby-text" | "forms" | "automatic-styles"
            | "font-face-decls" | "scripts" | "title" | "desc" | "event-listeners" | "variable-decls"
            | "sequence-decls" | "settings" | "note-citation"
                if element.prefix() != "text" || element.name() != "title" =>
            {
                xml.skip()?;
            }
            "section" | "hidden-paragraph" | "hidden-text"
                if element.attribute("display").is_some_and(|it| it == "none") =>
            {
                xml.skip()?;
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, name: &str) {
        match name {
            "h" | "p" => {
                self.builder.end();
                self.n_paragraphs = self.n_paragraphs.saturating_sub(1);
            }
            "list" => drop(self.lists.pop()),
            "table-cell" => {
                let blocks = self.builder.close_frame();
                self.lists = self.outer_lists.pop().unwrap_or_default();
                let n = self.cells.pop().map_or(1, |cell| cell.n_repeated);
                let n = if blocks.is_empty() { n } else { n.min(MAX_REPEATED_CELLS) };
                for _ in 0..n {
                    self.builder.count(markdown(&blocks).len());
                    self.builder.add_cell(blocks.clone());
                }
            }
            "table" => self.builder.close_table(),
            _ => {}
        }
    }

    fn begin_paragraph(&mut self, shape: BlockShape) {
        self.n_paragraphs += 1;
        self.builder.begin(shape);
    }

    /// Headings may be numbered by the outline of the document.
    fn heading(&mut self, element: &XmlElement<'_>) {
        let level = element.number::<usize>("outline-level").unwrap_or(1).clamp(1, N_LEVELS);
        self.begin_paragraph(BlockShape::Heading(level as u8));
        let is_plain = element.attribute("is-list-header").is_some_and(|it| it == "true");
        if !is_plain && self.lists.is_empty() {
            let label = self.next_label(OUTLINE, level - 1).unwrap_or_default();
            if !label.is_empty() {
                self.builder.text(&format!("{label} "));
            }
        }
    }

    /// Counts a paragraph of a list. None: there is no such style.
    fn next_label(&mut self, style: &str, depth: usize) -> Option<String> {
        let levels = self.styles.list(style)?;
        let counts = self.counts.entry(style.to_owned()).or_default();
        counts[depth] = Some(counts[depth].map_or(levels[depth].start, |n| n.saturating_add(1)));
        counts[depth + 1..].fill(None);
        let numbers: Vec<u32> = (0..=depth).map(|at| counts[at].unwrap_or(levels[at].start)).collect();
        Some(label(levels, &numbers))
    }

    /// Reads the element that just began, apart from everything else.
    fn apart(&mut self, xml: &mut XmlReader<'_>) -> Result<Vec<TextBlock>, ExtractError> {
        let end = xml.depth() - 1;
        let lists = std::mem::take(&mut self.lists);
        let n_paragraphs = std::mem::take(&mut self.n_paragraphs);
        self.builder.open_frame();
        self.walk(xml, end)?;
        self.lists = lists;
        self.n_paragraphs = n_paragraphs;
        Ok(self.builder.close_frame())
    }

    fn note(&mut self, xml: &mut XmlReader<'_>, element: &XmlElement<'_>) -> Result<(), ExtractError> {
        let is_endnote = element.attribute("note-class").is_some_and(|class| class == "endnote");
        let n = &mut self.note_counts[usize::from(is_endnote)];
        *n += 1;
        let label = format!("{}{n}", if is_endnote { "e" } else { "" });
        self.builder.text(&format!("[^{label}]"));
        let blocks = self.apart(xml)?;
        self.notes.push(OdfNote { label, blocks });
        Ok(())
    }

    /// A box on a slide: its title, or what is left out.
    fn shape_on_slide(
        &mut self,
        xml: &mut XmlReader<'_>,
        element: &XmlElement<'_>,
    ) -> Result<(), ExtractError> {
        match element.attribute("class").as_deref() {
            Some("title") if self.title.is_empty() => {
                let blocks = self.apart(xml)?;
                self.title = markdown(&blocks).split_whitespace().collect::<Vec<_>>().join(" ");
            }
            Some("page-number" | "date-time" | "footer" | "header" | "page") => xml.skip()?,
            _ => {}
        }
        Ok(())
    }

    fn open_cell(&mut self, element: &XmlElement<'_>) {
        self.builder.open_cell();
        self.outer_lists.push(std::mem::take(&mut self.lists));
        self.cells.push(OpenCell { n_repeated: repeated(element) });
    }

    fn open_list(&mut self, element: &XmlElement<'_>) {
        let named = element.attribute("style-name");
        let outer = self.lists.last().map(|list| list.style.clone());
        let style = named.or(outer).unwrap_or_default();
        let goes_on = element.attribute("continue-numbering").is_some_and(|it| it == "true")
            || element.attribute("continue-list").is_some();
        let level = self.lists.len();
        let counts = self.counts.entry(style.clone()).or_default();
        if !goes_on {
            counts.iter_mut().skip(level).for_each(|count| *count = None);
        }
        self.lists.push(OpenList { style, is_item_new: false, has_header: false });
    }

    fn paragraph_shape(&mut self, paragraph_style: &str) -> BlockShape {
        let level = self.lists.len().min(N_LEVELS);
        let Some(list) = self.lists.last_mut() else {
            let is_title = self.styles.is_title(paragraph_style);
            return if is_title { BlockShape::Heading(1) } else { BlockShape::Paragraph };
        };
        let depth = level - 1;
        if !std::mem::take(&mut list.is_item_new) || list.has_header {
            return BlockShape::Paragraph;
        }
        let named = if list.style.is_empty() {
            self.styles.list_of_paragraph(paragraph_style).unwrap_or_default().to_owned()
        } else {
            list.style.clone()
        };
        match self.next_label(&named, depth) {
            None => BlockShape::Item(depth, "-".into()),
            Some(label) if label.is_empty() => BlockShape::Paragraph,
            Some(label) => BlockShape::Item(depth, label),
        }
    }
}

/// How often a cell stands there.
fn repeated(element: &XmlElement<'_>) -> usize {
    element.number("number-columns-repeated").unwrap_or(1).clamp(1, MAX_REPEATED_CELLS)
}
