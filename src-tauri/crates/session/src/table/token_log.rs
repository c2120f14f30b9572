//! The ids that a model really generated for a message, per model fingerprint: reused instead of
//! tokenising its text again, so that a KV cache stays valid word for word.

use rusqlite::{Connection, params};

use crate::error::Result;

pub const CREATE: &str = "
CREATE TABLE token_log (
    message     TEXT NOT NULL REFERENCES message(id) ON DELETE CASCADE,
    fingerprint TEXT NOT NULL,
    ids         BLOB NOT NULL,
    PRIMARY KEY (message, fingerprint)
) STRICT, WITHOUT ROWID;
";

/// Every id from the answer's first on, markup and reasoning included.
pub const ADD_WHOLE: &str = "ALTER TABLE token_log ADD COLUMN whole BLOB;";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenLog {
    /// Of the model whose vocabulary these are.
    pub fingerprint: String,
    /// Of the text alone.
    pub text_ids: Vec<u32>,
    /// Of all that was generated, in order; empty where that was not kept.
    pub all_ids: Vec<u32>,
}

/// Little-endian, as they are kept.
pub fn to_bytes(ids: &[u32]) -> Vec<u8> {
    ids.iter().flat_map(|id| id.to_le_bytes()).collect()
}

pub fn from_bytes(bytes: &[u8]) -> impl Iterator<Item = u32> {
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().map(|word| u32::from_le_bytes(*word))
}

pub(crate) fn put(db: &Connection, message: &str, log: &TokenLog) -> Result<()> {
    db.execute(
        "INSERT OR REPLACE INTO token_log (message, fingerprint, ids, whole) VALUES (?1, ?2, ?3, ?4)",
        params![message, log.fingerprint, to_bytes(&log.text_ids), to_bytes(&log.all_ids)],
    )?;
    Ok(())
}

pub(crate) fn remove(db: &Connection, message: &str) -> Result<()> {
    db.execute("DELETE FROM token_log WHERE message = ?1", [message])?;
    Ok(())
}

/// A log that can't be read is as if it had never been kept: the text is tokenised again.
pub(crate) fn of(db: &Connection, message: &str) -> Result<Vec<TokenLog>> {
    let sql = "SELECT fingerprint, ids, whole FROM token_log WHERE message = ?1";
    let mut statement = db.prepare_cached(sql)?;
    let rows = statement.query_map([message], |row| {
        let bytes: Vec<u8> = row.get(1).unwrap_or_default();
        let whole: Vec<u8> = row.get(2).unwrap_or_default();
        Ok(TokenLog {
            fingerprint: row.get(0)?,
            text_ids: from_bytes(&bytes).collect(),
            all_ids: from_bytes(&whole).collect(),
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
