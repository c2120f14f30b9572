//! Conversations. `leaf` is the last message of the active branch; `activity` orders them, so that a
//! clock that jumps can't.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::{Result, SessionError};

pub const CREATE: &str = "
CREATE TABLE conversation (
    id         TEXT PRIMARY KEY NOT NULL,
    title      TEXT NOT NULL,
    model      TEXT NOT NULL,
    leaf       TEXT,
    activity   INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    deleted_ms INTEGER
) STRICT;
CREATE INDEX conversation_activity ON conversation(activity);
";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationRow {
    pub id: String,
    pub title: String,
    /// Library id of the model that answers.
    pub model: String,
    pub leaf: Option<String>,
    pub created_ms: i64,
    pub updated_ms: i64,
    /// In the trash since then.
    pub deleted_ms: Option<i64>,
}

const COLUMNS: &str = "id, title, model, leaf, created_ms, updated_ms, deleted_ms";

fn from_row(row: &Row) -> rusqlite::Result<ConversationRow> {
    Ok(ConversationRow {
        id: row.get(0)?,
        title: row.get(1)?,
        model: row.get(2)?,
        leaf: row.get(3)?,
        created_ms: row.get(4)?,
        updated_ms: row.get(5)?,
        deleted_ms: row.get(6)?,
    })
}

pub(crate) fn insert(db: &Connection, row: &ConversationRow) -> Result<()> {
    db.execute(
        "INSERT INTO conversation (id, title, model, leaf, activity, created_ms, updated_ms)
         VALUES (?1, ?2, ?3, ?4, (SELECT COALESCE(MAX(activity), 0) + 1 FROM conversation), ?5, ?6)",
        params![row.id, row.title, row.model, row.leaf, row.created_ms, row.updated_ms],
    )?;
    Ok(())
}

/// Those not in the trash, newest first. A row that can't be read is left out, not the whole list.
pub(crate) fn list(db: &Connection) -> Result<Vec<ConversationRow>> {
    let sql = format!("SELECT {COLUMNS} FROM conversation WHERE deleted_ms IS NULL ORDER BY activity DESC");
    let mut statement = db.prepare_cached(&sql)?;
    let rows = statement.query_map([], from_row)?;
    let mut list = Vec::new();
    for row in rows {
        match row {
            Ok(row) => list.push(row),
            Err(error) if error.sqlite_error_code().is_none() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(list)
}

/// In the trash or not.
pub(crate) fn get(db: &Connection, id: &str) -> Result<ConversationRow> {
    let sql = format!("SELECT {COLUMNS} FROM conversation WHERE id = ?1");
    let row = db.prepare_cached(&sql)?.query_row([id], from_row).optional()?;
    row.ok_or_else(|| SessionError::missing("conversation", id))
}

/// Moves it to the top of the list.
pub(crate) fn touch(db: &Connection, id: &str, now_ms: i64) -> Result<()> {
    db.execute(
        "UPDATE conversation SET updated_ms = ?2,
             activity = (SELECT MAX(activity) + 1 FROM conversation) WHERE id = ?1",
        params![id, now_ms],
    )?;
    Ok(())
}

pub(crate) fn set_leaf(db: &Connection, id: &str, leaf: &str) -> Result<()> {
    db.execute("UPDATE conversation SET leaf = ?2 WHERE id = ?1", [id, leaf])?;
    Ok(())
}

pub(crate) fn set_title(db: &Connection, id: &str, title: &str) -> Result<()> {
    db.execute("UPDATE conversation SET title = ?2 WHERE id = ?1", [id, title])?;
    Ok(())
}

pub(crate) fn set_model(db: &Connection, id: &str, model: &str) -> Result<()> {
    db.execute("UPDATE conversation SET model = ?2 WHERE id = ?1", [id, model])?;
    Ok(())
}

pub(crate) fn set_deleted(db: &Connection, id: &str, deleted_ms: Option<i64>) -> Result<()> {
    db.execute("UPDATE conversation SET deleted_ms = ?2 WHERE id = ?1", params![id, deleted_ms])?;
    Ok(())
}

/// Removes for good what lies in the trash since before `before_ms`; messages and logs go with it.
pub(crate) fn purge(db: &Connection, before_ms: i64) -> Result<usize> {
    Ok(db.execute("DELETE FROM conversation WHERE deleted_ms < ?1", [before_ms])?)
}
