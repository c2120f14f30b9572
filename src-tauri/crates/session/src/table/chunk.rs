//! Pieces of the answer that is being written: appended, never rewritten, folded into the message at
//! its end.

use rusqlite::{Connection, params};

use crate::error::Result;

pub const CREATE: &str = "
CREATE TABLE chunk (
    message   TEXT NOT NULL REFERENCES message(id) ON DELETE CASCADE,
    n         INTEGER NOT NULL,
    text      TEXT NOT NULL,
    reasoning TEXT NOT NULL,
    PRIMARY KEY (message, n)
) STRICT, WITHOUT ROWID;
";

pub(crate) fn append(db: &Connection, message: &str, text: &str, reasoning: &str) -> Result<()> {
    let sql = "INSERT INTO chunk (message, n, text, reasoning)
               VALUES (?1, (SELECT COALESCE(MAX(n), 0) + 1 FROM chunk WHERE message = ?1), ?2, ?3)";
    db.prepare_cached(sql)?.execute(params![message, text, reasoning])?;
    Ok(())
}

/// Text and reasoning so far.
pub(crate) fn fold(db: &Connection, message: &str) -> Result<(String, String)> {
    let mut statement =
        db.prepare_cached("SELECT text, reasoning FROM chunk WHERE message = ?1 ORDER BY n")?;
    let mut rows = statement.query([message])?;
    let (mut text, mut reasoning) = (String::new(), String::new());
    while let Some(row) = rows.next()? {
        text.push_str(row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?);
        reasoning.push_str(row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?);
    }
    Ok((text, reasoning))
}

pub(crate) fn clear(db: &Connection, message: &str) -> Result<()> {
    db.execute("DELETE FROM chunk WHERE message = ?1", [message])?;
    Ok(())
}
