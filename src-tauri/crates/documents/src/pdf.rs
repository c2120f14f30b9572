//! Extracts the text of a PDF, page by page, with what was filled into its forms. Limits of time, pages, memory and
//! nesting hold whatever the file says, and a failure ends only the reading. Layout (pictures, columns, tables)
//! is ignored; words come in the order in which the file draws them.

mod annotations;
mod arabic_ligatures;
mod bidi;
mod brackets;
mod brahmic;
mod brahmic_letters;
mod cluster_texts;
mod cmap;
mod composite;
mod content_stream;
mod encryption;
mod font_program;
mod font_source;
mod fonts;
mod gap_filling;
mod glyph_names;
mod glyph_shape;
mod lines;
mod marked_content;
mod non_joiners;
mod overlaid_accents;
mod page_clusters;
mod predefined_cmaps;
pub mod scanned;
mod shown_line;
mod shown_piece;
mod simple;
mod streams;
mod strings;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lopdf::{Document, LoadOptions, ObjectId};

use crate::extract_error::{ExtractError, TEXT_MOST};
use crate::timed::{self, READ_TIMEOUT};

/// Between two pages of a text.
pub const PAGE_BREAK: char = '\u{c}';

/// Longer books are better sent in parts.
const MAX_PAGES: usize = 3000;

/// A stream that unpacks to more is a trap, not a page. Bytes.
const MAX_UNPACKED: usize = 32 << 20;

/// Texts of a PDF's pages, joined by `PAGE_BREAK`; all blank where its pages are images.
pub fn read(bytes: &[u8]) -> Result<String, ExtractError> {
    within(bytes, READ_TIMEOUT)
}

fn within(bytes: &[u8], time: Duration) -> Result<String, ExtractError> {
    let bytes = bytes.to_vec();
    timed::run(time, damaged, move |stop| text(&bytes, stop))
}

fn text(bytes: &[u8], stop: &AtomicBool) -> Result<String, ExtractError> {
    let options = LoadOptions { max_decompressed_size: Some(MAX_UNPACKED), ..LoadOptions::default() };
    let moved = encryption::with_encryption_object(bytes);
    let bytes = moved.as_deref().unwrap_or(bytes);
    let document = Document::load_mem_with_options(bytes, options).map_err(|error| match error {
        lopdf::Error::InvalidPassword | lopdf::Error::Decryption(_) => ExtractError::locked(),
        _ => damaged(),
    })?;
    if document.is_encrypted() {
        return Err(ExtractError::locked());
    }
    let pages: Vec<_> = document.page_iter().take(MAX_PAGES + 1).collect();
    if pages.len() > MAX_PAGES {
        return Err(ExtractError::new(
            format!("it has more than {MAX_PAGES} pages"),
            "Save the pages you need as a separate PDF and attach that.",
        ));
    }
    if pages.is_empty() {
        return Err(damaged());
    }
    let mut walker = content_stream::Walker::new(&document, stop);
    let mut annotations = annotations::AnnotationReader::default();
    let mut text = String::new();
    for (n, page) in pages.into_iter().enumerate() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        if n > 0 {
            text.push(PAGE_BREAK);
        }
        // A page that can't be read is an empty one; the others are read.
        let read = catch_unwind(AssertUnwindSafe(|| {
            let drawn = walker.page(page, &content(&document, page));
            let added = annotations.page(&document, page);
            [drawn.trim(), added.trim()].map(str::to_owned)
        }));
        let parts = read.unwrap_or_default();
        text.push_str(&parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n"));
        if text.len() > TEXT_MOST {
            return Err(ExtractError::too_long(text.len()));
        }
    }
    Ok(text)
}

/// The streams of a page, as far as they can be unpacked.
fn content(document: &Document, page: ObjectId) -> Vec<u8> {
    let mut content = Vec::new();
    for id in document.get_page_contents(page) {
        let stream = document.get_object(id).and_then(|it| it.as_stream());
        let room = MAX_UNPACKED.saturating_sub(content.len());
        if let Some(bytes) = stream.ok().and_then(|stream| streams::unpack(document, stream, room)) {
            content.extend(bytes);
            content.push(b'\n');
        }
    }
    content
}

/// The error of a file that no parser reads.
pub fn damaged() -> ExtractError {
    ExtractError::new(
        "it is not a readable PDF; it may be damaged",
        "Save or print it to a new PDF and attach that.",
    )
}

#[cfg(test)]
mod tests;
