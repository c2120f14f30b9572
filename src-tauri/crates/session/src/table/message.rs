//! Messages: a tree under each conversation. `position` is the order in which they were made.
//!
//! `stats`, `error` and `tool_calls` are JSON of the layer above; this table only keeps them.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::{Result, SessionError};

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

/// Tools that the model wants called.
pub const ADD_TOOL_CALLS: &str = "ALTER TABLE message ADD COLUMN tool_calls TEXT;";

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$line:meta])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$line])* $variant),* }

        impl ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                Ok(match self { $(Self::$variant => $word),* }.into())
            }
        }

        impl FromSql for $name {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                match value.as_str()? {
                    $($word => Ok(Self::$variant),)*
                    _ => Err(FromSqlError::InvalidType),
                }
            }
        }
    };
}

words! {
    /// Who speaks.
    Role { System = "system", User = "user", Assistant = "assistant" }
}

words! {
    /// How far a message has come.
    MessageState {
        Streaming = "streaming",
        Complete = "complete",
        /// By the user; what was written stays.
        Stopped = "stopped",
        /// The program ended while this was being written; what was saved stays.
        Interrupted = "interrupted",
        Failed = "failed",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRow {
    pub id: String,
    pub conversation: String,
    pub parent: Option<String>,
    pub role: Role,
    pub text: String,
    pub reasoning: String,
    /// JSON.
    pub tool_calls: Option<String>,
    pub state: MessageState,
    /// JSON.
    pub error: Option<String>,
    pub model: Option<String>,
    /// JSON.
    pub stats: Option<String>,
    pub created_ms: i64,
}

const COLUMNS: &str =
    "id, conversation, parent, role, text, reasoning, state, error, model, stats, created_ms, tool_calls";

/// Stands in the place of a text that can't be read any more.
const UNREADABLE: &str = "This message can't be read: its row in the database is damaged.";

/// A damaged row costs its own text, not the conversation it is in.
fn from_row(row: &Row) -> rusqlite::Result<MessageRow> {
    let (text, state) = match (row.get(4), row.get(6)) {
        (Ok(text), Ok(state)) => (text, state),
        (Ok(text), Err(_)) => (text, MessageState::Failed),
        (Err(_), _) => (UNREADABLE.into(), MessageState::Failed),
    };
    Ok(MessageRow {
        id: row.get(0)?,
        conversation: row.get(1)?,
        parent: row.get(2)?,
        role: row.get(3).unwrap_or(Role::Assistant),
        text,
        reasoning: row.get(5).unwrap_or_default(),
        state,
        error: row.get(7)?,
        model: row.get(8)?,
        stats: row.get(9)?,
        created_ms: row.get(10)?,
        // Damaged or not there yet: an answer without calls.
        tool_calls: row.get(11).unwrap_or_default(),
    })
}

pub(crate) fn insert(db: &Connection, row: &MessageRow) -> Result<()> {
    let sql =
        format!("INSERT INTO message ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)");
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
        row.tool_calls
    ])?;
    Ok(())
}

pub(crate) fn get(db: &Connection, id: &str) -> Result<MessageRow> {
    let sql = format!("SELECT {COLUMNS} FROM message WHERE id = ?1");
    let row = db.prepare_cached(&sql)?.query_row([id], from_row).optional()?;
    row.ok_or_else(|| SessionError::missing("message", id))
}

/// From the root to `leaf`.
pub(crate) fn branch(db: &Connection, leaf: &str) -> Result<Vec<MessageRow>> {
    let names: Vec<_> = COLUMNS.split(", ").map(|name| format!("message.{name}")).collect();
    let sql = format!(
        "WITH RECURSIVE up(id, parent, depth) AS (
             SELECT id, parent, 0 FROM message WHERE id = ?1
             UNION ALL SELECT message.id, message.parent, depth + 1 FROM message JOIN up ON message.id = up.parent)
         SELECT {} FROM up JOIN message ON message.id = up.id ORDER BY depth DESC",
        names.join(", ")
    );
    let mut statement = db.prepare_cached(&sql)?;
    let rows = statement.query_map([leaf], from_row)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Which of the messages under the same parent this is, and how many there are; both from 1.
pub(crate) fn version(db: &Connection, row: &MessageRow) -> Result<(u32, u32)> {
    let sql =
        "SELECT COUNT(*) FILTER (WHERE position <= (SELECT position FROM message WHERE id = ?3)), COUNT(*)
               FROM message WHERE conversation = ?1 AND parent IS ?2 AND role = ?4";
    let mut statement = db.prepare_cached(sql)?;
    let counts = statement.query_row(params![row.conversation, row.parent, row.id, row.role], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    Ok(counts)
}

/// The end of a message that was streaming.
pub(crate) fn finish(db: &Connection, row: &MessageRow) -> Result<()> {
    db.execute(
        "UPDATE message SET text = ?2, reasoning = ?3, state = ?4, error = ?5, stats = ?6, tool_calls = ?7 WHERE id = ?1",
        params![row.id, row.text, row.reasoning, row.state, row.error, row.stats, row.tool_calls],
    )?;
    Ok(())
}

/// Streaming messages that no turn writes to any more.
pub(crate) fn orphans(db: &Connection) -> Result<Vec<String>> {
    let sql = "SELECT id FROM message WHERE state = 'streaming' AND id NOT IN (SELECT message FROM turn)";
    let mut statement = db.prepare(sql)?;
    let ids = statement.query_map([], |row| row.get(0))?;
    Ok(ids.collect::<rusqlite::Result<_>>()?)
}
