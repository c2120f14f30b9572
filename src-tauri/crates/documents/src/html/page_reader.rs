//! Reads the tags of a page in their order. End tags that HTML leaves out are implied.

use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{Tag, TagKind, TokenSinkResult};

use super::{MarkupDialect, WebPage};
use crate::block_builder::{BlockBuilder, BlockShape};
use crate::list_label::NumberStyle;

/// Columns that a cell may span.
const MAX_SPAN: usize = 64;

/// A list that is open.
struct HtmlList {
    /// Number of the next item. None: it is not numbered.
    next: Option<u32>,
    style: NumberStyle,
}

/// A table that is open.
#[derive(Default)]
struct HtmlTable {
    /// Columns that the open cell spans.
    span: Option<usize>,
    has_row: bool,
    /// Lists outside of the cell.
    outer_lists: Vec<HtmlList>,
}

/// The element that is left out.
struct SkippedElement {
    name: String,
    n_open: usize,
}

/// Reads tags and text into blocks.
pub struct PageReader {
    dialect: MarkupDialect,
    builder: BlockBuilder,
    title: String,
    is_in_title: bool,
    skipped: Option<SkippedElement>,
    lists: Vec<HtmlList>,
    tables: Vec<HtmlTable>,
    n_pre: usize,
}

impl PageReader {
    pub fn new(dialect: MarkupDialect) -> Self {
        Self {
            dialect,
            builder: BlockBuilder::default(),
            title: String::new(),
            is_in_title: false,
            skipped: None,
            lists: Vec::new(),
            tables: Vec::new(),
            n_pre: 0,
        }
    }

    pub fn finish(mut self) -> WebPage {
        while !self.tables.is_empty() {
            self.close_table();
        }
        let blocks = self.builder.take_blocks();
        let title = self.title.split_whitespace().collect::<Vec<_>>().join(" ");
        WebPage { title, blocks, n_bytes: self.builder.n_bytes() }
    }

    pub fn text(&mut self, text: &str) {
        if self.skipped.is_some() {
            return;
        }
        if self.is_in_title {
            self.title.push_str(text);
        } else {
            self.builder.flowing_text(&text.replace('\u{a0}', " "));
        }
    }

    pub fn tag(&mut self, tag: &Tag) -> TokenSinkResult<()> {
        let name: &str = &tag.name;
        let is_whole = tag.self_closing && self.dialect == MarkupDialect::Xhtml;
        if self.is_left_out(tag, name, is_whole) {
            return raw_text(name)
                .filter(|_| !is_whole && tag.kind == TagKind::StartTag)
                .map_or(TokenSinkResult::Continue, TokenSinkResult::RawData);
        }
        match tag.kind {
            TagKind::StartTag => {
                self.start(tag, name);
                if is_whole {
                    self.end(name);
                } else if name == "title" {
                    return TokenSinkResult::RawData(RawKind::Rcdata);
                }
            }
            TagKind::EndTag => self.end(name),
        }
        TokenSinkResult::Continue
    }

    /// Counts the elements that are left out.
    fn is_left_out(&mut self, tag: &Tag, name: &str, is_whole: bool) -> bool {
        let is_start = tag.kind == TagKind::StartTag;
        let Some(skipped) = &mut self.skipped else {
            if !is_start || is_void(name) || !(is_no_text(name) || is_hidden(tag)) {
                return false;
            }
            if !is_whole {
                self.skipped = Some(SkippedElement { name: name.to_owned(), n_open: 1 });
            }
            return true;
        };
        let ends_itself = matches!(name, "p" | "li" | "dt" | "dd" | "tr" | "td" | "th" | "option");
        if skipped.name == name && is_start && ends_itself {
            // the next one begins, and the hidden one ends
            self.skipped = None;
            return self.is_left_out(tag, name, is_whole);
        }
        if skipped.name == name && !is_whole {
            skipped.n_open = if is_start { skipped.n_open + 1 } else { skipped.n_open - 1 };
            if skipped.n_open == 0 {
                self.skipped = None;
            }
        }
        true
    }

