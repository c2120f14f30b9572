//! Remote model servers: address, where the key is found (never the key itself), and the models they last listed.

use rusqlite::{Connection, Row, params};

use crate::error::Result;

pub const CREATE: &str = "
CREATE TABLE endpoint (
    id       TEXT PRIMARY KEY NOT NULL,
    name     TEXT NOT NULL,
    url      TEXT NOT NULL,
    key      TEXT NOT NULL,
    enabled  INTEGER NOT NULL,
    models   TEXT NOT NULL,
    added_ms INTEGER NOT NULL,
    UNIQUE (name, url)
) STRICT, WITHOUT ROWID;
";

/// A remote model server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointRow {
    pub id: String,
    /// Display name; several endpoints may share one.
    pub name: String,
    pub url: String,
    /// JSON of the layer above: where the key is found.
    pub key: String,
    pub enabled: bool,
    /// JSON of the layer above: the models of the last listing.
    pub models: String,
    pub added_ms: i64,
}

fn from_row(row: &Row) -> rusqlite::Result<EndpointRow> {
    Ok(EndpointRow {
        id: row.get(0)?,
        name: row.get(1)?,
        url: row.get(2)?,
        key: row.get(3)?,
        enabled: row.get(4)?,
        models: row.get(5)?,
        added_ms: row.get(6)?,
    })
}

/// Inserts or replaces an endpoint. Errors if another one has the same name and address.
pub(crate) fn put(db: &Connection, row: &EndpointRow) -> Result<()> {
    db.execute(
        "INSERT INTO endpoint (id, name, url, key, enabled, models, added_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
         ON CONFLICT (id) DO UPDATE SET
             name = excluded.name, url = excluded.url, key = excluded.key, enabled = excluded.enabled,
             models = excluded.models",
        params![row.id, row.name, row.url, row.key, row.enabled, row.models, row.added_ms],
    )?;
    Ok(())
}

/// Lists endpoints in the order in which they were added.
pub(crate) fn list(db: &Connection) -> Result<Vec<EndpointRow>> {
    let sql = "SELECT id, name, url, key, enabled, models, added_ms FROM endpoint ORDER BY added_ms, id";
    let mut statement = db.prepare_cached(sql)?;
    let rows = statement.query_map([], from_row)?;
    super::readable_rows(rows)
}

/// Removes an endpoint; false if there was none.
pub(crate) fn remove(db: &Connection, id: &str) -> Result<bool> {
    Ok(db.execute("DELETE FROM endpoint WHERE id = ?1", [id])? > 0)
}
