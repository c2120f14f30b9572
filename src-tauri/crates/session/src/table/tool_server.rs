//! Tool servers: their configuration (never a secret), and whether they are enabled.

use rusqlite::{Connection, Row, params};

use crate::error::Result;

pub const CREATE: &str = "
CREATE TABLE tool_server (
    id       TEXT PRIMARY KEY NOT NULL,
    name     TEXT NOT NULL UNIQUE,
    body     TEXT NOT NULL,
    enabled  INTEGER NOT NULL,
    added_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
";

/// A tool server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolServerRow {
    pub id: String,
    pub name: String,
    /// JSON of the layer above: how to reach it, its last tool list, what needs no permission.
    pub body: String,
    pub enabled: bool,
    pub added_ms: i64,
}

fn from_row(row: &Row) -> rusqlite::Result<ToolServerRow> {
    Ok(ToolServerRow {
        id: row.get(0)?,
        name: row.get(1)?,
        body: row.get(2)?,
        enabled: row.get(3)?,
        added_ms: row.get(4)?,
    })
}

/// Inserts or replaces a server. Errors if another one has the same name.
pub(crate) fn put(db: &Connection, row: &ToolServerRow) -> Result<()> {
    db.execute(
        "INSERT INTO tool_server (id, name, body, enabled, added_ms) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (id) DO UPDATE SET name = excluded.name, body = excluded.body, enabled = excluded.enabled",
        params![row.id, row.name, row.body, row.enabled, row.added_ms],
    )?;
    Ok(())
}

/// Lists servers in the order in which they were added.
pub(crate) fn list(db: &Connection) -> Result<Vec<ToolServerRow>> {
    let sql = "SELECT id, name, body, enabled, added_ms FROM tool_server ORDER BY added_ms, id";
    let mut statement = db.prepare_cached(sql)?;
    let rows = statement.query_map([], from_row)?;
    super::readable_rows(rows)
}

/// Removes a server; false if there was none.
pub(crate) fn remove(db: &Connection, id: &str) -> Result<bool> {
    Ok(db.execute("DELETE FROM tool_server WHERE id = ?1", [id])? > 0)
}
