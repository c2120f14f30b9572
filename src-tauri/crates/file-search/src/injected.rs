//! The files and passages injected into a branch's messages before the model reads them.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use contract::Result;
use contract::protocol::PromptImage;
use contract::types::AttachmentKind;
use documents::blocks;
use session::{AttachmentRow, BranchMessage, PassageRow, Session};

use crate::citations::{self, is_image};
use crate::images::{self, unseen_block};

/// The block of a passage. None: the text has no such range.
pub fn passage_block(name: &str, kind: AttachmentKind, text: &str, row: &PassageRow) -> Option<String> {
    let range = row.start as usize..row.end as usize;
    blocks::passage(name, kind, text, range, &citations::location(row))
}

/// A branch as the model is given it.
pub struct FilledBranch {
    /// Its messages, with the texts of files.
    pub messages: Vec<BranchMessage>,
    /// Images by message.
    pub images: HashMap<String, Vec<PromptImage>>,
}

impl FilledBranch {
    /// A branch without its files.
    pub fn plain(messages: Vec<BranchMessage>) -> Self {
        Self { messages, images: HashMap::new() }
    }
}

/// A branch as the model is given it: what files say is part of the messages they are attachments to. So are images, where
/// `can_see` says that the model takes them.
pub fn with_files(
    session: &Session,
    branch: Vec<BranchMessage>,
    can_see: &dyn Fn() -> bool,
) -> Result<FilledBranch> {
    let has_images = branch.iter().any(|it| it.attachments.files.iter().any(is_image));
    let (mut images, mut notes) = (HashMap::new(), ImageNotes::default());
    if has_images {
        let can_see = can_see();
        for message in &branch {
            let stored = images::of_message(session, message)?;
            notes.silent.extend(stored.pages);
            if !can_see {
                continue;
            }
            let (ids, seen): (Vec<_>, Vec<_>) = stored.images.into_iter().unzip();
            notes.silent.extend(ids);
            let (blocks, placed) = images::place(seen);
            notes.pages.insert(message.row.id.clone(), blocks);
            images.insert(message.row.id.clone(), placed);
        }
    }
    Ok(FilledBranch { messages: with_texts(session, branch, &notes)?, images })
}

/// What a branch says of its images.
#[derive(Default)]
struct ImageNotes {
    /// Attachments that need no note: the model sees them, or the text of their file speaks of them.
    silent: HashSet<String>,
    /// Blocks that name the pages which the model sees, by message.
    pages: HashMap<String, Vec<String>>,
}

fn with_texts(
    session: &Session,
    mut branch: Vec<BranchMessage>,
    notes: &ImageNotes,
) -> Result<Vec<BranchMessage>> {
    let rows: HashMap<String, AttachmentRow> =
        branch.iter().flat_map(|it| &it.attachments.files).map(|row| (row.id.clone(), row.clone())).collect();
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
                // A text that was deleted for good is never given out.
                let text = session.document(place.key())?.unwrap_or_default();
                place.insert(text.into());
            }
        }
        message.row.text = blocks::message(&blocks_of(message, &rows, &texts, notes), &message.row.text);
    }
    Ok(branch)
}

fn needed(message: &BranchMessage, rows: &HashMap<String, AttachmentRow>) -> Vec<String> {
    let wholes = message.attachments.files.iter().filter(|row| row.is_whole && !is_image(row));
    let searched = message.attachments.passages.iter().filter_map(|passage| rows.get(&passage.attachment));
    wholes.chain(searched).map(|row| row.document.clone()).collect()
}

fn blocks_of(
    message: &BranchMessage,
    rows: &HashMap<String, AttachmentRow>,
    texts: &HashMap<String, Arc<str>>,
    notes: &ImageNotes,
) -> Vec<String> {
    let files = &message.attachments.files;
    let kind = |row: &AttachmentRow| AttachmentKind::of_name(&row.kind);
    let wholes = files.iter().filter(|row| row.is_whole).filter_map(|row| match is_image(row) {
        true => (!notes.silent.contains(&row.id)).then(|| unseen_block(&row.name)),
        false => Some(blocks::whole(&row.name, kind(row), texts.get(&row.document)?)),
    });
    let searched: Vec<&str> = files.iter().filter(|row| !row.is_whole).map(|row| row.name.as_str()).collect();
    let passages = message.attachments.passages.iter().filter_map(|place| {
        let row = rows.get(&place.attachment)?;
        Some((row.name.clone(), passage_block(&row.name, kind(row), texts.get(&row.document)?, place)?))
    });
    let pages = notes.pages.get(&message.row.id).cloned().unwrap_or_default();
    [pages, blocks::blocks(wholes.collect(), &searched, passages.collect())].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let of = |kind, place: &PassageRow| passage_block("a.csv", kind, text, place);
        let expected = "a.csv, lines 3–4\n```\nname,count\nowl,2\nelk,3\n```";
        assert_eq!(of(AttachmentKind::Csv, &place).as_deref(), Some(expected));
        place.page = Some(7);
        let expected = "a.csv, page 7\n```\nowl,2\nelk,3\n```";
        assert_eq!(of(AttachmentKind::Pdf, &place).as_deref(), Some(expected));
        place.end = 2000;
        assert_eq!(of(AttachmentKind::Text, &place), None);
    }
}
