//! The library's entries: model files that stay where the user has them.

use rusqlite::{Connection, Row, params};

use crate::error::Result;

pub const CREATE: &str = "
CREATE TABLE model (
    id             TEXT PRIMARY KEY NOT NULL,
    name           TEXT NOT NULL,
    path           TEXT NOT NULL UNIQUE,
    bytes          INTEGER NOT NULL,
    architecture   TEXT NOT NULL,
    parameters     INTEGER NOT NULL,
    dtype          TEXT NOT NULL,
    context_length INTEGER NOT NULL,
    added_ms       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelRow {
    pub id: String,
    pub name: String,
    pub path: String,
    /// As they were when the entry was made.
    pub bytes: i64,
    pub architecture: String,
    pub parameters: i64,
    pub dtype: String,
    pub context_length: u32,
    pub added_ms: i64,
}

fn from_row(row: &Row) -> rusqlite::Result<ModelRow> {
    Ok(ModelRow {
        id: row.get(0)?,
        name: row.get(1)?,
        path: row.get(2)?,
        bytes: row.get(3)?,
        architecture: row.get(4)?,
        parameters: row.get(5)?,
        dtype: row.get(6)?,
        context_length: row.get(7)?,
        added_ms: row.get(8)?,
    })
}

/// An entry of the same id is replaced.
pub(crate) fn put(db: &Connection, row: &ModelRow) -> Result<()> {
    db.execute(
        "INSERT OR REPLACE INTO model
         (id, name, path, bytes, architecture, parameters, dtype, context_length, added_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            row.id,
            row.name,
            row.path,
            row.bytes,
            row.architecture,
            row.parameters,
            row.dtype,
            row.context_length,
            row.added_ms
        ],
    )?;
    Ok(())
}

/// In the order in which they were added.
pub(crate) fn list(db: &Connection) -> Result<Vec<ModelRow>> {
    let sql = "SELECT id, name, path, bytes, architecture, parameters, dtype, context_length, added_ms
               FROM model ORDER BY added_ms, id";
    let mut statement = db.prepare_cached(sql)?;
    let rows = statement.query_map([], from_row)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Whether there was one.
pub(crate) fn remove(db: &Connection, id: &str) -> Result<bool> {
    Ok(db.execute("DELETE FROM model WHERE id = ?1", [id])? > 0)
}
