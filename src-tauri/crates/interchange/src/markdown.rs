//! Conversations for reading: the current branch as Markdown. Images are shown where they were sent; their bytes stand at
//! the end of the conversation, so that the text before them stays readable.

use std::collections::{BTreeSet, HashMap};
use std::io::Write;

use documents::base64;
use platform::calendar;
use prompt::images::media_type;
use session::{AttachmentRow, ConversationArchive, MessageRow, MessageState, Role};

use crate::images::{ReadImageFn, record};

/// Digits of a SHA-256 that name an image in a text.
const LABEL_DIGITS: usize = 16;

/// Without `images`, images are named like other files.
pub fn write(
    out: &mut dyn Write,
    archives: &[ConversationArchive],
    images: Option<&ReadImageFn<'_>>,
) -> std::io::Result<()> {
    for (n, archive) in archives.iter().enumerate() {
        if n > 0 {
            out.write_all(b"\n---\n\n")?;
        }
        let mut shown = BTreeSet::new();
        let text = branch_text(archive, images.map(|read| (read, &mut shown)));
        out.write_all(text.as_bytes())?;
        for (n, sha256) in shown.iter().enumerate() {
            if let Some(bytes) = images.and_then(|read| read(sha256)) {
                let line_before = if n == 0 { "\n" } else { "" };
                let (label, kind) = (label(sha256), media_type(&bytes));
                writeln!(out, "{line_before}[{label}]: data:{kind};base64,{}", base64::encode(&bytes))?;
            }
        }
    }
    Ok(())
}

/// How originals are read, and the SHA-256 of those that the text shows.
type ShownImages<'a> = Option<(&'a ReadImageFn<'a>, &'a mut BTreeSet<String>)>;

fn branch_text(archive: &ConversationArchive, mut images: ShownImages<'_>) -> String {
    let row = &archive.conversation;
    let date = calendar::date_time(row.created_ms);
    let mut text = format!("# {}\n\n*{}*\n", row.title, date.replace('T', " "));
    for message in branch(archive) {
        let who = match message.role {
            Role::System => "System".to_owned(),
            Role::User => "You".to_owned(),
            Role::Assistant => message.model.clone().unwrap_or_else(|| "Model".into()),
        };
        text.push_str(&format!("\n## {who}\n\n"));
        if !message.reasoning.trim().is_empty() {
            let quoted: Vec<_> = message.reasoning.trim().lines().map(|line| format!("> {line}")).collect();
            text.push_str(&format!("> **Thinking**\n>\n{}\n\n", quoted.join("\n")));
        }
        text.push_str(message.text.trim_end());
        text.push('\n');
        text.push_str(&files(archive, message, &mut images));
        match message.state {
            MessageState::Complete => {}
            MessageState::Stopped => text.push_str("\n*(stopped)*\n"),
            MessageState::Streaming | MessageState::Interrupted => text.push_str("\n*(interrupted)*\n"),
            MessageState::Failed => text.push_str("\n*(failed)*\n"),
        }
    }
    text
}

/// Which files a question came with; of those that were searched, what was given of them.
fn files(archive: &ConversationArchive, message: &MessageRow, images: &mut ShownImages<'_>) -> String {
    let Some(by_message) = archive.files.by_message.get(&message.id) else { return String::new() };
    let all = archive.files.by_message.values().flat_map(|it| &it.files);
    let name = |id: &str| all.clone().find(|file| file.id == id).map(|file| file.name.as_str());
    let files = by_message.files.iter().map(|file| match shown_image(archive, file, images) {
        Some(image) => format!("- {image}\n"),
        None => format!("- Attached: {} ({} bytes)\n", file.name, file.bytes),
    });
    let passages = by_message.passages.iter().filter_map(|passage| {
        Some(format!("- Given to the model: {}, {}\n", name(&passage.attachment)?, location(passage)))
    });
    let list: String = files.chain(passages).collect();
    if list.is_empty() { list } else { format!("\n{list}") }
}

/// The image of a file, if its original is here.
fn shown_image(
    archive: &ConversationArchive,
    file: &AttachmentRow,
    images: &mut ShownImages<'_>,
) -> Option<String> {
    let (read, shown) = images.as_mut()?;
    let sha256 = record(archive, file)?.sha256;
    if !shown.contains(&sha256) && read(&sha256).is_none() {
        return None;
    }
    let mut name = String::new();
    for letter in file.name.chars().map(|it| if it.is_control() { ' ' } else { it }) {
        if matches!(letter, '[' | ']' | '\\') {
            name.push('\\');
        }
        name.push(letter);
    }
    let image = format!("![{name}][{}]", label(&sha256));
    shown.insert(sha256);
    Some(image)
}

fn label(sha256: &str) -> String {
    format!("image-{}", sha256.get(..LABEL_DIGITS).unwrap_or(sha256))
}

/// Such as `page 3` or `lines 10–42`.
fn location(row: &session::PassageRow) -> String {
    let session::PassageRow { start, end, first_line, last_line, page, .. } = *row;
    contract::types::Passage { start, end, first_line, last_line, page }.place()
}

/// Root first. Messages that refer to each other in a cycle stand there once.
fn branch(archive: &ConversationArchive) -> Vec<&MessageRow> {
    let mut branch = Vec::new();
    let mut rows: HashMap<&str, &MessageRow> =
        archive.messages.iter().rev().map(|(row, _)| (row.id.as_str(), row)).collect();
    let mut at = archive.conversation.leaf.as_deref();
    while let Some(row) = at.and_then(|id| rows.remove(id)) {
        branch.push(row);
        at = row.parent.as_deref();
    }
    branch.reverse();
    branch
}
