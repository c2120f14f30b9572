//! Text of web pages: headings, lists, tables and paragraphs as a reader sees them.
//!
//! Scripts, styles and hidden elements are left out. Nothing is loaded, and no script runs.

mod page_reader;
#[cfg(test)]
mod tests;

use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{BufferQueue, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};

use crate::block_builder::{BlockBuilder, BlockShape, TextBlock};
use crate::extract_error::ExtractError;
use page_reader::PageReader;

/// How a page is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkupDialect {
    Html,
    /// `<p/>` is a whole paragraph, and `CDATA` is text.
    Xhtml,
}

/// A page that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebPage {
    pub title: String,
    /// Not more than is kept of a file.
    pub blocks: Vec<TextBlock>,
    /// Bytes of text on the page.
    pub n_bytes: usize,
}

/// The text of a page as Markdown, with its title first.
pub fn read(source: &str) -> Result<String, ExtractError> {
    let page = page(source, MarkupDialect::Html);
    if page.blocks.is_empty() {
        return Err(ExtractError::new(
            "it contains no text: scripts write it when the page is opened",
            "Open it in a browser, print it to PDF and attach that.",
        ));
    }
    let is_title = |block: &TextBlock| matches!(block, TextBlock::Line(BlockShape::Heading(_), line) if *line == page.title);
    let mut builder = BlockBuilder::default();
    builder.count(page.n_bytes);
    if !page.blocks.iter().any(is_title) {
        builder.begin(BlockShape::Heading(1));
        builder.text(&page.title);
        builder.end();
    }
    page.blocks.into_iter().for_each(|block| builder.push(block));
    builder.finish()
}

/// The blocks of a page.
pub fn page(source: &str, dialect: MarkupDialect) -> WebPage {
    let sink = PageSink { reader: RefCell::new(PageReader::new(dialect)), dialect };
    let tokenizer = Tokenizer::new(sink, TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(source));
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    tokenizer.sink.reader.into_inner().finish()
}

/// What the tokenizer writes into.
struct PageSink {
    reader: RefCell<PageReader>,
    dialect: MarkupDialect,
}

impl TokenSink for PageSink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut reader = self.reader.borrow_mut();
        match token {
            Token::TagToken(tag) => return reader.tag(&tag),
            Token::CharacterTokens(text) => reader.text(&text),
            Token::NullCharacterToken
            | Token::DoctypeToken(_)
            | Token::CommentToken(_)
            | Token::EOFToken
            | Token::ParseError(_) => {}
        }
        TokenSinkResult::Continue
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.dialect == MarkupDialect::Xhtml
    }
}
