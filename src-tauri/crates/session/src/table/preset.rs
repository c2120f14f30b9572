//! Named presets of per-chat options.

use rusqlite::{Connection, Row, params};

use crate::error::{Result, SessionError};

pub const CREATE: &str = "
CREATE TABLE preset (
    id         TEXT PRIMARY KEY NOT NULL,
    name       TEXT NOT NULL,
    body       TEXT NOT NULL,
    created_ms INTEGER NOT NULL
) STRICT;
";

/// A preset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresetRow {
    pub id: String,
    pub name: String,
    /// JSON of the layer above.
    pub body: String,
    pub created_ms: i64,
}

fn from_row(row: &Row) -> rusqlite::Result<PresetRow> {
    Ok(PresetRow { id: row.get(0)?, name: row.get(1)?, body: row.get(2)?, created_ms: row.get(3)? })
}

/// Inserts a preset, or updates the name and body of an existing one.
pub(crate) fn put(db: &Connection, row: &PresetRow) -> Result<()> {
    let sql = "INSERT INTO preset (id, name, body, created_ms) VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT (id) DO UPDATE SET name = excluded.name, body = excluded.body";
    db.execute(sql, params![row.id, row.name, row.body, row.created_ms])?;
    Ok(())
}

/// Lists presets by name.
pub(crate) fn list(db: &Connection) -> Result<Vec<PresetRow>> {
    let sql = "SELECT id, name, body, created_ms FROM preset ORDER BY name COLLATE NOCASE, id";
    let mut statement = db.prepare_cached(sql)?;
    let rows = statement.query_map([], from_row)?;
    super::readable_rows(rows)
}

pub(crate) fn get(db: &Connection, id: &str) -> Result<PresetRow> {
    let row = list(db)?.into_iter().find(|row| row.id == id);
    row.ok_or_else(|| SessionError::missing("preset", id))
}

pub(crate) fn remove(db: &Connection, id: &str) -> Result<()> {
    db.execute("DELETE FROM preset WHERE id = ?1", [id])?;
    Ok(())
}
