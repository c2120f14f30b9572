//! Messages: a tree under each conversation. `position` is the order of creation.
//!
//! `stats`, `error` and `tool_calls` are JSON of the layer above. The columns `gone` and `gone_ms` hold
//! [`MessageRow::deleted_by`] and [`MessageRow::deleted_ms`].

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::{Result, SessionError};
use crate::table::role::Role;
use crate::table::search;
use crate::table::text_enum::text_enum;

pub const CREATE: &str = "
CREATE TABLE message (
    position     INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT NOT NULL UNIQUE,
    conversation TEXT NOT NULL REFERENCES conversation(id) ON DELETE CASCADE,
    parent       TEXT REFERENCES message(id) ON DELETE CASCADE,
    role         TEXT NOT NULL,
    text         TEXT NOT NULL,
    reasoning    TEXT NOT NULL,
    state        TEXT NOT NULL,
    error        TEXT,
    model        TEXT,
    stats        TEXT,
    created_ms   INTEGER NOT NULL
) STRICT;
CREATE INDEX message_conversation ON message(conversation, parent);
CREATE INDEX message_parent ON message(parent);
CREATE INDEX message_streaming ON message(id) WHERE state = 'streaming';
";

/// Adds tool calls.
pub const ADD_TOOL_CALLS: &str = "ALTER TABLE message ADD COLUMN tool_calls TEXT;";

/// Adds the child last viewed, and by which removal, and when, a message was deleted.
pub const ADD_TREE: &str = "
ALTER TABLE message ADD COLUMN chosen TEXT;
ALTER TABLE message ADD COLUMN gone TEXT;
ALTER TABLE message ADD COLUMN gone_ms INTEGER;
CREATE INDEX message_gone ON message(gone) WHERE gone IS NOT NULL;
";

text_enum! {
    /// State of a message.
    MessageState {
        /// Being written; its text is in the chunk table.
        Streaming = "streaming",
        /// Finished.
        Complete = "complete",
        /// Stopped by the user; the text so far stays.
        Stopped = "stopped",
        /// The program ended while it was being written; what was saved stays.
        Interrupted = "interrupted",
        /// Ended by an error.
        Failed = "failed",
    }
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRow {
    pub id: String,
    pub conversation: String,
    pub parent: Option<String>,
    pub role: Role,
    pub text: String,
    pub reasoning: String,
    /// Tool calls with their outcomes: JSON of the layer above.
    pub tool_calls: Option<String>,
    pub state: MessageState,
    /// Why it failed: JSON of the layer above.
    pub error: Option<String>,
    pub model: Option<String>,
    /// Figures of the turn: JSON of the layer above.
    pub stats: Option<String>,
    pub created_ms: i64,
    /// The child on the branch that was last viewed here.
    pub chosen: Option<String>,
    /// The message whose removal deleted this one; None if it is not deleted.
    pub deleted_by: Option<String>,
    /// When it was deleted.
    pub deleted_ms: Option<i64>,
}

impl MessageRow {
    /// A complete, empty user message.
    pub fn new(id: String) -> Self {
        Self {
            id,
            conversation: String::new(),
            parent: None,
            role: Role::User,
            text: String::new(),
            reasoning: String::new(),
            tool_calls: None,
            state: MessageState::Complete,
            error: None,
            model: None,
            stats: None,
            created_ms: 0,
            chosen: None,
            deleted_by: None,
            deleted_ms: None,
        }
    }
}

const COLUMNS: &str = "id, conversation, parent, role, text, reasoning, state, error, model, stats, created_ms, tool_calls, chosen, gone, gone_ms";

/// Shown for a text that was deleted permanently.
const DELETED: &str = "This message was deleted.";

/// Shown for a text that cannot be read.
const UNREADABLE: &str = "This message can't be read: its row in the database is damaged.";

/// A damaged row loses its own text, not the conversation.
fn from_row(row: &Row) -> rusqlite::Result<MessageRow> {
    let (text, state) = match (row.get(4), row.get(6)) {
        (Ok(text), Ok(state)) => (text, state),
        (Ok(text), Err(_)) => (text, MessageState::Failed),
        (Err(_), _) => (UNREADABLE.into(), MessageState::Failed),
    };
    Ok(MessageRow {
        id: row.get(0)?,
        conversation: row.get(1).unwrap_or_default(),
        parent: row.get(2).unwrap_or_default(),
        role: row.get(3).unwrap_or(Role::Assistant),
        text,
        reasoning: row.get(5).unwrap_or_default(),
        state,
        // Damaged optional columns count as absent.
        error: row.get(7).unwrap_or_default(),
        model: row.get(8).unwrap_or_default(),
        stats: row.get(9).unwrap_or_default(),
        created_ms: row.get(10).unwrap_or_default(),
        tool_calls: row.get(11).unwrap_or_default(),
        chosen: row.get(12).unwrap_or_default(),
        deleted_by: row.get(13).unwrap_or_default(),
        deleted_ms: row.get(14).unwrap_or_default(),
    })
}

pub(crate) fn insert(db: &Connection, row: &MessageRow) -> Result<()> {
    let sql = format!(
        "INSERT INTO message ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)"
    );
    db.prepare_cached(&sql)?.execute(params![
        row.id,
        row.conversation,
        row.parent,
        row.role,
        row.text,
        row.reasoning,
        row.state,
        row.error,
        row.model,
        row.stats,
        row.created_ms,
        row.tool_calls,
        row.chosen,
        row.deleted_by,
        row.deleted_ms
    ])?;
    Ok(())
}

pub(crate) fn get(db: &Connection, id: &str) -> Result<MessageRow> {
    let sql = format!("SELECT {COLUMNS} FROM message WHERE id = ?1");
    let row = db.prepare_cached(&sql)?.query_row([id], from_row).optional()?;
    row.ok_or_else(|| SessionError::missing("message", id))
}

/// Messages from the root to `leaf`. Ends where damage has closed a circle of parents.
pub(crate) fn branch(db: &Connection, leaf: &str) -> Result<Vec<MessageRow>> {
    let names: Vec<_> = COLUMNS.split(", ").map(|name| format!("message.{name}")).collect();
    // UNION, not UNION ALL: each message once, so that a circle ends.
    let sql = format!(
        "WITH RECURSIVE up(id, parent) AS (
             SELECT id, parent FROM message WHERE id = ?1
             UNION SELECT message.id, message.parent FROM message JOIN up ON message.id = up.parent)
         SELECT {}, CAST(up.id AS BLOB), CAST(up.parent AS BLOB) FROM up JOIN message ON message.id = up.id",
        names.join(", ")
    );
    let mut statement = db.prepare_cached(&sql)?;
    let n_columns = names.len();
    let link = |row: &Row| {
        let (id, parent): (Vec<u8>, Option<Vec<u8>>) = (row.get(n_columns)?, row.get(n_columns + 1)?);
        Ok((id, (parent, from_row(row).ok())))
    };
    let mut rows: HashMap<_, _> =
        super::readable_rows(statement.query_map([leaf], link)?)?.into_iter().collect();
    let mut branch = Vec::with_capacity(rows.len());
    let mut next = rows.remove(leaf.as_bytes());
    while let Some((parent, row)) = next {
        // A row that can't be read costs itself, and nothing before it.
        branch.extend(row);
        next = parent.and_then(|parent| rows.remove(&parent));
    }
    branch.reverse();
    Ok(branch)
}

