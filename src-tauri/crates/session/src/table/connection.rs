//! Log of outgoing connections: time, host, purpose and bytes. Never their content.

use rusqlite::{Connection, Row, params};

use crate::error::Result;

pub const CREATE: &str = "
CREATE TABLE connection (
    id       INTEGER PRIMARY KEY,
    at_ms    INTEGER NOT NULL,
    host     TEXT NOT NULL,
    purpose  TEXT NOT NULL,
    sent     INTEGER NOT NULL,
    received INTEGER NOT NULL
) STRICT;
";

/// Rows that are kept, the newest first: years of use in about two megabytes.
const MAX_ROWS: i64 = 20_000;

/// A logged connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionRow {
    pub id: i64,
    pub at_ms: i64,
    pub host: String,
    /// Purpose, as named by the layer above.
    pub purpose: String,
    /// Bytes sent.
    pub sent: i64,
    pub received: i64,
}

fn from_row(row: &Row) -> rusqlite::Result<ConnectionRow> {
    Ok(ConnectionRow {
        id: row.get(0)?,
        at_ms: row.get(1)?,
        host: row.get(2)?,
        purpose: row.get(3)?,
        sent: row.get(4)?,
        received: row.get(5)?,
    })
}

/// Logs a connection that begins and returns its id.
pub(crate) fn begin(db: &Connection, at_ms: i64, host: &str, purpose: &str) -> Result<i64> {
    let sql = "INSERT INTO connection (at_ms, host, purpose, sent, received) VALUES (?1, ?2, ?3, 0, 0)";
    db.prepare_cached(sql)?.execute(params![at_ms, host, purpose])?;
    let id = db.last_insert_rowid();
    db.prepare_cached("DELETE FROM connection WHERE id <= ?1")?.execute([id - MAX_ROWS])?;
    Ok(id)
}

/// Records the bytes of a connection that ended.
pub(crate) fn end(db: &Connection, id: i64, sent: i64, received: i64) -> Result<()> {
    let sql = "UPDATE connection SET sent = ?2, received = ?3 WHERE id = ?1";
    db.prepare_cached(sql)?.execute([id, sent, received])?;
    Ok(())
}

/// Lists connections, newest first.
pub(crate) fn list(db: &Connection, limit: u32) -> Result<Vec<ConnectionRow>> {
    let sql = "SELECT id, at_ms, host, purpose, sent, received FROM connection ORDER BY id DESC LIMIT ?1";
    let mut statement = db.prepare_cached(sql)?;
    let rows = statement.query_map([limit], from_row)?;
    super::readable_rows(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept() {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(CREATE).unwrap();
        let id = begin(&db, 7, "example.org", "answer").unwrap();
        end(&db, id, 10, 20).unwrap();
        let expected = ConnectionRow {
            id,
            at_ms: 7,
            host: "example.org".into(),
            purpose: "answer".into(),
            sent: 10,
            received: 20,
        };
        assert_eq!(list(&db, 9).unwrap(), [expected]);
        db.execute("INSERT INTO connection VALUES (?1, 8, 'example.org', 'answer', 0, 0)", [MAX_ROWS])
            .unwrap();
        begin(&db, 9, "example.org", "answer").unwrap();
        assert_eq!(list(&db, 9).unwrap().iter().map(|row| row.at_ms).collect::<Vec<_>>(), [9, 8]);
        assert_eq!(list(&db, 1).unwrap().len(), 1);
    }
}
