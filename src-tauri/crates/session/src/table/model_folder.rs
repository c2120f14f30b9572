//! Folders that are scanned for models.

use rusqlite::Connection;

use crate::error::Result;

pub const CREATE: &str = "
CREATE TABLE model_folder (
    path     TEXT PRIMARY KEY NOT NULL,
    added_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
";

/// Adds a folder. No error if it exists.
pub(crate) fn put(db: &Connection, path: &str, added_ms: i64) -> Result<()> {
    db.execute("INSERT OR IGNORE INTO model_folder (path, added_ms) VALUES (?1, ?2)", (path, added_ms))?;
    Ok(())
}

/// Lists folders in the order in which they were added.
pub(crate) fn list(db: &Connection) -> Result<Vec<String>> {
    let mut statement = db.prepare_cached("SELECT path FROM model_folder ORDER BY added_ms, path")?;
    let rows = statement.query_map([], |row| row.get(0))?;
    super::readable_rows(rows)
}

/// Removes a folder; false if there was none.
pub(crate) fn remove(db: &Connection, path: &str) -> Result<bool> {
    Ok(db.execute("DELETE FROM model_folder WHERE path = ?1", [path])? > 0)
}
