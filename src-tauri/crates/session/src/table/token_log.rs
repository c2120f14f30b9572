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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenLog {
    /// Of the model whose vocabulary these are.
    pub fingerprint: String,
    pub ids: Vec<u32>,
}

pub(crate) fn put(db: &Connection, message: &str, log: &TokenLog) -> Result<()> {
    let bytes: Vec<u8> = log.ids.iter().flat_map(|id| id.to_le_bytes()).collect();
    db.execute(
        "INSERT OR REPLACE INTO token_log (message, fingerprint, ids) VALUES (?1, ?2, ?3)",
        params![message, log.fingerprint, bytes],
    )?;
    Ok(())
}

pub(crate) fn of(db: &Connection, message: &str) -> Result<Vec<TokenLog>> {
    let mut statement = db.prepare_cached("SELECT fingerprint, ids FROM token_log WHERE message = ?1")?;
    let rows = statement.query_map([message], |row| {
        let bytes: Vec<u8> = row.get(1)?;
        let (words, _) = bytes.as_chunks::<4>();
        Ok(TokenLog {
            fingerprint: row.get(0)?,
            ids: words.iter().map(|word| u32::from_le_bytes(*word)).collect(),
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