/// Version number of a message among its siblings, and their count; both from 1.
pub(crate) fn version(db: &Connection, row: &MessageRow) -> Result<(u32, u32)> {
    let siblings = siblings(db, row)?;
    let at = siblings.iter().position(|id| *id == row.id).unwrap_or(0);
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Ok((count(at + 1), count(siblings.len().max(1))))
}

/// Ids of the versions of a message, itself included, oldest first.
pub(crate) fn siblings(db: &Connection, row: &MessageRow) -> Result<Vec<String>> {
    let sql = "SELECT id FROM message WHERE conversation = ?1 AND parent IS ?2 AND role = ?3 AND gone IS NULL
               ORDER BY position";
    let mut statement = db.prepare_cached(sql)?;
    let ids = statement.query_map(params![row.conversation, row.parent, row.role], |row| row.get(0))?;
    super::readable_rows(ids)
}

/// All messages of a conversation, deleted ones included, parents before children.
pub(crate) fn all(db: &Connection, conversation: &str) -> Result<Vec<MessageRow>> {
    let sql = format!("SELECT {COLUMNS} FROM message WHERE conversation = ?1 ORDER BY position");
    let mut statement = db.prepare_cached(&sql)?;
    let rows = statement.query_map([conversation], from_row)?;
    super::readable_rows(rows)
}

/// `stats` of the newest answers of a model, newest first, as far as they are among the newest `n_looked_at` messages of
/// all conversations. The limit bounds the time: no index leads to a model's messages.
pub(crate) fn newest_stats(db: &Connection, model: &str, n: u32, n_looked_at: u32) -> Result<Vec<String>> {
    let sql = "SELECT stats FROM message WHERE position > (SELECT MAX(position) FROM message) - ?3
               AND model = ?1 AND stats IS NOT NULL ORDER BY position DESC LIMIT ?2";
    let mut statement = db.prepare_cached(sql)?;
    let stats = statement.query_map(params![model, n, n_looked_at], |row| row.get(0))?;
    super::readable_rows(stats)
}

