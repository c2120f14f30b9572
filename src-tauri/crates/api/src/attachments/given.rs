//! How files stand in a prompt: each in a fence of its own with its name before it, ahead of the question they came
//! with. The same message is the same text each time, so that what the model has computed of it stays of use.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use session::{AttachmentRow, BranchMessage, PassageRow};

use super::pdf::PAGE_BREAK;
use crate::State;
use crate::error::Result;
use crate::types::AttachmentKind;

/// What is said before passages.
const SEARCHED: &str = "Passages of attached files that match the question:";

/// Instead of passages.
const NOTHING: &str = "(No passage of it matches the question.)";

/// The shortest fence of Markdown.
const FENCE: usize = 3;

/// A file as a whole.
pub fn whole(name: &str, kind: AttachmentKind, text: &str) -> String {
    let text = match kind {
        AttachmentKind::Pdf => paged(text),
        AttachmentKind::Text | AttachmentKind::Markdown | AttachmentKind::Code | AttachmentKind::Csv => {
            text.to_owned()
        }
    };
    fenced(&format!("File: {name}"), &text)
}

/// A passage of a file's text. None: there is no such place in it.
pub fn passage(name: &str, kind: AttachmentKind, text: &str, place: &PassageRow) -> Option<String> {
    let (start, end) = (place.start as usize, place.end as usize);
    let words = text.get(start..end)?;
    // Rows of a table say nothing without its first one.
    let head = match kind {
        AttachmentKind::Csv => text.lines().next().filter(|line| start > line.len()),
        AttachmentKind::Text | AttachmentKind::Markdown | AttachmentKind::Code | AttachmentKind::Pdf => None,
    };
    let words = head.map_or_else(|| words.to_owned(), |head| format!("{head}\n{words}"));
    Some(fenced(&format!("{name}, {}", self::place(place)), &words))
}

/// Such as `page 3` or `lines 10–42`.
pub fn place(place: &PassageRow) -> String {
    super::sources::passage(place).place()
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

/// Pages by their numbers, so that an answer can name them.
fn paged(text: &str) -> String {
    let pages = text.split(PAGE_BREAK).enumerate();
    let pages = pages.map(|(n, page)| format!("[page {}]\n{}", n + 1, page.trim_end()));
    pages.collect::<Vec<_>>().join("\n\n")
}

impl State {
    /// A branch as the model is given it: what files say is part of the messages they are attached to.
    pub(crate) fn with_files(&self, mut branch: Vec<BranchMessage>) -> Result<Vec<BranchMessage>> {
        let rows: HashMap<String, AttachmentRow> = branch
            .iter()
            .flat_map(|it| &it.attachments.files)
            .map(|row| (row.id.clone(), row.clone()))
            .collect();
        if rows.is_empty() {
            return Ok(branch);
        }
        let mut texts: HashMap<String, Arc<str>> = HashMap::new();
        for message in &mut branch {
            if message.attachments.files.is_empty() && message.attachments.passages.is_empty() {
                continue;
            }
            for sha256 in needed(message, &rows) {
                if let Entry::Vacant(place) = texts.entry(sha256) {
                    // A text that was deleted for good is given to nobody.
                    let text = self.session.document(place.key())?.unwrap_or_default();
                    place.insert(text.into());
                }
            }
            message.row.text = self::message(&blocks_of(message, &rows, &texts), &message.row.text);
        }
        Ok(branch)
    }
}

fn needed(message: &BranchMessage, rows: &HashMap<String, AttachmentRow>) -> Vec<String> {
    let wholes = message.attachments.files.iter().filter(|row| row.is_whole);
    let searched = message.attachments.passages.iter().filter_map(|passage| rows.get(&passage.attachment));
    wholes.chain(searched).map(|row| row.document.clone()).collect()
}

fn blocks_of(
    message: &BranchMessage,
    rows: &HashMap<String, AttachmentRow>,
    texts: &HashMap<String, Arc<str>>,
) -> Vec<String> {
    let files = &message.attachments.files;
    let kind = |row: &AttachmentRow| AttachmentKind::of_name(&row.kind);
    let wholes = files.iter().filter(|row| row.is_whole);
    let wholes = wholes.filter_map(|row| Some(whole(&row.name, kind(row), texts.get(&row.document)?)));
    let searched: Vec<&str> = files.iter().filter(|row| !row.is_whole).map(|row| row.name.as_str()).collect();
    let passages = message.attachments.passages.iter().filter_map(|place| {
        let row = rows.get(&place.attachment)?;
        Some((row.name.clone(), passage(&row.name, kind(row), texts.get(&row.document)?, place)?))
    });
    blocks(wholes.collect(), &searched, passages.collect())
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
    fn passages_say_where_they_stand() {
        let text = "name,count\nfox,1\nowl,2\nelk,3\n";
        let mut place = PassageRow {
            message: String::new(),
            attachment: String::new(),
            start: 17,
            end: 28,
            first_line: 3,
            last_line: 4,
            page: None,
        };
        let of = |kind, place: &PassageRow| passage("a.csv", kind, text, place);
        let expected = "a.csv, lines 3–4\n```\nname,count\nowl,2\nelk,3\n```";
        assert_eq!(of(AttachmentKind::Csv, &place).as_deref(), Some(expected));
        place.page = Some(7);
        let expected = "a.csv, page 7\n```\nowl,2\nelk,3\n```";
        assert_eq!(of(AttachmentKind::Pdf, &place).as_deref(), Some(expected));
        place.end = 2000;
        assert_eq!(of(AttachmentKind::Text, &place), None);
    }

    #[test]
    fn a_message_is_its_files_and_its_words() {
        let passages = vec![("big.txt".to_owned(), "P".to_owned())];
        let blocks = blocks(vec!["W".into()], &["big.txt", "other.txt"], passages);
        let expected = format!("W\n\nFile: other.txt\n{NOTHING}\n\n{SEARCHED}\n\nP\n\nWhy?");
        assert_eq!(message(&blocks, "Why?"), expected);
        assert_eq!(message(&[], "Why?"), "Why?");
    }
}
