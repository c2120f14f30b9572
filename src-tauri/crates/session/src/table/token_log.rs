//! Token ids that a model generated for a message, per model fingerprint.
//!
//! They are reused instead of tokenizing the text again, so that a KV cache stays valid token for token.

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

/// Adds every id of the answer, markup and reasoning included.
pub const ADD_WHOLE: &str = "ALTER TABLE token_log ADD COLUMN whole BLOB;";

/// Token ids of one message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenLog {
    /// Fingerprint of the model whose vocabulary the ids belong to.
    pub fingerprint: String,
    /// Ids of the visible text.
    pub text_ids: Vec<u32>,
    /// All generated ids in order, markup and reasoning included; empty if not recorded.
    pub all_ids: Vec<u32>,
}

/// Encodes ids as little-endian bytes.
pub fn to_bytes(ids: &[u32]) -> Vec<u8> {
    ids.iter().flat_map(|id| id.to_le_bytes()).collect()
}

/// Decodes ids from little-endian bytes.
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

/// Logs of a message. An unreadable log counts as absent: the text is tokenized again.
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
    super::readable_rows(rows)
}
