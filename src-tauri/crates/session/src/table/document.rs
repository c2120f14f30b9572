//! Texts of attached files, stored once each under the SHA-256 of the text.
//!
//! A text lives as long as an attachment or a project's file refers to it; `sweep` removes the others.

use rusqlite::{Connection, OptionalExtension};

use crate::error::Result;

pub const CREATE: &str = "
CREATE TABLE document (
    sha256 TEXT PRIMARY KEY NOT NULL,
    text   TEXT NOT NULL
) STRICT;
";

/// Stores a text. No error if it exists.
pub(crate) fn put(db: &Connection, sha256: &str, text: &str) -> Result<()> {
    let sql = "INSERT OR IGNORE INTO document (sha256, text) VALUES (?1, ?2)";
    db.prepare_cached(sql)?.execute([sha256, text])?;
    Ok(())
}

pub(crate) fn text(db: &Connection, sha256: &str) -> Result<Option<String>> {
    let sql = "SELECT text FROM document WHERE sha256 = ?1";
    Ok(db.prepare_cached(sql)?.query_row([sha256], |row| row.get(0)).optional()?)
}

/// Texts of the documents of all attachments and project files of a kind, once each.
pub(crate) fn of_kind(db: &Connection, kind: &str) -> Result<Vec<String>> {
    let sql = "SELECT text FROM document WHERE sha256 IN (SELECT document FROM attachment WHERE kind = ?1
                   UNION SELECT document FROM project_file WHERE kind = ?1)";
    let mut statement = db.prepare_cached(sql)?;
    let texts = statement.query_map([kind], |row| row.get(0))?;
    Ok(texts.collect::<rusqlite::Result<_>>()?)
}

/// Removes texts that neither an attachment nor a project's file refers to.
pub(crate) fn sweep(db: &Connection) -> Result<()> {
    let sql = "DELETE FROM document WHERE sha256 NOT IN
                   (SELECT document FROM attachment UNION SELECT document FROM project_file)";
    db.execute(sql, [])?;
    Ok(())
}
