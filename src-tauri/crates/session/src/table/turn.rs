//! Turns in progress, each with the process that writes its answer. A row lives as long as its turn.

use rusqlite::{Connection, OptionalExtension, params};

use crate::error::Result;

pub const CREATE: &str = "
CREATE TABLE turn (
    id           TEXT PRIMARY KEY NOT NULL,
    conversation TEXT NOT NULL REFERENCES conversation(id) ON DELETE CASCADE,
    message      TEXT NOT NULL UNIQUE REFERENCES message(id) ON DELETE CASCADE,
    owner        TEXT NOT NULL
) STRICT, WITHOUT ROWID;
";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TurnRow {
    pub id: String,
    pub conversation: String,
    /// The answer that is being written.
    pub message: String,
    /// Id of the writing process (see owner.rs).
    pub owner: String,
}

pub(crate) fn insert(db: &Connection, row: &TurnRow) -> Result<()> {
    db.execute(
        "INSERT INTO turn (id, conversation, message, owner) VALUES (?1, ?2, ?3, ?4)",
        params![row.id, row.conversation, row.message, row.owner],
    )?;
    Ok(())
}

pub(crate) fn of_conversation(db: &Connection, conversation: &str) -> Result<Option<TurnRow>> {
    let sql = "SELECT id, conversation, message, owner FROM turn WHERE conversation = ?1";
    Ok(db.prepare_cached(sql)?.query_row([conversation], from_row).optional()?)
}

pub(crate) fn all(db: &Connection) -> Result<Vec<TurnRow>> {
    let mut statement = db.prepare_cached("SELECT id, conversation, message, owner FROM turn")?;
    let rows = statement.query_map([], from_row)?;
    super::readable_rows(rows)
}

pub(crate) fn remove_of_message(db: &Connection, message: &str) -> Result<()> {
    db.execute("DELETE FROM turn WHERE message = ?1", [message])?;
    Ok(())
}

fn from_row(row: &rusqlite::Row) -> rusqlite::Result<TurnRow> {
    Ok(TurnRow { id: row.get(0)?, conversation: row.get(1)?, message: row.get(2)?, owner: row.get(3)? })
}
