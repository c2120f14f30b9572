//! Compaction strategy of conversations that override the setting. On disk the table is called `compression`.

use rusqlite::{Connection, OptionalExtension};

use crate::error::Result;

pub const CREATE: &str = "
CREATE TABLE compression (
    conversation TEXT PRIMARY KEY NOT NULL REFERENCES conversation(id) ON DELETE CASCADE,
    strategy     TEXT NOT NULL
) STRICT, WITHOUT ROWID;
";

pub(crate) fn get(db: &Connection, conversation: &str) -> Result<Option<String>> {
    let mut statement = db.prepare_cached("SELECT strategy FROM compression WHERE conversation = ?1")?;
    Ok(statement.query_row([conversation], |row| row.get(0)).optional()?)
}

pub(crate) fn put(db: &Connection, conversation: &str, strategy: &str) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO compression (conversation, strategy) VALUES (?1, ?2)";
    db.execute(sql, [conversation, strategy])?;
    Ok(())
}

pub(crate) fn remove(db: &Connection, conversation: &str) -> Result<()> {
    db.execute("DELETE FROM compression WHERE conversation = ?1", [conversation])?;
    Ok(())
}
