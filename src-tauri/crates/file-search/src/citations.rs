//! Files and the excerpts given of them, as edges show them.

use std::collections::HashMap;

use session::{AttachmentRow, BranchMessage, PassageRow, ProjectFileRow, Role};

use contract::Finding;
use contract::types::{Attachment, AttachmentKind, Citation, Passage};

/// Whether an attachment is an image.
pub fn is_image(row: &AttachmentRow) -> bool {
    row.kind == AttachmentKind::Image.name()
}

/// A message's files.
pub fn files(message: &BranchMessage) -> Vec<Attachment> {
    message.attachments.files.iter().cloned().map(info).collect()
}

/// A file as lists show it.
pub fn info(row: AttachmentRow) -> Attachment {
    let findings = findings(&row);
    Attachment {
        id: row.id,
        name: row.name,
        kind: AttachmentKind::of_name(&row.kind),
        bytes: u64::try_from(row.bytes).unwrap_or(0),
        findings,
        whole: Some(row.is_whole),
        tokens: row.tokens,
        is_about: row.is_about,
        from_project: row.from_project,
        guessed: None,
        image: None,
        scanned: None,
    }
}

/// A file of a project as an attachment of a message that has not been sent.
pub fn of_project(file: ProjectFileRow) -> AttachmentRow {
    AttachmentRow {
        id: file.id,
        message: String::new(),
        document: file.document,
        name: file.name,
        kind: file.kind,
        bytes: file.bytes,
        findings: file.findings,
        is_whole: false,
        tokens: None,
        is_about: false,
        from_project: true,
    }
}

/// Kept findings that can't be read any more show as none.
pub fn findings(row: &AttachmentRow) -> Vec<Finding> {
    row.findings.as_deref().and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
}

/// What each answer of a branch could know of files: what its question gave to the model. By the answer's id.
pub fn sources(branch: &[BranchMessage]) -> HashMap<String, Vec<Citation>> {
    let rows: HashMap<&str, &AttachmentRow> =
        branch.iter().flat_map(|it| &it.attachments.files).map(|row| (row.id.as_str(), row)).collect();
    let mut sources = HashMap::new();
    for turn in branch.chunk_by(|_, next| next.row.role == Role::Assistant) {
        // An answer may come in several messages: the last of them is the one that says what was found.
        let [question, .., answer] = turn else { continue };
        let of_question = of(&question.attachments.files, &question.attachments.passages, &rows);
        if !of_question.is_empty() {
            sources.insert(answer.row.id.clone(), of_question);
        }
    }
    sources
}

/// Of one question, with no files before it.
pub fn of_question(files: &[AttachmentRow], passages: &[PassageRow]) -> Vec<Citation> {
    of(files, passages, &files.iter().map(|row| (row.id.as_str(), row)).collect())
}

/// Whole files, then passages; `rows` are all files by their ids.
fn of(
    files: &[AttachmentRow],
    passages: &[PassageRow],
    rows: &HashMap<&str, &AttachmentRow>,
) -> Vec<Citation> {
    let wholes = files.iter().filter(|row| row.is_whole && !is_image(row)).map(|row| source(row, None));
    let found = passages.iter().filter_map(|place| {
        let row = rows.get(place.attachment.as_str())?;
        Some(source(row, Some(passage(place))))
    });
    wholes.chain(found).collect()
}

fn source(row: &AttachmentRow, passage: Option<Passage>) -> Citation {
    Citation {
        attachment: row.id.clone(),
        name: row.name.clone(),
        kind: AttachmentKind::of_name(&row.kind),
        passage,
    }
}

/// Where a passage stands in its text.
pub fn passage(place: &PassageRow) -> Passage {
    Passage {
        start: place.start,
        end: place.end,
        first_line: place.first_line,
        last_line: place.last_line,
        page: place.page,
    }
}

/// Where a passage stands, such as `page 3` or `lines 10–42`.
pub fn location(row: &PassageRow) -> String {
    passage(row).place()
}
