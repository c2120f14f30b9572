//! Stored contexts (KV cache files): which files exist, which conversations and named checkpoints need them.
//!
//! Rows mirror the folder. A missing file costs recomputation, never text.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::{Result, SessionError};

pub const CREATE: &str = "
CREATE TABLE kv_file (
    name     TEXT PRIMARY KEY NOT NULL,
    bytes    INTEGER NOT NULL,
    position INTEGER NOT NULL,
    used     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX kv_file_used ON kv_file(used);
CREATE TABLE kv_use (
    owner TEXT NOT NULL,
    file  TEXT NOT NULL REFERENCES kv_file(name) ON DELETE CASCADE,
    PRIMARY KEY (owner, file)
) STRICT, WITHOUT ROWID;
CREATE INDEX kv_use_file ON kv_use(file);
CREATE TABLE checkpoint (
    id           TEXT PRIMARY KEY NOT NULL,
    name         TEXT NOT NULL,
    conversation TEXT NOT NULL REFERENCES conversation(id) ON DELETE CASCADE,
    message      TEXT NOT NULL,
    created_ms   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
";

/// A file of a stored context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KvFile {
    pub name: String,
    pub bytes: u64,
    /// Position of its end in the conversation, in tokens.
    pub position: u64,
}

/// A named checkpoint: a position in a conversation whose stored context is never evicted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointRow {
    pub id: String,
    pub name: String,
    pub conversation: String,
    /// Its last message.
    pub message: String,
    pub created_ms: i64,
    /// Bytes of its files. 0 if none is stored; then the prompt is processed again.
    pub bytes: u64,
}

/// Totals of the stored contexts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KvTotals {
    pub files: u64,
    pub bytes: u64,
    /// Bytes of files that named checkpoints need.
    pub pinned_bytes: u64,
}

const PINNED: &str = "SELECT file FROM kv_use WHERE owner IN (SELECT id FROM checkpoint)";

/// A use stamp later than all others.
pub(crate) fn next_stamp(db: &Connection) -> Result<i64> {
    Ok(db.query_row("SELECT COALESCE(MAX(used), 0) + 1 FROM kv_file", [], |row| row.get(0))?)
}

pub(crate) fn put(db: &Connection, file: &KvFile, stamp: i64) -> Result<()> {
    let sql = "INSERT INTO kv_file (name, bytes, position, used) VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT(name) DO UPDATE SET bytes = ?2, position = ?3, used = ?4";
    db.prepare_cached(sql)?.execute(params![file.name, file.bytes as i64, file.position as i64, stamp])?;
    Ok(())
}

/// Marks a file as used. Unknown files are ignored.
pub(crate) fn touch(db: &Connection, name: &str, stamp: i64) -> Result<()> {
    db.prepare_cached("UPDATE kv_file SET used = ?2 WHERE name = ?1")?.execute(params![name, stamp])?;
    Ok(())
}

/// Records that an owner needs a file. Unknown files and owners are ignored.
pub(crate) fn claim(db: &Connection, owner: &str, name: &str) -> Result<()> {
    let sql = "INSERT OR IGNORE INTO kv_use (owner, file) SELECT ?1, name FROM kv_file WHERE name = ?2
               AND (?1 IN (SELECT id FROM conversation) OR ?1 IN (SELECT id FROM checkpoint))";
    db.prepare_cached(sql)?.execute([owner, name])?;
    Ok(())
}

/// Claims for `owner` the files that `of` used last.
pub(crate) fn claim_newest_of(db: &Connection, owner: &str, of: &str) -> Result<()> {
    db.execute(
        "INSERT OR IGNORE INTO kv_use (owner, file) SELECT ?1, file FROM kv_use JOIN kv_file ON name = file
         WHERE owner = ?2 AND used = (SELECT MAX(used) FROM kv_use JOIN kv_file ON name = file WHERE owner = ?2)",
        [owner, of],
    )?;
    Ok(())
}

pub(crate) fn remove(db: &Connection, name: &str) -> Result<()> {
    db.prepare_cached("DELETE FROM kv_file WHERE name = ?1")?.execute([name])?;
    Ok(())
}

pub(crate) fn unclaim(db: &Connection, owner: &str) -> Result<()> {
    db.execute("DELETE FROM kv_use WHERE owner = ?1", [owner])?;
    Ok(())
}

/// Forgets all files.
pub fn clear(db: &Connection) -> Result<()> {
    Ok(db.execute_batch("DELETE FROM kv_use; DELETE FROM kv_file; REINDEX kv_use; REINDEX kv_file")?)
}

