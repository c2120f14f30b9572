//! Entries of the model library: where model files are, what they contain, and which were removed.

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

/// Adds models found by scanning, their sizes, and removed models.
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

/// Adds capabilities beyond chat; the column is called `skills`.
pub const ADD_SKILLS: &str = "
ALTER TABLE model ADD COLUMN skills TEXT;
";

/// An entry of the model library.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelRow {
    pub id: String,
    pub name: String,
    pub path: String,
    /// Bytes of the weights when the entry was made.
    pub bytes: i64,
    pub architecture: String,
    pub parameters: i64,
    pub dtype: String,
    pub context_length: u32,
    pub added_ms: i64,
    /// Source, as named by the layer above; `file`: a file that the user chose.
    pub source: String,
    /// Folder in which it was found; None if the user chose the file itself.
    pub root: Option<String>,
    /// Number of its files.
    pub files: u32,
    /// Bytes of all its files.
    pub disk_bytes: i64,
    /// Fingerprint of the contents; empty if not computed.
    pub fingerprint: String,
    /// File system stamp: while it is unchanged, the contents need not be read again.
    pub stamp: String,
    /// Memory estimate: JSON of the layer above.
    pub sizes: Option<String>,
    /// Capabilities: JSON of the layer above. None if not examined.
    pub skills: Option<String>,
    /// Why it cannot be used: JSON of the layer above.
    pub problem: Option<String>,
    /// When it was moved to the trash.
    pub removed_ms: Option<i64>,
    /// Path of its files before they were moved to the trash.
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

/// Inserts or replaces an entry.
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

/// Lists entries in the order in which they were added, removed ones included.
pub(crate) fn list(db: &Connection) -> Result<Vec<ModelRow>> {
    let mut statement = db.prepare_cached(&format!("SELECT {COLUMNS} FROM model ORDER BY added_ms, id"))?;
    let rows = statement.query_map([], from_row)?;
    super::readable_rows(rows)
}

/// Removes an entry; false if there was none.
pub(crate) fn remove(db: &Connection, id: &str) -> Result<bool> {
    Ok(db.execute("DELETE FROM model WHERE id = ?1", [id])? > 0)
}
