//! Projects: folders with instructions, a preset, a model and files, and the search indexes of their files.
//!
//! A project is deleted with its folder. An index is a cache: it may be lost, and is deleted when the files change.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::{Result, SessionError};

pub const CREATE: &str = "
CREATE TABLE IF NOT EXISTS project (
    folder TEXT PRIMARY KEY NOT NULL REFERENCES folder(id) ON DELETE CASCADE,
    body   TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS project_file (
    id         TEXT PRIMARY KEY NOT NULL,
    folder     TEXT NOT NULL REFERENCES folder(id) ON DELETE CASCADE,
    document   TEXT NOT NULL REFERENCES document(sha256),
    name       TEXT NOT NULL,
    kind       TEXT NOT NULL,
    bytes      INTEGER NOT NULL,
    findings   TEXT,
    created_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS project_file_folder ON project_file(folder);
CREATE INDEX IF NOT EXISTS project_file_document ON project_file(document);
CREATE TABLE IF NOT EXISTS search_index (
    folder TEXT NOT NULL REFERENCES folder(id) ON DELETE CASCADE,
    key    TEXT NOT NULL,
    body   BLOB NOT NULL,
    PRIMARY KEY (folder, key)
) STRICT, WITHOUT ROWID;
";

/// Stands between the id of a file and the number of its page in the id of a page. No other id has it.
const PAGE_MARK: char = '/';

/// A file of a project, or a scanned page of one, which stands behind its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectFileRow {
    pub id: String,
    pub folder: String,
    /// SHA-256 of its text, the key of the document table.
    pub document: String,
    pub name: String,
    /// Kind of file, as named by the layer above.
    pub kind: String,
    /// Bytes of the original file.
    pub bytes: i64,
    /// Hidden or instructing text found in it: JSON of the layer above.
    pub findings: Option<String>,
    pub created_ms: i64,
}

impl ProjectFileRow {
    /// The id of the `number`th scanned page of a file. Sorts behind the file's.
    pub fn page_id(file: &str, number: u32) -> String {
        format!("{file}{PAGE_MARK}{number:05}")
    }

    /// Whether it is a page of another file.
    pub fn is_page(&self) -> bool {
        self.id.contains(PAGE_MARK)
    }

    /// Whether it is a page of that file.
    pub fn is_page_of(&self, file: &str) -> bool {
        self.id.strip_prefix(file).is_some_and(|rest| rest.starts_with(PAGE_MARK))
    }
}

const COLUMNS: &str = "id, folder, document, name, kind, bytes, findings, created_ms";

fn from_row(row: &Row) -> rusqlite::Result<ProjectFileRow> {
    Ok(ProjectFileRow {
        id: row.get(0)?,
        folder: row.get(1)?,
        document: row.get(2)?,
        // A damaged column loses its own value only.
        name: row.get(3).unwrap_or_else(|_| "file".into()),
        kind: row.get(4).unwrap_or_default(),
        bytes: row.get(5).unwrap_or_default(),
        findings: row.get(6).unwrap_or_default(),
        created_ms: row.get(7).unwrap_or_default(),
    })
}

/// Stores a project, or replaces what it says.
pub(crate) fn put(db: &Connection, folder: &str, body: &str) -> Result<()> {
    db.execute("INSERT OR REPLACE INTO project (folder, body) VALUES (?1, ?2)", [folder, body])?;
    Ok(())
}

/// Folders that are projects, with what they say.
pub(crate) fn list(db: &Connection) -> Result<Vec<(String, String)>> {
    let mut statement = db.prepare_cached("SELECT folder, body FROM project")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    super::readable_rows(rows)
}

/// Deletes a project with its files. Its folder stays.
pub(crate) fn remove(db: &Connection, folder: &str) -> Result<()> {
    db.execute("DELETE FROM project WHERE folder = ?1", [folder])?;
    db.execute("DELETE FROM project_file WHERE folder = ?1", [folder])?;
    clear_indexes(db, folder)
}

/// Stores a file or a page. Clears the project's indexes.
pub(crate) fn insert_file(db: &Connection, row: &ProjectFileRow) -> Result<()> {
    let sql = format!("INSERT INTO project_file ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)");
    let ProjectFileRow { id, folder, document, name, kind, bytes, findings, created_ms } = row;
    db.execute(&sql, params![id, folder, document, name, kind, bytes, findings, created_ms])?;
    clear_indexes(db, folder)
}

/// Files of a project, oldest first, each before its pages.
pub(crate) fn files(db: &Connection, folder: &str) -> Result<Vec<ProjectFileRow>> {
    let sql = format!("SELECT {COLUMNS} FROM project_file WHERE folder = ?1 ORDER BY created_ms, id");
    let mut statement = db.prepare_cached(&sql)?;
    let rows = statement.query_map([folder], from_row)?;
    super::readable_rows(rows)
}

pub(crate) fn file(db: &Connection, id: &str) -> Result<ProjectFileRow> {
    let sql = format!("SELECT {COLUMNS} FROM project_file WHERE id = ?1");
    let row = db.prepare_cached(&sql)?.query_row([id], from_row).optional()?;
    row.ok_or_else(|| SessionError::missing("file", id))
}

/// Removes a file with its pages.
pub(crate) fn remove_file(db: &Connection, row: &ProjectFileRow) -> Result<()> {
    let prefix = format!("{}{PAGE_MARK}", row.id);
    let sql = "DELETE FROM project_file WHERE id = ?1 OR substr(id, 1, length(?2)) = ?2";
    db.execute(sql, [&row.id, &prefix])?;
    clear_indexes(db, &row.folder)
}

pub(crate) fn index(db: &Connection, folder: &str, key: &str) -> Result<Option<Vec<u8>>> {
    let sql = "SELECT body FROM search_index WHERE folder = ?1 AND key = ?2";
    Ok(db.prepare_cached(sql)?.query_row([folder, key], |row| row.get(0)).optional()?)
}

pub(crate) fn put_index(db: &Connection, folder: &str, key: &str, body: &[u8]) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO search_index (folder, key, body) VALUES (?1, ?2, ?3)";
    db.execute(sql, params![folder, key, body])?;
    Ok(())
}

fn clear_indexes(db: &Connection, folder: &str) -> Result<()> {
    db.execute("DELETE FROM search_index WHERE folder = ?1", [folder])?;
    Ok(())
}
