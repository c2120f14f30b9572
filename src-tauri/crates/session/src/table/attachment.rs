//! Files attached to messages, and the passages of files that were put into the prompt with a message.
//!
//! A passage may belong to a file of an earlier message of the branch. Both are deleted with their message; passages also
//! with their file.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::{Result, SessionError};

pub const CREATE: &str = "
CREATE TABLE attachment (
    id       TEXT PRIMARY KEY NOT NULL,
    message  TEXT NOT NULL REFERENCES message(id) ON DELETE CASCADE,
    n        INTEGER NOT NULL,
    document TEXT NOT NULL REFERENCES document(sha256),
    name     TEXT NOT NULL,
    kind     TEXT NOT NULL,
    bytes    INTEGER NOT NULL,
    findings TEXT,
    is_whole INTEGER NOT NULL,
    UNIQUE (message, n)
) STRICT;
CREATE INDEX attachment_document ON attachment(document);
CREATE TABLE passage (
    message    TEXT NOT NULL REFERENCES message(id) ON DELETE CASCADE,
    n          INTEGER NOT NULL,
    attachment TEXT NOT NULL REFERENCES attachment(id) ON DELETE CASCADE,
    start      INTEGER NOT NULL,
    end        INTEGER NOT NULL,
    first_line INTEGER NOT NULL,
    last_line  INTEGER NOT NULL,
    page       INTEGER,
    PRIMARY KEY (message, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX passage_attachment ON passage(attachment);
";

pub const ADD_TOKENS: &str = "
ALTER TABLE attachment ADD COLUMN tokens INTEGER;
ALTER TABLE attachment ADD COLUMN is_about INTEGER NOT NULL DEFAULT 0;
";

/// Whether a file came from the project that its conversation began in.
pub const ADD_FROM_PROJECT: &str = "
ALTER TABLE attachment ADD COLUMN from_project INTEGER NOT NULL DEFAULT 0;
";

/// A file attached to a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachmentRow {
    pub id: String,
    pub message: String,
    /// SHA-256 of its text, the key of the document table.
    pub document: String,
    pub name: String,
    /// Kind of file, as named by the layer above.
    pub kind: String,
    /// Bytes of the original file.
    pub bytes: i64,
    /// Hidden or instructing text found in it: JSON of the layer above.
    pub findings: Option<String>,
    /// Whether the whole text goes into the prompt; otherwise passages of it.
    pub is_whole: bool,
    /// Tokens of the whole text, for the model it was sent to. None: not counted.
    pub tokens: Option<u32>,
    /// Whether `tokens` is an estimate.
    pub is_about: bool,
    /// Whether it came from the project that the conversation began in.
    pub from_project: bool,
}

/// A passage of a file that was put into the prompt with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassageRow {
    pub message: String,
    pub attachment: String,
    /// First byte in the text.
    pub start: u32,
    /// End byte in the text, exclusive.
    pub end: u32,
    /// First line, from 1.
    pub first_line: u32,
    /// Last line, from 1.
    pub last_line: u32,
    /// Page, from 1, if the file has pages.
    pub page: Option<u32>,
}

/// Files and passages of one message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessageAttachments {
    pub files: Vec<AttachmentRow>,
    pub passages: Vec<PassageRow>,
}

const COLUMNS: &str = "attachment.id, attachment.message, document, name, kind, bytes, findings, is_whole, tokens, is_about, from_project";
const PASSAGE: &str = "passage.message, attachment, start, end, first_line, last_line, page";

fn from_row(row: &Row) -> rusqlite::Result<AttachmentRow> {
    Ok(AttachmentRow {
        id: row.get(0)?,
        message: row.get(1)?,
        document: row.get(2)?,
        // A damaged column loses its own value only.
        name: row.get(3).unwrap_or_else(|_| "file".into()),
        kind: row.get(4).unwrap_or_default(),
        bytes: row.get(5).unwrap_or_default(),
        findings: row.get(6).unwrap_or_default(),
        is_whole: row.get(7).unwrap_or_default(),
        tokens: row.get(8).unwrap_or_default(),
        is_about: row.get(9).unwrap_or_default(),
        from_project: row.get(10).unwrap_or_default(),
    })
}

fn passage(row: &Row) -> rusqlite::Result<PassageRow> {
    Ok(PassageRow {
        message: row.get(0)?,
        attachment: row.get(1)?,
        start: row.get(2)?,
        end: row.get(3)?,
        first_line: row.get(4)?,
        last_line: row.get(5)?,
        page: row.get(6)?,
    })
}

/// Inserts the files and passages of a message, in order.
pub(crate) fn insert(db: &Connection, message: &str, attached: &MessageAttachments) -> Result<()> {
    let file = "INSERT INTO attachment (id, message, n, document, name, kind, bytes, findings, is_whole, tokens, is_about,
                    from_project)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
    for (n, row) in attached.files.iter().enumerate() {
        let AttachmentRow { id, document, name, kind, bytes, findings, .. } = row;
        let AttachmentRow { is_whole, tokens, is_about, from_project, .. } = row;
        let n = n as i64;
        db.prepare_cached(file)?.execute(params![
            id,
            message,
            n,
            document,
            name,
            kind,
            bytes,
            findings,
            is_whole,
            tokens,
            is_about,
            from_project
        ])?;
    }
    let passage = "INSERT INTO passage (message, n, attachment, start, end, first_line, last_line, page)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    for (n, row) in attached.passages.iter().enumerate() {
        let PassageRow { attachment, start, end, first_line, last_line, page, .. } = row;
        db.prepare_cached(passage)?
            .execute(params![message, n as i64, attachment, start, end, first_line, last_line, page])?;
    }
    Ok(())
}

pub(crate) fn get(db: &Connection, id: &str) -> Result<AttachmentRow> {
    let sql = format!("SELECT {COLUMNS} FROM attachment WHERE id = ?1");
    let row = db.prepare_cached(&sql)?.query_row([id], from_row).optional()?;
    row.ok_or_else(|| SessionError::missing("attachment", id))
}

/// Attachments of all messages of a conversation, by message.
pub(crate) fn of_conversation(
    db: &Connection,
    conversation: &str,
) -> Result<HashMap<String, MessageAttachments>> {
    let mut attached = HashMap::<String, MessageAttachments>::new();
    let sql = format!(
        "SELECT {COLUMNS} FROM attachment JOIN message ON message.id = attachment.message
         WHERE message.conversation = ?1 ORDER BY attachment.message, n"
    );
    let mut statement = db.prepare_cached(&sql)?;
    for row in super::readable_rows(statement.query_map([conversation], from_row)?)? {
        attached.entry(row.message.clone()).or_default().files.push(row);
    }
    let sql = format!(
        "SELECT {PASSAGE} FROM passage JOIN message ON message.id = passage.message
         WHERE message.conversation = ?1 ORDER BY passage.message, n"
    );
    let mut statement = db.prepare_cached(&sql)?;
    for row in super::readable_rows(statement.query_map([conversation], passage)?)? {
        attached.entry(row.message.clone()).or_default().passages.push(row);
    }
    Ok(attached)
}

pub(crate) fn any(db: &Connection, conversation: &str) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM attachment JOIN message ON message.id = attachment.message
               WHERE message.conversation = ?1)";
    Ok(db.prepare_cached(sql)?.query_row([conversation], |row| row.get(0))?)
}

/// Removes the attachments of a message.
pub(crate) fn remove(db: &Connection, message: &str) -> Result<()> {
    db.execute("DELETE FROM passage WHERE message = ?1", [message])?;
    db.execute("DELETE FROM attachment WHERE message = ?1", [message])?;
    Ok(())
}
