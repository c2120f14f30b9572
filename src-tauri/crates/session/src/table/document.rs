//! Texts of attached files, each once: by the SHA-256 of the text, however many messages have it.
//!
//! A text lives as long as an attachment has it; `sweep` takes the others away.

use rusqlite::{Connection, OptionalExtension};

use crate::error::Result;

pub const CREATE: &str = "
CREATE TABLE document (
    sha256 TEXT PRIMARY KEY NOT NULL,
    text   TEXT NOT NULL
) STRICT;
";

/// No error if it is there.
pub(crate) fn put(db: &Connection, sha256: &str, text: &str) -> Result<()> {
    let sql = "INSERT OR IGNORE INTO document (sha256, text) VALUES (?1, ?2)";
    db.prepare_cached(sql)?.execute([sha256, text])?;
    Ok(())
}

pub(crate) fn text(db: &Connection, sha256: &str) -> Result<Option<String>> {
    let sql = "SELECT text FROM document WHERE sha256 = ?1";
    Ok(db.prepare_cached(sql)?.query_row([sha256], |row| row.get(0)).optional()?)
}

/// Those that no message has any more go.
pub(crate) fn sweep(db: &Connection) -> Result<()> {
    db.execute("DELETE FROM document WHERE sha256 NOT IN (SELECT document FROM attachment)", [])?;
    Ok(())
}
