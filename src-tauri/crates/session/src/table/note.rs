//! Notes that the user keeps for all conversations.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::{Result, SessionError};

pub const CREATE: &str = "
CREATE TABLE IF NOT EXISTS note (
    id         TEXT PRIMARY KEY NOT NULL,
    text       TEXT NOT NULL,
    source     TEXT,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL
) STRICT;
";

/// A note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteRow {
    pub id: String,
    pub text: String,
    /// The conversation that the user took it from. It may be gone.
    pub source: Option<String>,
    pub created_ms: i64,
    pub updated_ms: i64,
}

const COLUMNS: &str = "id, text, source, created_ms, updated_ms";

fn from_row(row: &Row) -> rusqlite::Result<NoteRow> {
    Ok(NoteRow {
        id: row.get(0)?,
        text: row.get(1)?,
        source: row.get(2).unwrap_or_default(),
        created_ms: row.get(3).unwrap_or_default(),
        updated_ms: row.get(4).unwrap_or_default(),
    })
}

/// Inserts a note, or replaces the one with its id.
pub(crate) fn put(db: &Connection, row: &NoteRow) -> Result<()> {
    let sql = format!(
        "INSERT INTO note ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (id) DO UPDATE SET
         text = excluded.text, source = excluded.source, created_ms = excluded.created_ms,
         updated_ms = excluded.updated_ms"
    );
    db.execute(&sql, params![row.id, row.text, row.source, row.created_ms, row.updated_ms])?;
    Ok(())
}

/// Lists notes, oldest first: a new one leaves the prompt before it as it was.
pub(crate) fn list(db: &Connection) -> Result<Vec<NoteRow>> {
    let sql = format!("SELECT {COLUMNS} FROM note ORDER BY created_ms, rowid");
    let mut statement = db.prepare_cached(&sql)?;
    let rows = statement.query_map([], from_row)?;
    super::readable_rows(rows)
}

pub(crate) fn get(db: &Connection, id: &str) -> Result<NoteRow> {
    let sql = format!("SELECT {COLUMNS} FROM note WHERE id = ?1");
    let row = db.prepare_cached(&sql)?.query_row([id], from_row).optional()?;
    row.ok_or_else(|| SessionError::missing("note", id))
}

pub(crate) fn remove(db: &Connection, id: &str) -> Result<()> {
    db.execute("DELETE FROM note WHERE id = ?1", [id])?;
    Ok(())
}
