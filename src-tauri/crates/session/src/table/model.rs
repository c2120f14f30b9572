//! The library's entries: where model files are, what they are, and which of them were removed.

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

/// Files that were found beside those that the user named, what they take, and those that were removed.
pub const ADD_LIBRARY: &str = "
ALTER TABLE model ADD COLUMN source TEXT NOT NULL DEFAULT 'file';
ALTER TABLE model ADD COLUMN root TEXT;
ALTER TABLE model ADD COLUMN files INTEGER NOT NULL DEFAULT 1;
ALTER TABLE model ADD COLUMN disk_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE model ADD COLUMN fingerprint TEXT NOT NULL DEFAULT '';
ALTER TABLE model ADD COLUMN stamp TEXT NOT NULL DEFAULT '';
ALTER TABLE model ADD COLUMN sizes TEXT;
ALTER TABLE model ADD COLUMN problem TEXT;
ALTER TABLE model ADD COLUMN removed_ms INTEGER;
ALTER TABLE model ADD COLUMN was_at TEXT;
";

/// What a model can do beside answering.
pub const ADD_SKILLS: &str = "
ALTER TABLE model ADD COLUMN skills TEXT;
";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelRow {
    pub id: String,
    pub name: String,
    pub path: String,
    /// Of the weights, as they were when the entry was made.
    pub bytes: i64,
    pub architecture: String,
    pub parameters: i64,
    pub dtype: String,
    pub context_length: u32,
    pub added_ms: i64,
    /// The layer above names them; `file`: where the user has it.
    pub source: String,
    /// The folder in which it was found. None: the user named the file itself.
    pub root: Option<String>,
    /// Files that it consists of, and their bytes.
    pub files: u32,
    pub disk_bytes: i64,
    /// Of the contents; empty: not looked at.
    pub fingerprint: String,
    /// Of the file as the file system knows it: while it stays, the contents need not be looked at again.
    pub stamp: String,
    /// JSON of the layer above: what it takes in memory.
    pub sizes: Option<String>,
    /// JSON of the layer above: what it can do. None: nobody has looked.
    pub skills: Option<String>,
    /// JSON of the layer above: why it can't be used.
    pub problem: Option<String>,
    /// In the trash since.
    pub removed_ms: Option<i64>,
    /// Where its files lay before, if they were moved into the trash.
    pub was_at: Option<String>,
}

const COLUMNS: &str = "id, name, path, bytes, architecture, parameters, dtype, context_length, added_ms, source, root, \
     files, disk_bytes, fingerprint, stamp, sizes, problem, removed_ms, was_at, skills";

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
        source: row.get(9)?,
        root: row.get(10)?,
        files: row.get(11)?,
        disk_bytes: row.get(12)?,
        fingerprint: row.get(13)?,
        stamp: row.get(14)?,
        sizes: row.get(15)?,
        problem: row.get(16)?,
        removed_ms: row.get(17)?,
        was_at: row.get(18)?,
        skills: row.get(19)?,
    })
}

/// An entry of the same id is replaced.
pub(crate) fn put(db: &Connection, row: &ModelRow) -> Result<()> {
    let sql = format!(
        "INSERT OR REPLACE INTO model ({COLUMNS})
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)"
    );
    db.execute(
        &sql,
        params![
            row.id,
            row.name,
            row.path,
            row.bytes,
            row.architecture,
            row.parameters,
            row.dtype,
            row.context_length,
            row.added_ms,
            row.source,
            row.root,
            row.files,
            row.disk_bytes,
            row.fingerprint,
            row.stamp,
            row.sizes,
            row.problem,
            row.removed_ms,
            row.was_at,
            row.skills,
        ],
    )?;
    Ok(())
}

/// In the order in which they were added, removed ones among them.
pub(crate) fn list(db: &Connection) -> Result<Vec<ModelRow>> {
    let mut statement = db.prepare_cached(&format!("SELECT {COLUMNS} FROM model ORDER BY added_ms, id"))?;
    let rows = statement.query_map([], from_row)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Whether there was one.
pub(crate) fn remove(db: &Connection, id: &str) -> Result<bool> {
    Ok(db.execute("DELETE FROM model WHERE id = ?1", [id])? > 0)
}
