//! Office files and books: archives as they are, or their files as sections.

use documents::extract;

use crate::sections::Sections;
use crate::{FuzzTarget, text, zip};

/// Reads the text of office files and books.
pub static OFFICE: FuzzTarget = FuzzTarget { name: "office", read, max_bytes: 256 << 20 };

fn read(input: &[u8]) {
    let sections = Sections::of(input);
    let made = sections.named().next().is_some().then(|| zip::of_sections(&sections));
    if let Ok(read) = extract::read("file.docx", made.as_deref().unwrap_or(input)) {
        text::check_text(&read.text, false);
    }
}