pub(crate) fn newest_child(db: &Connection, id: &str) -> Result<Option<String>> {
    let sql = "SELECT id FROM message WHERE parent = ?1 AND gone IS NULL ORDER BY position DESC LIMIT 1";
    Ok(db.prepare_cached(sql)?.query_row([id], |row| row.get(0)).optional()?)
}

pub(crate) fn chosen_child(db: &Connection, id: &str) -> Result<Option<String>> {
    let sql = "SELECT child.id FROM message JOIN message AS child ON child.id = message.chosen
               WHERE message.id = ?1 AND child.parent = ?1 AND child.gone IS NULL";
    Ok(db.prepare_cached(sql)?.query_row([id], |row| row.get(0)).optional()?)
}

/// Marks a message and its descendants as deleted. Messages that an earlier removal deleted keep its mark.
pub(crate) fn mark_deleted(db: &Connection, id: &str, now_ms: i64) -> Result<()> {
    let sql = "WITH RECURSIVE down(id) AS (
                   SELECT ?1 UNION SELECT message.id FROM message JOIN down ON message.parent = down.id)
               UPDATE message SET gone = ?1, gone_ms = ?2 WHERE gone IS NULL AND id IN (SELECT id FROM down)";
    db.execute(sql, params![id, now_ms])?;
    Ok(())
}

pub(crate) fn unmark_deleted(db: &Connection, id: &str) -> Result<()> {
    db.execute("UPDATE message SET gone = NULL, gone_ms = NULL WHERE gone = ?1", [id])?;
    Ok(())
}

/// Ids of messages deleted before `before_ms`.
pub(crate) fn deleted_before(db: &Connection, before_ms: i64) -> Result<Vec<String>> {
    let mut statement = db.prepare("SELECT id FROM message WHERE gone IS NOT NULL AND gone_ms < ?1")?;
    let ids = statement.query_map([before_ms], |row| row.get(0))?;
    super::readable_rows(ids)
}

/// Deletes a message permanently, with its descendants.
pub(crate) fn remove(db: &Connection, id: &str) -> Result<()> {
    db.execute("DELETE FROM message WHERE id = ?1", [id])?;
    Ok(())
}

/// Whether a message has no children, deleted ones included.
pub(crate) fn is_leaf(db: &Connection, id: &str) -> Result<bool> {
    let sql = "SELECT NOT EXISTS (SELECT 1 FROM message WHERE parent = ?1)";
    Ok(db.prepare_cached(sql)?.query_row([id], |row| row.get(0))?)
}

/// Replaces the content of a message with a placeholder; its position in the tree stays.
pub(crate) fn blank(db: &Connection, id: &str) -> Result<()> {
    let sql = "UPDATE message SET text = ?2, reasoning = '', state = 'complete', error = NULL, stats = NULL,
               tool_calls = NULL WHERE id = ?1";
    db.execute(sql, [id, DELETED])?;
    search::put(db, id, DELETED)
}

/// Clears a message so that it can be written again.
pub(crate) fn reopen(db: &Connection, id: &str) -> Result<()> {
    let sql = "UPDATE message SET state = 'streaming', error = NULL, stats = NULL, text = '', reasoning = ''
               WHERE id = ?1";
    db.execute(sql, [id])?;
    search::remove(db, id)
}

/// Stores the final content of a message that was streaming.
pub(crate) fn finish(db: &Connection, row: &MessageRow) -> Result<()> {
    db.execute(
        "UPDATE message SET text = ?2, reasoning = ?3, state = ?4, error = ?5, stats = ?6, tool_calls = ?7 WHERE id = ?1",
        params![row.id, row.text, row.reasoning, row.state, row.error, row.stats, row.tool_calls],
    )?;
    search::put(db, &row.id, &row.text)
}

pub(crate) fn set_tool_calls(db: &Connection, id: &str, json: &str) -> Result<()> {
    db.execute("UPDATE message SET tool_calls = ?2 WHERE id = ?1", [id, json])?;
    Ok(())
}

/// Ids of streaming messages without a turn.
pub(crate) fn orphans(db: &Connection) -> Result<Vec<String>> {
    let sql = "SELECT id FROM message WHERE state = 'streaming' AND id NOT IN (SELECT message FROM turn)";
    let mut statement = db.prepare(sql)?;
    let ids = statement.query_map([], |row| row.get(0))?;
    super::readable_rows(ids)
}
