//! Compactions: the point up to which the model no longer sees a conversation, and the summary shown instead.
//!
//! A row is deleted with the last message it covers, and so with any earlier one, since those are its ancestors. On disk
//! the table is called `fold`.

use rusqlite::{Connection, Row, params};

use crate::error::Result;

pub const CREATE: &str = "
CREATE TABLE fold (
    position      INTEGER PRIMARY KEY AUTOINCREMENT,
    id            TEXT NOT NULL UNIQUE,
    first         TEXT NOT NULL REFERENCES message(id) ON DELETE CASCADE,
    message       TEXT NOT NULL REFERENCES message(id) ON DELETE CASCADE,
    strategy      TEXT NOT NULL,
    level         INTEGER NOT NULL,
    summary       TEXT,
    is_used       INTEGER NOT NULL,
    tokens_before INTEGER NOT NULL,
    tokens_after  INTEGER NOT NULL,
    created_ms    INTEGER NOT NULL
) STRICT;
CREATE INDEX fold_message ON fold(message);
CREATE INDEX fold_first ON fold(first);
";

/// A compaction, or a summary made ahead of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactionRow {
    pub id: String,
    /// The first message that it covers.
    pub first: String,
    /// The last message that it covers.
    pub message: String,
    pub strategy: String,
    /// 0: covers messages; otherwise summaries of the level below.
    pub level: u32,
    /// None: the covered messages are left out.
    pub summary: Option<String>,
    /// Prompts begin after it. False for a summary that was made ahead of need.
    pub is_used: bool,
    /// Prompt length without the compaction, when it was first used.
    pub tokens_before: u32,
    pub tokens_after: u32,
    pub created_ms: i64,
}

const COLUMNS: &str =
    "id, first, message, strategy, level, summary, is_used, tokens_before, tokens_after, created_ms";

fn from_row(row: &Row) -> rusqlite::Result<CompactionRow> {
    Ok(CompactionRow {
        id: row.get(0)?,
        first: row.get(1)?,
        message: row.get(2)?,
        strategy: row.get(3)?,
        level: row.get(4)?,
        summary: row.get(5)?,
        is_used: row.get(6)?,
        tokens_before: row.get(7)?,
        tokens_after: row.get(8)?,
        created_ms: row.get(9)?,
    })
}

pub(crate) fn insert(db: &Connection, row: &CompactionRow) -> Result<()> {
    let sql = format!("INSERT INTO fold ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)");
    db.prepare_cached(&sql)?.execute(params![
        row.id,
        row.first,
        row.message,
        row.strategy,
        row.level,
        row.summary,
        row.is_used,
        row.tokens_before,
        row.tokens_after,
        row.created_ms
    ])?;
    Ok(())
}

/// Compactions of all branches, in the order in which they were made. Unreadable rows are skipped.
pub(crate) fn of_conversation(db: &Connection, conversation: &str) -> Result<Vec<CompactionRow>> {
    let names: Vec<_> = COLUMNS.split(", ").map(|name| format!("fold.{name}")).collect();
    let sql = format!(
        "SELECT {} FROM fold JOIN message ON message.id = fold.message WHERE message.conversation = ?1
         ORDER BY fold.position",
        names.join(", ")
    );
    let mut statement = db.prepare_cached(&sql)?;
    let rows = statement.query_map([conversation], from_row)?;
    Ok(rows.filter_map(rusqlite::Result::ok).collect())
}

/// Removes compactions that cover a message or anything after it, since later summaries contain earlier ones.
pub(crate) fn remove_from(db: &Connection, message: &str) -> Result<()> {
    let sql = "WITH RECURSIVE down(id) AS (
                   SELECT ?1 UNION SELECT message.id FROM message JOIN down ON message.parent = down.id)
               DELETE FROM fold WHERE message IN (SELECT id FROM down)";
    db.execute(sql, [message])?;
    Ok(())
}

pub(crate) fn remove(db: &Connection, id: &str) -> Result<()> {
    db.execute("DELETE FROM fold WHERE id = ?1", [id])?;
    Ok(())
}