/// Removes claims of deleted conversations and checkpoints.
pub(crate) fn unclaim_orphans(db: &Connection) -> Result<()> {
    db.execute(
        "DELETE FROM kv_use WHERE owner NOT IN (SELECT id FROM conversation)
         AND owner NOT IN (SELECT id FROM checkpoint)",
        [],
    )?;
    Ok(())
}

fn names(db: &Connection, sql: &str) -> Result<Vec<String>> {
    let mut statement = db.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| row.get(0))?;
    super::readable_rows(rows)
}

pub(crate) fn all(db: &Connection) -> Result<Vec<String>> {
    names(db, "SELECT name FROM kv_file")
}

/// Names of files without a claim.
pub(crate) fn unclaimed(db: &Connection) -> Result<Vec<String>> {
    names(db, "SELECT name FROM kv_file WHERE name NOT IN (SELECT file FROM kv_use)")
}

/// Evictable files in order of eviction: least recently used first. Within one use the furthest position goes first,
/// since earlier files lead to later ones.
pub(crate) fn evictable(db: &Connection) -> Result<Vec<KvFile>> {
    let sql = format!(
        "SELECT name, bytes, position FROM kv_file WHERE name NOT IN ({PINNED}) ORDER BY used, position DESC"
    );
    let mut statement = db.prepare_cached(&sql)?;
    let rows = statement.query_map([], |row| {
        let (bytes, position): (i64, i64) = (row.get(1)?, row.get(2)?);
        Ok(KvFile { name: row.get(0)?, bytes: bytes.max(0) as u64, position: position.max(0) as u64 })
    })?;
    super::readable_rows(rows)
}

pub(crate) fn totals(db: &Connection) -> Result<KvTotals> {
    let sql = format!(
        "SELECT COUNT(*), COALESCE(SUM(bytes), 0),
         COALESCE(SUM(CASE WHEN name IN ({PINNED}) THEN bytes ELSE 0 END), 0) FROM kv_file"
    );
    Ok(db.query_row(&sql, [], |row| {
        let n = |at| row.get::<_, i64>(at).map(|n| n.max(0) as u64);
        Ok(KvTotals { files: n(0)?, bytes: n(1)?, pinned_bytes: n(2)? })
    })?)
}

fn from_row(row: &Row) -> rusqlite::Result<CheckpointRow> {
    Ok(CheckpointRow {
        id: row.get(0)?,
        name: row.get(1)?,
        conversation: row.get(2)?,
        message: row.get(3)?,
        created_ms: row.get(4)?,
        bytes: row.get::<_, i64>(5)?.max(0) as u64,
    })
}

const COLUMNS: &str = "id, name, conversation, message, created_ms,
    (SELECT COALESCE(SUM(bytes), 0) FROM kv_use JOIN kv_file ON kv_file.name = file WHERE owner = checkpoint.id)";

pub(crate) fn insert(db: &Connection, row: &CheckpointRow) -> Result<()> {
    db.execute(
        "INSERT INTO checkpoint (id, name, conversation, message, created_ms) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![row.id, row.name, row.conversation, row.message, row.created_ms],
    )?;
    Ok(())
}

pub(crate) fn get(db: &Connection, id: &str) -> Result<CheckpointRow> {
    let sql = format!("SELECT {COLUMNS} FROM checkpoint WHERE id = ?1");
    let row = db.prepare_cached(&sql)?.query_row([id], from_row).optional()?;
    row.ok_or_else(|| SessionError::missing("checkpoint", id))
}

/// Lists named checkpoints, oldest first: of one conversation, or of all outside the trash.
pub(crate) fn list(db: &Connection, conversation: Option<&str>) -> Result<Vec<CheckpointRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM checkpoint WHERE (?1 IS NULL OR conversation = ?1)
         AND conversation IN (SELECT id FROM conversation WHERE deleted_ms IS NULL) ORDER BY created_ms, id"
    );
    let mut statement = db.prepare_cached(&sql)?;
    let rows = statement.query_map([conversation], from_row)?;
    super::readable_rows(rows)
}

/// Removes a named checkpoint; false if there was none.
pub(crate) fn remove_named(db: &Connection, id: &str) -> Result<bool> {
    Ok(db.execute("DELETE FROM checkpoint WHERE id = ?1", [id])? > 0)
}

pub(crate) fn remove_named_of(db: &Connection, conversation: &str) -> Result<()> {
    db.execute(
        "DELETE FROM kv_use WHERE owner IN (SELECT id FROM checkpoint WHERE conversation = ?1)",
        [conversation],
    )?;
    db.execute("DELETE FROM checkpoint WHERE conversation = ?1", [conversation])?;
    Ok(())
}
