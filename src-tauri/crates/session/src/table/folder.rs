//! Folders that conversations lie in.

use rusqlite::{Connection, Row, params};

use crate::error::{Result, SessionError};

pub const CREATE: &str = "
CREATE TABLE folder (
    id         TEXT PRIMARY KEY NOT NULL,
    name       TEXT NOT NULL,
    created_ms INTEGER NOT NULL
) STRICT;
";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderRow {
    pub id: String,
    pub name: String,
    pub created_ms: i64,
}

fn from_row(row: &Row) -> rusqlite::Result<FolderRow> {
    Ok(FolderRow { id: row.get(0)?, name: row.get(1)?, created_ms: row.get(2)? })
}

/// One of the same id gets the new name.
pub(crate) fn put(db: &Connection, row: &FolderRow) -> Result<()> {
    let sql = "INSERT INTO folder (id, name, created_ms) VALUES (?1, ?2, ?3)
               ON CONFLICT (id) DO UPDATE SET name = excluded.name";
    db.execute(sql, params![row.id, row.name, row.created_ms])?;
    Ok(())
}

/// By name.
pub(crate) fn list(db: &Connection) -> Result<Vec<FolderRow>> {
    let sql = "SELECT id, name, created_ms FROM folder ORDER BY name COLLATE NOCASE, id";
    let mut statement = db.prepare_cached(sql)?;
    let rows = statement.query_map([], from_row)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(crate) fn get(db: &Connection, id: &str) -> Result<FolderRow> {
    let row = list(db)?.into_iter().find(|row| row.id == id);
    row.ok_or_else(|| SessionError::missing("folder", id))
}

/// Its conversations stay, outside of any.
pub(crate) fn remove(db: &Connection, id: &str) -> Result<()> {
    db.execute("DELETE FROM folder WHERE id = ?1", [id])?;
    Ok(())
}
