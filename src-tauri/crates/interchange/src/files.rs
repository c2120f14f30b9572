//! Files of messages in our own JSON: what a message has, and each text once per conversation. An
//! imported text is stored under its computed hash, whatever the export calls it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use session::{AttachmentRow, MessageAttachments, PassageRow};

use documents::sha256;

/// Texts by the names that files have for them.
pub type Documents = BTreeMap<String, String>;

#[derive(Serialize, Deserialize)]
pub struct AttachedFile {
    id: String,
    /// Of the conversation's documents.
    document: String,
    name: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    bytes: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    findings: Option<Value>,
    /// The model is given all of it.
    #[serde(default)]
    whole: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tokens: Option<u32>,
    /// That count is an estimate.
    #[serde(default)]
    about: bool,
}

#[derive(Serialize, Deserialize)]
pub struct PassageSpan {
    /// A file of this message or of one before it.
    file: String,
    start: u32,
    end: u32,
    first_line: u32,
    last_line: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    page: Option<u32>,
}

pub fn write(attached: &MessageAttachments) -> (Vec<AttachedFile>, Vec<PassageSpan>) {
    let file = |row: &AttachmentRow| AttachedFile {
        id: row.id.clone(),
        document: row.document.clone(),
        name: row.name.clone(),
        kind: row.kind.clone(),
        bytes: row.bytes,
        findings: row.findings.as_ref().and_then(|json| serde_json::from_str(json).ok()),
        whole: row.is_whole,
        tokens: row.tokens,
        about: row.is_about,
    };
    let place = |row: &PassageRow| PassageSpan {
        file: row.attachment.clone(),
        start: row.start,
        end: row.end,
        first_line: row.first_line,
        last_line: row.last_line,
        page: row.page,
    };
    (attached.files.iter().map(file).collect(), attached.passages.iter().map(place).collect())
}

/// Error: a file without a text.
pub fn read(
    files: Vec<AttachedFile>,
    places: Vec<PassageSpan>,
    documents: &Documents,
) -> Result<MessageAttachments, String> {
    let row = |file: AttachedFile| {
        let text = documents.get(&file.document);
        let text = text.ok_or_else(|| format!("the text of \"{}\" is missing.", file.name))?;
        Ok(AttachmentRow {
            id: file.id,
            message: String::new(),
            document: sha256(text),
            name: file.name,
            kind: file.kind,
            bytes: file.bytes,
            findings: file.findings.filter(|it| !it.is_null()).map(|it| it.to_string()),
            is_whole: file.whole,
            tokens: file.tokens,
            is_about: file.about,
            from_project: false,
        })
    };
    let passage = |place: PassageSpan| PassageRow {
        message: String::new(),
        attachment: place.file,
        start: place.start,
        end: place.end,
        first_line: place.first_line,
        last_line: place.last_line,
        page: place.page,
    };
    let files: Result<Vec<_>, String> = files.into_iter().map(row).collect();
    Ok(MessageAttachments { files: files?, passages: places.into_iter().map(passage).collect() })
}
