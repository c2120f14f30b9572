//! Exports of other programs and ours: what was found comes back from our own export.

use std::io::Cursor;

use interchange::{ImportedConversation, complete};

use crate::sections::Sections;
use crate::{FuzzTarget, zip};

/// Reads exports of chats.
pub static IMPORT: FuzzTarget = FuzzTarget { name: "import", read, max_bytes: 256 << 20 };

fn read(input: &[u8]) {
    let sections = Sections::of(input);
    let made = sections.named().next().is_some().then(|| zip::of_sections(&sections));
    let found = find(made.as_deref().unwrap_or(input));
    let mut archives: Vec<_> = found.into_iter().map(|found| found.archive).collect();
    archives.iter_mut().for_each(|archive| complete(archive, "model", 1));
    if archives.is_empty() {
        return;
    }
    let mut markdown = Vec::new();
    interchange::write(&mut markdown, &archives, contract::types::ExportFormat::Md, None, 1)
        .expect("memory takes all that is written");
    let mut json = Vec::new();
    interchange::write(&mut json, &archives, contract::types::ExportFormat::Json, None, 1)
        .expect("memory takes all that is written");
    let again = find(&json);
    let texts = |archive: &session::ConversationArchive| -> Vec<String> {
        archive.messages.iter().map(|(row, _)| row.text.clone()).collect()
    };
    let before: Vec<_> = archives.iter().map(texts).collect();
    let after: Vec<_> = again.iter().map(|found| texts(&found.archive)).collect();
    assert_eq!(before, after, "messages come back from our own export");
}

fn find(file: &[u8]) -> Vec<ImportedConversation> {
    let mut found = Vec::new();
    let _ = interchange::read(&mut Cursor::new(file), &mut |item| found.extend(item.ok()), &mut |_| {});
    found
}