    fn start(&mut self, tag: &Tag, name: &str) {
        match name {
            "title" => self.is_in_title = true,
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.begin_block();
                self.builder.reshape(BlockShape::Heading(name.as_bytes()[1] - b'0'));
            }
            "ul" | "menu" | "ol" => self.open_list(tag, name),
            "li" => self.begin_item(tag),
            "br" => self.builder.text("\n"),
            "pre" | "listing" | "xmp" => {
                self.n_pre += 1;
                if self.n_pre == 1 {
                    self.builder.begin(BlockShape::Code);
                }
            }
            "table" => {
                self.builder.open_table();
                self.tables.push(HtmlTable::default());
            }
            "tr" => {
                self.close_row();
                self.open_row();
            }
            "td" | "th" => self.open_cell(tag),
            "q" => self.builder.flowing_text("\""),
            "sup" => self.builder.flowing_text("^"),
            "sub" => self.builder.flowing_text("_"),
            _ if is_block(name) => self.begin_block(),
            _ => {}
        }
    }

    fn end(&mut self, name: &str) {
        match name {
            "title" => self.is_in_title = false,
            "ul" | "menu" | "ol" => {
                self.builder.end();
                self.lists.pop();
            }
            "pre" | "listing" | "xmp" => {
                self.n_pre = self.n_pre.saturating_sub(1);
                if self.n_pre == 0 {
                    self.builder.end();
                }
            }
            "td" | "th" => self.close_cell(),
            "tr" => self.close_row(),
            "table" => self.close_table(),
            "q" => self.builder.flowing_text("\""),
            "li" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.end_block(),
            _ if is_block(name) => self.end_block(),
            _ => {}
        }
    }

    /// A paragraph that is the first in an item is the item.
    fn begin_block(&mut self) {
        let is_item = matches!(self.builder.shape(), BlockShape::Item(..)) && self.builder.is_at_start();
        if self.n_pre > 0 {
            self.builder.end_code_line();
        } else if !is_item {
            self.builder.begin(BlockShape::Paragraph);
        }
    }

    fn end_block(&mut self) {
        if self.n_pre > 0 {
            self.builder.end_code_line();
        } else if !self.builder.is_at_start() {
            self.builder.end();
        }
    }

    fn open_list(&mut self, tag: &Tag, name: &str) {
        self.builder.end();
        let style = attribute(tag, "type").map_or(NumberStyle::Decimal, NumberStyle::of_open_document);
        let start = attribute(tag, "start").and_then(|start| start.trim().parse().ok()).unwrap_or(1);
        self.lists.push(HtmlList { next: (name == "ol").then_some(start), style });
    }

    fn begin_item(&mut self, tag: &Tag) {
        let depth = self.lists.len().saturating_sub(1);
        let label = match self.lists.last_mut() {
            Some(HtmlList { next: Some(next), style }) => {
                let value = attribute(tag, "value").and_then(|value| value.trim().parse().ok());
                let n = value.unwrap_or(*next);
                *next = n.saturating_add(1);
                format!("{}.", style.write(n))
            }
            _ => "-".to_owned(),
        };
        self.builder.begin(BlockShape::Item(depth, label));
    }

    fn open_row(&mut self) {
        if let Some(table) = self.tables.last_mut() {
            table.has_row = true;
            self.builder.open_row();
        }
    }

    fn open_cell(&mut self, tag: &Tag) {
        self.close_cell();
        if self.tables.last().is_some_and(|table| !table.has_row) {
            self.open_row();
        }
        let Some(table) = self.tables.last_mut() else { return self.begin_block() };
        let span = attribute(tag, "colspan").and_then(|span| span.trim().parse().ok()).unwrap_or(1_usize);
        table.span = Some(span.clamp(1, MAX_SPAN));
        table.outer_lists = std::mem::take(&mut self.lists);
        self.builder.open_cell();
    }

    fn close_cell(&mut self) {
        let Some(table) = self.tables.last_mut() else { return };
        if let Some(span) = table.span.take() {
            self.lists = std::mem::take(&mut table.outer_lists);
            self.builder.close_cell(span);
        }
    }

    fn close_row(&mut self) {
        self.close_cell();
        if let Some(table) = self.tables.last_mut() {
            table.has_row = false;
        }
    }

    fn close_table(&mut self) {
        self.close_row();
        if self.tables.pop().is_some() {
            self.builder.close_table();
        }
    }
}

fn attribute<'a>(tag: &'a Tag, name: &str) -> Option<&'a str> {
    tag.attrs.iter().find(|it| &*it.name.local == name).map(|it| &*it.value)
}

/// Readers do not see it.
fn is_hidden(tag: &Tag) -> bool {
    let style = attribute(tag, "style").map(|style| style.to_lowercase().replace(char::is_whitespace, ""));
    let is_styled = style.is_some_and(|it| it.contains("display:none") || it.contains("visibility:hidden"));
    is_styled || attribute(tag, "hidden").is_some_and(|it| it != "until-found")
}

/// Elements without text for readers.
fn is_no_text(name: &str) -> bool {
    matches!(
        name,
        "script"
            | "style"
            | "template"
            | "noscript"
            | "iframe"
            | "noembed"
            | "noframes"
            | "svg"
            | "canvas"
            | "audio"
            | "video"
            | "select"
            | "datalist"
            | "textarea"
            | "button"
            | "rt"
            | "rp"
    )
}

/// How the tokenizer reads the content of an element that is left out.
fn raw_text(name: &str) -> Option<RawKind> {
    match name {
        "script" => Some(RawKind::ScriptData),
        "style" | "iframe" | "noembed" | "noframes" => Some(RawKind::Rawtext),
        "textarea" => Some(RawKind::Rcdata),
        _ => None,
    }
}

fn is_void(name: &str) -> bool {
    matches!(
        name,
        "area"
            | "base"
            | "br"
            | "col"
            | "embed"
            | "hr"
            | "img"
            | "input"
            | "link"
            | "meta"
            | "source"
            | "track"
            | "wbr"
    )
}

fn is_block(name: &str) -> bool {
    matches!(
        name,
        "address"
            | "article"
            | "aside"
            | "blockquote"
            | "body"
            | "caption"
            | "center"
            | "dd"
            | "details"
            | "dialog"
            | "div"
            | "dl"
            | "dt"
            | "fieldset"
            | "figcaption"
            | "figure"
            | "footer"
            | "form"
            | "header"
            | "hgroup"
            | "hr"
            | "html"
            | "legend"
            | "main"
            | "nav"
            | "p"
            | "search"
            | "section"
            | "summary"
    )
}
