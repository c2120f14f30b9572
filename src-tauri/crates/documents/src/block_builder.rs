//! Collects a document's headings, paragraphs, lists and tables, and writes them as Markdown.

use crate::extract_error::{ExtractError, TEXT_MOST};

/// Tables inside of each other that are kept apart; deeper ones are read as paragraphs.
const MAX_TABLE_DEPTH: usize = 8;

/// Levels of a list that are indented.
const MAX_INDENT: usize = 12;

/// What a line of text is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum BlockShape {
    #[default]
    Paragraph,
    /// Level from 1.
    Heading(u8),
    /// Depth from 0; what stands before it.
    Item(usize, String),
    /// Line breaks and spaces count.
    Code,
}

/// A part of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextBlock {
    Line(BlockShape, String),
    /// Rows of cells of blocks.
    Table(Vec<Vec<Vec<TextBlock>>>),
}

/// The text that is being collected: of the document, of a cell, or of a note.
#[derive(Default)]
struct Frame {
    blocks: Vec<TextBlock>,
    line: String,
    shape: BlockShape,
    /// Blocks that stand inside of the line, and follow it.
    after: Vec<TextBlock>,
}

/// Collects blocks in order. Never more text than is kept of a file.
#[derive(Default)]
pub struct BlockBuilder {
    frames: Vec<Frame>,
    current: Frame,
    tables: Vec<Vec<Vec<Vec<TextBlock>>>>,
    n_bytes: usize,
}

impl BlockBuilder {
    /// Adds text as it is.
    pub fn text(&mut self, text: &str) {
        self.n_bytes = self.n_bytes.saturating_add(text.len());
        if !self.is_full() {
            self.current.line.push_str(text);
        }
    }

    /// Adds text whose white space counts as one space, and as none at the start of a line.
    pub fn flowing_text(&mut self, text: &str) {
        if self.current.shape == BlockShape::Code {
            return self.text(text);
        }
        let mut clean = String::with_capacity(text.len());
        let mut is_blank = self.current.line.is_empty() || self.current.line.ends_with([' ', '\n']);
        for c in text.chars() {
            let is_space = matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}');
            if !is_space {
                clean.push(c);
            } else if !is_blank {
                clean.push(' ');
            }
            is_blank = is_space;
        }
        self.text(&clean);
    }

    /// In code, what follows stands on a separate line.
    pub fn end_code_line(&mut self) {
        if !self.current.line.is_empty() && !self.current.line.ends_with('\n') {
            self.text("\n");
        }
    }

    /// Bytes of text so far.
    pub fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// There is no use in reading on.
    pub fn is_full(&self) -> bool {
        self.n_bytes > TEXT_MOST
    }

    /// Counts text that will be repeated by the caller.
    pub fn count(&mut self, n_bytes: usize) {
        self.n_bytes = self.n_bytes.saturating_add(n_bytes);
    }

    /// The line so far is empty.
    pub fn is_at_start(&self) -> bool {
        self.current.line.trim().is_empty()
    }

    /// Ends the line and begins one of this shape.
    pub fn begin(&mut self, shape: BlockShape) {
        self.end();
        self.current.shape = shape;
    }

    /// The line that began is of this shape.
    pub fn reshape(&mut self, shape: BlockShape) {
        self.current.shape = shape;
    }

    pub fn shape(&self) -> &BlockShape {
        &self.current.shape
    }

    /// Ends the line.
    pub fn end(&mut self) {
        let frame = &mut self.current;
        let (line, shape) = (std::mem::take(&mut frame.line), std::mem::take(&mut frame.shape));
        let text = if shape == BlockShape::Code { line.trim_matches(['\n', '\r']) } else { line.trim() };
        if !text.trim().is_empty() {
            frame.blocks.push(TextBlock::Line(shape, text.to_owned()));
        }
        frame.blocks.append(&mut frame.after);
    }

    /// Adds a finished block.
    pub fn push(&mut self, block: TextBlock) {
        self.end();
        self.current.blocks.push(block);
    }

    /// What was collected so far, outside of tables.
    pub fn take_blocks(&mut self) -> Vec<TextBlock> {
        self.end();
        std::mem::take(&mut self.current.blocks)
    }

    /// Text from here on is collected apart, until [`Self::close_frame`].
    pub fn open_frame(&mut self) {
        self.frames.push(std::mem::take(&mut self.current));
    }

    /// What was collected apart.
    pub fn close_frame(&mut self) -> Vec<TextBlock> {
        self.end();
        let outer = self.frames.pop().unwrap_or_default();
        std::mem::replace(&mut self.current, outer).blocks
    }

    /// Blocks that stand inside of the line, and follow it.
    pub fn defer(&mut self, blocks: Vec<TextBlock>) {
        self.current.after.extend(blocks);
    }

    pub fn open_table(&mut self) {
        self.end();
        self.tables.push(Vec::new());
    }

    pub fn open_row(&mut self) {
        if let Some(table) = self.tables.last_mut() {
            table.push(Vec::new());
        }
    }

    pub fn open_cell(&mut self) {
        self.open_frame();
    }

    /// Ends a cell that spans `n_columns`.
    pub fn close_cell(&mut self, n_columns: usize) {
        let blocks = self.close_frame();
        self.add_cell(blocks);
        for _ in 1..n_columns {
            self.add_cell(Vec::new());
        }
    }

    /// Adds a finished cell.
    pub fn add_cell(&mut self, blocks: Vec<TextBlock>) {
        // an empty one is a few characters, too
        self.count(3);
        if let Some(row) =
            self.tables.last_mut().and_then(|table| table.last_mut()).filter(|_| self.n_bytes <= TEXT_MOST)
        {
            row.push(blocks);
        }
    }

    pub fn close_table(&mut self) {
        let rows = self.tables.pop().unwrap_or_default();
        if self.tables.len() >= MAX_TABLE_DEPTH {
            self.current.blocks.extend(rows.into_iter().flatten().flatten());
        } else if rows.iter().flatten().any(|cell| !cell.is_empty()) {
            self.current.blocks.push(TextBlock::Table(rows));
        }
    }

    /// All of it, as Markdown. Error: it is longer than is kept of a file.
    pub fn finish(mut self) -> Result<String, ExtractError> {
        while !self.frames.is_empty() {
            let blocks = self.close_frame();
            self.defer(blocks);
        }
        self.end();
        if self.is_full() {
            return Err(ExtractError::too_long(self.n_bytes));
        }
        let text = markdown(&self.current.blocks);
        if text.len() > TEXT_MOST { Err(ExtractError::too_long(text.len())) } else { Ok(text) }
    }
}

