//! What programs stored over HTTP: chat completions, responses, conversations and their items.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::Result;

pub const CREATE: &str = "
CREATE TABLE api_object (
    id         TEXT PRIMARY KEY NOT NULL,
    kind       TEXT NOT NULL,
    owner      TEXT NOT NULL,
    parent     TEXT,
    position   INTEGER NOT NULL,
    body       TEXT NOT NULL,
    created_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX api_object_by_kind ON api_object (kind, owner, position);
CREATE INDEX api_object_by_parent ON api_object (parent, position);
";

/// An object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiObjectRow {
    pub id: String,
    /// A word of the layer above.
    pub kind: String,
    /// Id of the key that stored it (its id); other keys don't see it.
    pub owner: String,
    /// The conversation of an item.
    pub parent: Option<String>,
    /// JSON of the layer above.
    pub body: String,
    pub created_ms: i64,
}

const COLUMNS: &str = "id, kind, owner, parent, body, created_ms";

fn from_row(row: &Row) -> rusqlite::Result<ApiObjectRow> {
    Ok(ApiObjectRow {
        id: row.get(0)?,
        kind: row.get(1)?,
        owner: row.get(2)?,
        parent: row.get(3)?,
        body: row.get(4)?,
        created_ms: row.get(5)?,
    })
}

/// Inserts an object at the end, or replaces the body of the same owner's object with that id.
pub(crate) fn put(db: &Connection, row: &ApiObjectRow) -> Result<()> {
    let sql = "INSERT INTO api_object (id, kind, owner, parent, position, body, created_ms)
               VALUES (?1, ?2, ?3, ?4, (SELECT COALESCE(MAX(position), 0) + 1 FROM api_object), ?5, ?6)
               ON CONFLICT (id) DO UPDATE SET body = excluded.body
               WHERE owner = excluded.owner AND kind = excluded.kind";
    db.execute(sql, params![row.id, row.kind, row.owner, row.parent, row.body, row.created_ms])?;
    Ok(())
}

pub(crate) fn get(db: &Connection, kind: &str, owner: &str, id: &str) -> Result<Option<ApiObjectRow>> {
    let sql = format!("SELECT {COLUMNS} FROM api_object WHERE id = ?1 AND kind = ?2 AND owner = ?3");
    Ok(db.prepare_cached(&sql)?.query_row(params![id, kind, owner], from_row).optional()?)
}

/// Lists objects in the order in which they were added, those of one parent if it is given.
pub(crate) fn list(
    db: &Connection,
    kind: &str,
    owner: &str,
    parent: Option<&str>,
) -> Result<Vec<ApiObjectRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM api_object WHERE kind = ?1 AND owner = ?2 AND (?3 IS NULL OR parent = ?3)
         ORDER BY position"
    );
    let mut statement = db.prepare_cached(&sql)?;
    let rows = statement.query_map(params![kind, owner, parent], from_row)?;
    super::readable_rows(rows)
}

/// Ids of all objects.
pub(crate) fn ids(db: &Connection) -> Result<Vec<String>> {
    let mut statement = db.prepare_cached("SELECT id FROM api_object")?;
    let ids = statement.query_map([], |row| row.get(0))?;
    super::readable_rows(ids)
}

/// Removes an object with its children. False if there is none.
pub(crate) fn remove(db: &Connection, kind: &str, owner: &str, id: &str) -> Result<bool> {
    let sql = "DELETE FROM api_object WHERE id = ?1 AND kind = ?2 AND owner = ?3";
    let n_removed = db.execute(sql, params![id, kind, owner])?;
    if n_removed > 0 {
        db.execute("DELETE FROM api_object WHERE parent = ?1", [id])?;
    }
    Ok(n_removed > 0)
}

/// Removes all but the newest `n_kept`, and children without a parent.
pub(crate) fn trim(db: &Connection, n_kept: u32) -> Result<()> {
    let sql = "DELETE FROM api_object WHERE position <= (SELECT MAX(position) FROM api_object) - ?1";
    if db.execute(sql, [n_kept])? > 0 {
        let sql = "DELETE FROM api_object WHERE parent NOT IN (SELECT id FROM api_object)";
        db.execute(sql, [])?;
    }
    Ok(())
}
