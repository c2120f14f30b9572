//! Texts and web pages: the first line is the file's name, the rest its bytes.

use documents::{chunking, extract, prompt_injection, readability};

use crate::FuzzTarget;

/// Reads texts, web pages and tables in whatever encoding.
pub static TEXT: FuzzTarget = FuzzTarget { name: "text", read, max_bytes: 256 << 20 };

fn read(input: &[u8]) {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let name = String::from_utf8_lossy(&input[..end]);
    let content = input.get(end + 1..).unwrap_or_default();
    documents::file_name::clean(&name);
    if let Ok(read) = extract::read(&name, content) {
        check_text(&read.text, false);
    }
}

/// Checks what is done with every text of a document: passages are of the text, and findings are found.
pub fn check_text(text: &str, has_pages: bool) {
    for passage in chunking::cut(text, has_pages) {
        assert!(text.get(passage.range.clone()).is_some(), "{:?} of {} bytes", passage.range, text.len());
        assert!(passage.first_line <= passage.last_line);
    }
    prompt_injection::scan(text);
    prompt_injection::reveal_hidden(text);
    readability::unreadable_percent(text);
}