/// Blocks as Markdown.
pub fn markdown(blocks: &[TextBlock]) -> String {
    let mut text = String::new();
    let mut was_item = false;
    for block in blocks {
        let is_item = matches!(block, TextBlock::Line(BlockShape::Item(..), _));
        let written = match block {
            TextBlock::Line(shape, line) => line_of(shape, line),
            TextBlock::Table(rows) if is_layout(rows) => {
                markdown(&rows.iter().flatten().flatten().cloned().collect::<Vec<_>>())
            }
            TextBlock::Table(rows) => table(rows),
        };
        if written.is_empty() {
            continue;
        }
        if !text.is_empty() {
            text.push_str(if was_item && is_item { "\n" } else { "\n\n" });
        }
        text.push_str(&written);
        was_item = is_item;
    }
    text
}

fn line_of(shape: &BlockShape, line: &str) -> String {
    match shape {
        BlockShape::Paragraph => line.to_owned(),
        BlockShape::Heading(level) => {
            format!("{} {}", "#".repeat(usize::from(*level).clamp(1, 6)), line.replace('\n', " "))
        }
        BlockShape::Item(depth, label) => {
            let indent = "  ".repeat((*depth).min(MAX_INDENT));
            format!("{indent}{label} {}", line.replace('\n', &format!("\n{indent}  ")))
        }
        BlockShape::Code => {
            let longest = line.split(|c| c != '`').map(str::len).max().unwrap_or(0);
            let fence = "`".repeat((longest + 1).max(3));
            format!("{fence}\n{line}\n{fence}")
        }
    }
}

/// A table that only arranges a page: in one column, or of parts that are no cells.
fn is_layout(rows: &[Vec<Vec<TextBlock>>]) -> bool {
    let is_part = |block: &TextBlock| {
        matches!(block, TextBlock::Table(_) | TextBlock::Line(BlockShape::Heading(_) | BlockShape::Code, _))
    };
    rows.iter().all(|row| row.len() <= 1) || rows.iter().flatten().flatten().any(is_part)
}

fn table(rows: &[Vec<Vec<TextBlock>>]) -> String {
    let mut writer = TableWriter::default();
    for row in rows {
        let cells = row.iter().map(|cell| {
            let lines = cell.iter().map(|block| markdown(std::slice::from_ref(block)));
            lines.collect::<Vec<_>>().join("\n")
        });
        writer.row(&cells.collect::<Vec<_>>());
    }
    writer.finish()
}

