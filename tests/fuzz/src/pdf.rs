//! PDFs: files as they are, or objects as sections, for which the table of objects is written.

use std::time::Duration;

use documents::pdf;
use pdf_pages::{PageChoice, PageLimits, render};

use crate::FuzzTarget;
use crate::sections::Sections;

/// Reads the text of PDFs and draws their pages.
pub static PDF: FuzzTarget = FuzzTarget { name: "pdf", read, max_bytes: 512 << 20 };

const HEAD: &[u8] = b"%PDF-";

const LIMITS: PageLimits = PageLimits {
    max_pages: 2,
    longest_side: 128,
    max_stream_bytes: 8 << 20,
    timeout: Duration::from_secs(10),
};

fn read(input: &[u8]) {
    let sections = Sections::of(input);
    let made = sections.named().next().is_some().then(|| file_of(&sections));
    let bytes = made.as_deref().unwrap_or(input);
    if !bytes.starts_with(HEAD) {
        return;
    }
    if let Ok(text) = pdf::read(bytes) {
        documents::chunking::cut(&text, true);
    }
    let _ = render(bytes, PageChoice::All, LIMITS);
}

/// A file of these objects. A section's name is the object's number; the first is the catalog. `LENGTH` in an object is
/// the length of its stream.
fn file_of(sections: &Sections<'_>) -> Vec<u8> {
    let mut file = b"%PDF-1.7\n".to_vec();
    let mut offsets = Vec::new();
    for (number, content) in sections.named() {
        let Ok(number) = number.trim().parse::<u16>() else { continue };
        offsets.push((number, file.len()));
        file.extend(format!("{number} 0 obj\n").bytes());
        file.extend(with_length(content));
        file.extend(b"\nendobj\n");
    }
    let table = file.len();
    file.extend(b"xref\n0 1\n0000000000 65535 f \n");
    for (number, offset) in &offsets {
        file.extend(format!("{number} 1\n{offset:010} 00000 n \n").bytes());
    }
    let root = offsets.first().map_or(1, |(number, _)| *number);
    let size = offsets.iter().map(|(number, _)| usize::from(*number) + 1).max().unwrap_or(1);
    file.extend(format!("trailer\n<< /Size {size} /Root {root} 0 R >>\nstartxref\n{table}\n%%EOF\n").bytes());
    file
}

fn with_length(object: &[u8]) -> Vec<u8> {
    const MARK: &[u8] = b"LENGTH";
    const STREAM: &[u8] = b"stream\n";
    let find = |what: &[u8]| object.windows(what.len()).position(|window| window == what);
    let (Some(mark), Some(stream)) = (find(MARK), find(STREAM)) else { return object.to_vec() };
    let data = &object[stream + STREAM.len()..];
    let end = data.windows(9).rposition(|window| window == b"endstream").unwrap_or(data.len());
    let n = end.saturating_sub(1).to_string();
    [&object[..mark], n.as_bytes(), &object[mark + MARK.len()..]].concat()
}
