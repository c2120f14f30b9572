//! Chunks of the answer that is being written: appended, never rewritten, joined into the message when it ends.

use rusqlite::{Connection, params};

use crate::error::Result;
use crate::table::token_log::{self, TokenLog};

pub const CREATE: &str = "
CREATE TABLE chunk (
    message   TEXT NOT NULL REFERENCES message(id) ON DELETE CASCADE,
    n         INTEGER NOT NULL,
    text      TEXT NOT NULL,
    reasoning TEXT NOT NULL,
    PRIMARY KEY (message, n)
) STRICT, WITHOUT ROWID;
";

/// Adds the token ids generated for a chunk, and the fingerprint of the model they belong to.
pub const ADD_IDS: &str = "
ALTER TABLE chunk ADD COLUMN ids BLOB;
ALTER TABLE chunk ADD COLUMN fingerprint TEXT;
";

/// A chunk of an answer that is being written.
#[derive(Debug, Clone, Copy, Default)]
pub struct AnswerChunk<'a> {
    /// Text since the last chunk.
    pub text: &'a str,
    /// Reasoning since the last chunk.
    pub reasoning: &'a str,
    /// Every token id that was generated for the chunk, markup included.
    pub ids: &'a [u32],
    /// Fingerprint of the model whose vocabulary the ids belong to; empty if unknown.
    pub fingerprint: &'a str,
}

/// All chunks of a message, joined.
#[derive(Debug, Default)]
pub(crate) struct AssembledAnswer {
    pub text: String,
    pub reasoning: String,
    ids: Vec<u32>,
    fingerprint: String,
}

impl AssembledAnswer {
    /// The token log, if the model is known. Which ids made the visible text is unknown, so `text_ids` is empty.
    pub fn log(self) -> Option<TokenLog> {
        let Self { ids, fingerprint, .. } = self;
        (!fingerprint.is_empty() && !ids.is_empty()).then(|| TokenLog {
            fingerprint,
            text_ids: Vec::new(),
            all_ids: ids,
        })
    }
}

pub(crate) fn append(db: &Connection, message: &str, chunk: &AnswerChunk) -> Result<()> {
    let sql = "INSERT INTO chunk (message, n, text, reasoning, ids, fingerprint)
               VALUES (?1, (SELECT COALESCE(MAX(n), 0) + 1 FROM chunk WHERE message = ?1), ?2, ?3, ?4, ?5)";
    let ids = token_log::to_bytes(chunk.ids);
    db.prepare_cached(sql)?.execute(params![message, chunk.text, chunk.reasoning, ids, chunk.fingerprint])?;
    Ok(())
}

/// Joins all chunks so far. An unreadable chunk is skipped.
pub(crate) fn assemble(db: &Connection, message: &str) -> Result<AssembledAnswer> {
    let sql = "SELECT text, reasoning, ids, fingerprint FROM chunk WHERE message = ?1 ORDER BY n";
    let mut statement = db.prepare_cached(sql)?;
    let mut rows = statement.query([message])?;
    let mut answer = AssembledAnswer::default();
    let mut is_whole = true;
    while let Some(row) = rows.next()? {
        answer.text.push_str(&row.get::<_, String>(0).unwrap_or_default());
        answer.reasoning.push_str(&row.get::<_, String>(1).unwrap_or_default());
        match (row.get::<_, Option<Vec<u8>>>(2), row.get::<_, Option<String>>(3)) {
            (Ok(Some(ids)), Ok(Some(fingerprint))) => {
                answer.ids.extend(token_log::from_bytes(&ids));
                answer.fingerprint = fingerprint;
            }
            _ => is_whole = false,
        }
    }
    if !is_whole {
        answer.ids.clear();
    }
    Ok(answer)
}

pub(crate) fn clear(db: &Connection, message: &str) -> Result<()> {
    db.execute("DELETE FROM chunk WHERE message = ?1", [message])?;
    Ok(())
}
