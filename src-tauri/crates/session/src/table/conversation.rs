//! Conversations. `leaf` is the last message of the active branch; `activity` orders them, so that a
//! clock that jumps can't.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::{Result, SessionError};
use crate::table::text_enum::text_enum;

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

/// `options` is JSON of the layer above; `revision` grows with everything that changes here.
pub const ADD_TREE: &str = "
ALTER TABLE conversation ADD COLUMN folder TEXT REFERENCES folder(id) ON DELETE SET NULL;
ALTER TABLE conversation ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE conversation ADD COLUMN titled_by TEXT NOT NULL DEFAULT 'user';
ALTER TABLE conversation ADD COLUMN options TEXT;
ALTER TABLE conversation ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
CREATE INDEX conversation_folder ON conversation(folder);
";

text_enum! {
    /// Where a title comes from.
    TitledBy {
        /// The first words of the first message.
        Start = "start",
        Model = "model",
        /// Never written over.
        User = "user",
    }
}

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
    pub folder: Option<String>,
    pub pinned: bool,
    pub titled_by: TitledBy,
    /// JSON.
    pub options: Option<String>,
    /// Grows with everything that changes here.
    pub revision: i64,
    /// The one that was used last has the greatest.
    pub activity: i64,
}

impl ConversationRow {
    /// Empty, with a title that may be written over.
    pub fn new(id: String) -> Self {
        Self {
            id,
            title: String::new(),
            model: String::new(),
            leaf: None,
            created_ms: 0,
            updated_ms: 0,
            deleted_ms: None,
            folder: None,
            pinned: false,
            titled_by: TitledBy::Start,
            options: None,
            revision: 0,
            activity: 0,
        }
    }
}

const COLUMNS: &str = "id, title, model, leaf, created_ms, updated_ms, deleted_ms, folder, pinned, titled_by, options, revision, activity";

/// Stands in the place of a title that can't be read any more.
const UNREADABLE: &str = "Unreadable title";

fn from_row(row: &Row) -> rusqlite::Result<ConversationRow> {
    Ok(ConversationRow {
        id: row.get(0)?,
        // What is damaged of a row costs itself, not the conversation.
        title: row.get(1).unwrap_or_else(|_| UNREADABLE.into()),
        model: row.get(2).unwrap_or_default(),
        leaf: row.get(3).unwrap_or_default(),
        created_ms: row.get(4).unwrap_or_default(),
        updated_ms: row.get(5).unwrap_or_default(),
        deleted_ms: row.get(6).unwrap_or_default(),
        folder: row.get(7).unwrap_or_default(),
        pinned: row.get(8).unwrap_or_default(),
        titled_by: row.get(9).unwrap_or(TitledBy::User),
        options: row.get(10).unwrap_or_default(),
        revision: row.get(11).unwrap_or_default(),
        activity: row.get(12).unwrap_or_default(),
    })
}

pub(crate) fn insert(db: &Connection, row: &ConversationRow) -> Result<()> {
    db.execute(
        "INSERT INTO conversation (id, title, model, leaf, activity, created_ms, updated_ms, deleted_ms, folder, pinned,
             titled_by, options, revision)
         VALUES (?1, ?2, ?3, ?4, (SELECT COALESCE(MAX(activity), 0) + 1 FROM conversation), ?5, ?6, ?7, ?8, ?9, ?10, ?11, 1)",
        params![
            row.id,
            row.title,
            row.model,
            row.leaf,
            row.created_ms,
            row.updated_ms,
            row.deleted_ms,
            row.folder,
            row.pinned,
            row.titled_by,
            row.options
        ],
    )?;
    Ok(())
}

/// Those not in the trash, the one used last first.
pub(crate) fn list(db: &Connection) -> Result<Vec<ConversationRow>> {
    select(db, "deleted_ms IS NULL ORDER BY activity DESC")
}

/// Those in the trash, the one deleted last first.
pub(crate) fn trash(db: &Connection) -> Result<Vec<ConversationRow>> {
    select(db, "deleted_ms IS NOT NULL ORDER BY deleted_ms DESC, activity DESC")
}

/// A row that can't be read is left out, not the whole list.
fn select(db: &Connection, which: &str) -> Result<Vec<ConversationRow>> {
    let sql = format!("SELECT {COLUMNS} FROM conversation WHERE {which}");
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
        "UPDATE conversation SET updated_ms = ?2, revision = revision + 1,
             activity = (SELECT MAX(activity) + 1 FROM conversation) WHERE id = ?1",
        params![id, now_ms],
    )?;
    Ok(())
}

/// Something in it is different, though nothing was said.
pub(crate) fn changed(db: &Connection, id: &str) -> Result<()> {
    db.execute("UPDATE conversation SET revision = revision + 1 WHERE id = ?1", [id])?;
    Ok(())
}

pub(crate) fn set_leaf(db: &Connection, id: &str, leaf: Option<&str>) -> Result<()> {
    db.execute("UPDATE conversation SET leaf = ?2 WHERE id = ?1", params![id, leaf])?;
    Ok(())
}

pub(crate) fn set_title(db: &Connection, id: &str, title: &str, by: TitledBy) -> Result<()> {
    let sql = "UPDATE conversation SET title = ?2, titled_by = ?3, revision = revision + 1 WHERE id = ?1";
    db.execute(sql, params![id, title, by])?;
    Ok(())
}

pub(crate) fn set_model(db: &Connection, id: &str, model: &str) -> Result<()> {
    db.execute("UPDATE conversation SET model = ?2, revision = revision + 1 WHERE id = ?1", [id, model])?;
    Ok(())
}

pub(crate) fn set_folder(db: &Connection, id: &str, folder: Option<&str>) -> Result<()> {
    let sql = "UPDATE conversation SET folder = ?2, revision = revision + 1 WHERE id = ?1";
    db.execute(sql, params![id, folder])?;
    Ok(())
}

pub(crate) fn set_pinned(db: &Connection, id: &str, pinned: bool) -> Result<()> {
    let sql = "UPDATE conversation SET pinned = ?2, revision = revision + 1 WHERE id = ?1";
    db.execute(sql, params![id, pinned])?;
    Ok(())
}

pub(crate) fn set_options(db: &Connection, id: &str, options: Option<&str>) -> Result<()> {
    let sql = "UPDATE conversation SET options = ?2, revision = revision + 1 WHERE id = ?1";
    db.execute(sql, params![id, options])?;
    Ok(())
}

pub(crate) fn set_deleted(db: &Connection, id: &str, deleted_ms: Option<i64>) -> Result<()> {
    let sql = "UPDATE conversation SET deleted_ms = ?2, revision = revision + 1 WHERE id = ?1";
    db.execute(sql, params![id, deleted_ms])?;
    Ok(())
}

/// Ids of what lies in the trash since before `before_ms`.
pub(crate) fn deleted_before(db: &Connection, before_ms: i64) -> Result<Vec<String>> {
    let mut statement = db.prepare("SELECT id FROM conversation WHERE deleted_ms < ?1")?;
    let ids = statement.query_map([before_ms], |row| row.get(0))?;
    Ok(ids.collect::<rusqlite::Result<_>>()?)
}

/// For good, with its messages and all that hangs on them.
pub(crate) fn remove(db: &Connection, id: &str) -> Result<()> {
    db.execute("DELETE FROM conversation WHERE id = ?1", [id])?;
    Ok(())
}
