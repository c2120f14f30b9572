//! Folders that contain conversations and other folders.

use rusqlite::{Connection, Row, params};

use crate::error::{Result, SessionError};

pub const CREATE: &str = "
CREATE TABLE folder (
    id         TEXT PRIMARY KEY NOT NULL,
    name       TEXT NOT NULL,
    created_ms INTEGER NOT NULL
) STRICT;
";

/// Adds nesting. Existing folders have no parent.
pub const ADD_PARENT: &str = "
ALTER TABLE folder ADD COLUMN parent TEXT REFERENCES folder(id) ON DELETE SET NULL;
CREATE INDEX folder_parent ON folder(parent);
";

/// A folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderRow {
    pub id: String,
    pub name: String,
    pub created_ms: i64,
    /// Enclosing folder.
    pub parent: Option<String>,
}

fn from_row(row: &Row) -> rusqlite::Result<FolderRow> {
    Ok(FolderRow { id: row.get(0)?, name: row.get(1)?, created_ms: row.get(2)?, parent: row.get(3)? })
}

/// Inserts a folder, or updates the name and parent of an existing one.
pub(crate) fn put(db: &Connection, row: &FolderRow) -> Result<()> {
    let sql = "INSERT INTO folder (id, name, created_ms, parent) VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT (id) DO UPDATE SET name = excluded.name, parent = excluded.parent";
    db.execute(sql, params![row.id, row.name, row.created_ms, row.parent])?;
    Ok(())
}

/// Lists folders by name.
pub(crate) fn list(db: &Connection) -> Result<Vec<FolderRow>> {
    let sql = "SELECT id, name, created_ms, parent FROM folder ORDER BY name COLLATE NOCASE, id";
    let mut statement = db.prepare_cached(sql)?;
    let rows = statement.query_map([], from_row)?;
    super::readable_rows(rows)
}

pub(crate) fn get(db: &Connection, id: &str) -> Result<FolderRow> {
    let row = list(db)?.into_iter().find(|row| row.id == id);
    row.ok_or_else(|| SessionError::missing("folder", id))
}

/// Removes a folder; its contents move to the enclosing folder.
pub(crate) fn remove(db: &Connection, row: &FolderRow) -> Result<()> {
    let moved = params![row.id, row.parent];
    db.execute("UPDATE folder SET parent = ?2 WHERE parent = ?1", moved)?;
    db.execute("UPDATE conversation SET folder = ?2, revision = revision + 1 WHERE folder = ?1", moved)?;
    db.execute("DELETE FROM folder WHERE id = ?1", [&row.id])?;
    Ok(())
}