/// Writes the rows of a table as Markdown; the first one is its header.
#[derive(Default)]
pub struct TableWriter {
    text: String,
    /// Cells and end of the first row.
    header: Option<(usize, usize)>,
    n_columns: usize,
}

impl TableWriter {
    /// Adds a row. Empty rows are left out.
    pub fn row<T: AsRef<str>>(&mut self, cells: &[T]) {
        let n = cells.iter().rposition(|cell| !cell.as_ref().trim().is_empty()).map_or(0, |last| last + 1);
        if n == 0 {
            return;
        }
        self.text.push('|');
        for cell in &cells[..n] {
            let cell = cell.as_ref().trim().replace('|', "\\|").replace("\r\n", "\n").replace('\n', "<br>");
            self.text.push(' ');
            self.text.push_str(&cell);
            self.text.push_str(if cell.is_empty() { "|" } else { " |" });
        }
        self.text.push('\n');
        self.n_columns = self.n_columns.max(n);
        self.header.get_or_insert((n, self.text.len()));
    }

    pub fn n_bytes(&self) -> usize {
        self.text.len()
    }

    /// The table, with the line below its header and without a line break at its end. Empty: it has no rows.
    pub fn finish(mut self) -> String {
        let Some((n_header, end)) = self.header else { return String::new() };
        let line = format!("|{}\n", " --- |".repeat(self.n_columns));
        self.text.insert_str(end, &line);
        self.text.insert_str(end - 1, &" |".repeat(self.n_columns - n_header));
        self.text.truncate(self.text.trim_end_matches('\n').len());
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(builder: &mut BlockBuilder, depth: usize, label: &str, text: &str) {
        builder.begin(BlockShape::Item(depth, label.into()));
        builder.text(text);
    }

    #[test]
    fn blocks_become_markdown() {
        let mut builder = BlockBuilder::default();
        builder.begin(BlockShape::Heading(2));
        builder.text("A\nheading");
        builder.begin(BlockShape::Paragraph);
        builder.flowing_text("  some \n words,");
        builder.flowing_text(" and  more ");
        item(&mut builder, 0, "1.", "first");
        item(&mut builder, 1, "-", "below\nit");
        builder.begin(BlockShape::Code);
        builder.flowing_text("let a = ```;\n  b");
        assert_eq!(
            builder.finish().unwrap(),
            "## A heading\n\nsome words, and more\n\n1. first\n  - below\n    it\n\n````\nlet a = ```;\n  b\n````"
        );
    }

    #[test]
    fn tables_are_rows_and_layouts_are_not() {
        let rows = |texts: &[&[&str]], nested: bool| {
            let mut builder = BlockBuilder::default();
            builder.open_table();
            for row in texts {
                builder.open_row();
                for cell in *row {
                    builder.open_cell();
                    builder.text(cell);
                    if nested {
                        builder.begin(BlockShape::Heading(1));
                        builder.text("H");
                    }
                    builder.close_cell(1);
                }
            }
            builder.close_table();
            builder.finish().unwrap()
        };
        assert_eq!(rows(&[&["a", "b|c"], &["1\n2"]], false), "| a | b\\|c |\n| --- | --- |\n| 1<br>2 |");
        assert_eq!(rows(&[&["a"], &["1", "", "3"]], false), "| a | | |\n| --- | --- | --- |\n| 1 | | 3 |");
        assert_eq!(rows(&[&["a"], &["b"]], false), "a\n\nb");
        assert_eq!(rows(&[&["a", "b"]], true), "a\n\n# H\n\nb\n\n# H");
    }

    #[test]
    fn what_stands_inside_a_line_follows_it() {
        let mut builder = BlockBuilder::default();
        builder.text("before ");
        builder.open_frame();
        builder.text("in a box");
        let blocks = builder.close_frame();
        builder.defer(blocks);
        builder.text("after");
        assert_eq!(builder.finish().unwrap(), "before after\n\nin a box");
    }

    #[test]
    fn there_is_an_end_to_text() {
        let mut builder = BlockBuilder::default();
        for _ in 0..9 {
            builder.text(&"x".repeat(1 << 20));
        }
        assert!(builder.is_full());
        assert!(builder.finish().unwrap_err().why.contains("the maximum is"));
    }
}
