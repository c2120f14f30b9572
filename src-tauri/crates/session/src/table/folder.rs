//! Folders that conversations, and other folders, lie in.

use rusqlite::{Connection, Row, params};

use crate::error::{Result, SessionError};

pub const CREATE: &str = "
CREATE TABLE folder (
    id         TEXT PRIMARY KEY NOT NULL,
    name       TEXT NOT NULL,
    created_ms INTEGER NOT NULL
) STRICT;
";

/// Folders in folders. All that there were before lie in none.
pub const ADD_PARENT: &str = "
ALTER TABLE folder ADD COLUMN parent TEXT REFERENCES folder(id) ON DELETE SET NULL;
CREATE INDEX folder_parent ON folder(parent);
";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderRow {
    pub id: String,
    pub name: String,
    pub created_ms: i64,
    /// The folder it lies in.
    pub parent: Option<String>,
}

fn from_row(row: &Row) -> rusqlite::Result<FolderRow> {
    Ok(FolderRow { id: row.get(0)?, name: row.get(1)?, created_ms: row.get(2)?, parent: row.get(3)? })
}

/// One of the same id gets the new name, and lies where the row says.
pub(crate) fn put(db: &Connection, row: &FolderRow) -> Result<()> {
    let sql = "INSERT INTO folder (id, name, created_ms, parent) VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT (id) DO UPDATE SET name = excluded.name, parent = excluded.parent";
    db.execute(sql, params![row.id, row.name, row.created_ms, row.parent])?;
    Ok(())
}

/// By name.
pub(crate) fn list(db: &Connection) -> Result<Vec<FolderRow>> {
    let sql = "SELECT id, name, created_ms, parent FROM folder ORDER BY name COLLATE NOCASE, id";
    let mut statement = db.prepare_cached(sql)?;
    let rows = statement.query_map([], from_row)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(crate) fn get(db: &Connection, id: &str) -> Result<FolderRow> {
    let row = list(db)?.into_iter().find(|row| row.id == id);
    row.ok_or_else(|| SessionError::missing("folder", id))
}

/// What lies in it, folders and conversations, lies where it lay.
pub(crate) fn remove(db: &Connection, row: &FolderRow) -> Result<()> {
    let moved = params![row.id, row.parent];
    db.execute("UPDATE folder SET parent = ?2 WHERE parent = ?1", moved)?;
    db.execute("UPDATE conversation SET folder = ?2, revision = revision + 1 WHERE folder = ?1", moved)?;
    db.execute("DELETE FROM folder WHERE id = ?1", [&row.id])?;
    Ok(())
}
