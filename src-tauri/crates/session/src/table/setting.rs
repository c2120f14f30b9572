//! Settings that differ from their default, as JSON.

use rusqlite::{Connection, OptionalExtension};

use crate::error::Result;
use crate::table::lossy_text;

pub const CREATE: &str = "
CREATE TABLE setting (
    key   TEXT PRIMARY KEY NOT NULL,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
";

pub(crate) fn get(db: &Connection, key: &str) -> Result<Option<String>> {
    let mut statement = db.prepare_cached("SELECT value FROM setting WHERE key = ?1")?;
    Ok(statement.query_row([key], |row| row.get(0)).optional()?)
}

/// An internal value. Damage that left it without valid text changes it, and fails nothing.
pub(crate) fn internal(db: &Connection, key: &str) -> Result<Option<String>> {
    let mut statement = db.prepare_cached("SELECT value FROM setting WHERE key = ?1")?;
    Ok(statement.query_row([key], |row| lossy_text(row, 0)).optional()?)
}

/// Keys and values, without the keys that are internal to this database.
pub(crate) fn all(db: &Connection) -> Result<Vec<(String, String)>> {
    let mut statement = db.prepare("SELECT key, value FROM setting WHERE key NOT LIKE 'internal.%'")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    super::readable_rows(rows)
}

pub(crate) fn put(db: &Connection, key: &str, value: &str) -> Result<()> {
    db.execute("INSERT OR REPLACE INTO setting (key, value) VALUES (?1, ?2)", [key, value])?;
    Ok(())
}

/// Keeps a value under another key, byte by byte.
pub(crate) fn rename(db: &Connection, key: &str, new: &str) -> Result<()> {
    db.execute("UPDATE OR REPLACE setting SET key = ?2 WHERE key = ?1", [key, new])?;
    Ok(())
}

pub(crate) fn remove(db: &Connection, key: &str) -> Result<()> {
    db.execute("DELETE FROM setting WHERE key = ?1", [key])?;
    Ok(())
}
