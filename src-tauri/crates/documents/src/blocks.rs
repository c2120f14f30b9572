//! How files appear in a prompt: each in a fence under its name, ahead of the question they came
//! with. The same message always yields the same text, so that the model's cached state can be
//! reused.

use std::ops::Range;

use contract::types::AttachmentKind;

use crate::pdf::PAGE_BREAK;
use crate::readability::unreadable_percent;

/// Introduces quoted passages in a prompt.
const SEARCHED: &str = "Passages of attached files that match the question:";

/// Instead of passages.
const NOTHING: &str = "(No passage of it matches the question.)";

/// The shortest fence of Markdown.
const FENCE: usize = 3;

/// A file as a whole.
pub fn whole(name: &str, kind: AttachmentKind, text: &str) -> String {
    let text = match kind {
        AttachmentKind::Pdf => paged(text),
        AttachmentKind::Text
        | AttachmentKind::Markdown
        | AttachmentKind::Code
        | AttachmentKind::Csv
        | AttachmentKind::Image
        | AttachmentKind::Document
        | AttachmentKind::Spreadsheet
        | AttachmentKind::Presentation => text.to_owned(),
    };
    fenced(&format!("File: {name}{}", unreadable_note(&text)), &text)
}

/// What introduces an image that is a page of a file.
pub fn page(name: &str) -> String {
    format!("File: {name}")
}

/// The passage at `range`, in bytes, of a file's text; `location` says where it stands. None: the text has no such range.
pub fn passage(
    name: &str,
    kind: AttachmentKind,
    text: &str,
    range: Range<usize>,
    location: &str,
) -> Option<String> {
    let words = text.get(range.clone())?;
    // Rows of a table mean nothing without its header.
    let head = match kind {
        AttachmentKind::Csv => text.lines().next().filter(|line| range.start > line.len()).map(str::to_owned),
        AttachmentKind::Spreadsheet => sheet_head(&text[..range.start]),
        AttachmentKind::Presentation => last_heading(&text[..range.start]).map(str::to_owned),
        AttachmentKind::Text
        | AttachmentKind::Markdown
        | AttachmentKind::Code
        | AttachmentKind::Pdf
        | AttachmentKind::Image
        | AttachmentKind::Document => None,
    };
    let words = head.map_or_else(|| words.to_owned(), |head| format!("{head}\n{words}"));
    Some(fenced(&format!("{name}, {location}{}", unreadable_note(text)), &words))
}

/// Name of the sheet, and header of the table that goes on after `before`.
fn sheet_head(before: &str) -> Option<String> {
    let sheet = last_heading(before);
    let table = before.rsplit("\n\n").next().unwrap_or_default();
    let header =
        table.lines().take_while(|_| table.lines().nth(1).is_some_and(|line| line.starts_with("| ---")));
    let head: Vec<&str> = sheet.into_iter().chain(header.take(2)).collect();
    (!head.is_empty()).then(|| head.join("\n"))
}

/// The last line before a passage that names a sheet or slide.
fn last_heading(before: &str) -> Option<&str> {
    let at = before.rfind("\n## ").map(|at| at + 1).or_else(|| before.starts_with("## ").then_some(0))?;
    before[at..].lines().next()
}

/// A message's files and passages, in its order, and then what it says.
pub fn message(blocks: &[String], text: &str) -> String {
    let mut parts: Vec<&str> = blocks.iter().map(String::as_str).collect();
    if !text.is_empty() {
        parts.push(text);
    }
    parts.join("\n\n")
}

/// Blocks of a message: whole files, then what was found in the others. `passages` are blocks of those, each with the
/// file that it is of.
pub fn blocks(wholes: Vec<String>, searched: &[&str], passages: Vec<(String, String)>) -> Vec<String> {
    let mut blocks = wholes;
    let without: Vec<String> = searched
        .iter()
        .filter(|name| !passages.iter().any(|(of, _)| of == *name))
        .map(|name| format!("File: {name}\n{NOTHING}"))
        .collect();
    blocks.extend(without);
    if !passages.is_empty() {
        blocks.push(SEARCHED.into());
    }
    blocks.extend(passages.into_iter().map(|(_, block)| block));
    blocks
}

/// No text ends the fence around it.
fn fenced(title: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(FENCE));
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{title}\n{fence}\n{text}{end}{fence}")
}

/// Tells the model that what it gets has holes.
fn unreadable_note(text: &str) -> String {
    let note = |percent| {
        format!(
            " (partly unreadable: about {percent} % of its letters could not be decoded and appear as \u{fffd})"
        )
    };
    unreadable_percent(text).map(note).unwrap_or_default()
}

/// Pages by their numbers, so that an answer can name them.
fn paged(text: &str) -> String {
    let pages = text.split(PAGE_BREAK).enumerate();
    let pages = pages.map(|(n, page)| format!("[page {}]\n{}", n + 1, page.trim_end()));
    pages.collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_hold_whatever_is_in_them() {
        let block = whole("notes.md", AttachmentKind::Markdown, "a\n````\nb\n````\n");
        assert_eq!(block, "File: notes.md\n`````\na\n````\nb\n````\n`````");
        let block = whole("book.pdf", AttachmentKind::Pdf, "one\u{c}two");
        assert_eq!(block, "File: book.pdf\n```\n[page 1]\none\n\n[page 2]\ntwo\n```");
    }

    #[test]
    fn the_model_is_told_of_unreadable_letters() {
        let note =
            "(partly unreadable: about 50 % of its letters could not be decoded and appear as \u{fffd})";
        let block = whole("scan.txt", AttachmentKind::Text, "a\u{fffd}");
        assert_eq!(block, format!("File: scan.txt {note}\n```\na\u{fffd}\n```"));
        let block = passage("scan.txt", AttachmentKind::Text, "a\u{fffd}", 0..1, "line 1").unwrap();
        assert_eq!(block, format!("scan.txt, line 1 {note}\n```\na\n```"));
    }

    #[test]
    fn a_message_is_its_files_and_its_words() {
        let passages = vec![("big.txt".to_owned(), "P".to_owned())];
        let blocks = blocks(vec!["W".into()], &["big.txt", "other.txt"], passages);
        let expected = format!("W\n\nFile: other.txt\n{NOTHING}\n\n{SEARCHED}\n\nP\n\nWhy?");
        assert_eq!(message(&blocks, "Why?"), expected);
        assert_eq!(message(&[], "Why?"), "Why?");
    }

    #[test]
    fn rows_of_a_sheet_come_with_its_name_and_header() {
        let text =
            "## A\n\n| x |\n| --- |\n| 1 |\n\n## B\n\n| y | z |\n| --- | --- |\n| 2 | 3 |\n| 4 | 5 |\n";
        let of = |words: &str, kind| {
            let at = text.find(words).unwrap();
            passage("a.xlsx", kind, text, at..at + words.len(), "line 1").unwrap()
        };
        let kind = AttachmentKind::Spreadsheet;
        let expected = "## B\n| y | z |\n| --- | --- |\n| 4 | 5 |\n";
        assert!(of("| 4 | 5 |", kind).contains(expected), "{}", of("| 4 | 5 |", kind));
        assert!(!of("## A", kind).contains("---"));
        assert!(of("| 4 | 5 |", AttachmentKind::Presentation).contains("## B\n| 4 | 5 |"));
    }
}
