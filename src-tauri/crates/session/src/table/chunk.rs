//! Pieces of the answer that is being written: appended, never rewritten, folded into the message at
//! its end.

use rusqlite::{Connection, params};

use crate::error::Result;
use crate::table::token_log::{self, TokenLog};
use crate::turns::Piece;

pub const CREATE: &str = "
CREATE TABLE chunk (
    message   TEXT NOT NULL REFERENCES message(id) ON DELETE CASCADE,
    n         INTEGER NOT NULL,
    text      TEXT NOT NULL,
    reasoning TEXT NOT NULL,
    PRIMARY KEY (message, n)
) STRICT, WITHOUT ROWID;
";

/// Every id that was generated for a piece, and the model's whose they are.
pub const ADD_IDS: &str = "
ALTER TABLE chunk ADD COLUMN ids BLOB;
ALTER TABLE chunk ADD COLUMN fingerprint TEXT;
";

/// What the pieces of a message make together.
#[derive(Debug, Default)]
pub(crate) struct Folded {
    pub text: String,
    pub reasoning: String,
    ids: Vec<u32>,
    fingerprint: String,
}

impl Folded {
    /// The ids, where it is known whose they are. Which of them made the text is not.
    pub fn log(self) -> Option<TokenLog> {
        let Self { ids, fingerprint, .. } = self;
        (!fingerprint.is_empty() && !ids.is_empty()).then(|| TokenLog {
            fingerprint,
            ids: Vec::new(),
            whole: ids,
        })
    }
}

pub(crate) fn append(db: &Connection, message: &str, piece: &Piece) -> Result<()> {
    let sql = "INSERT INTO chunk (message, n, text, reasoning, ids, fingerprint)
               VALUES (?1, (SELECT COALESCE(MAX(n), 0) + 1 FROM chunk WHERE message = ?1), ?2, ?3, ?4, ?5)";
    let ids = token_log::to_bytes(piece.ids);
    db.prepare_cached(sql)?.execute(params![message, piece.text, piece.reasoning, ids, piece.fingerprint])?;
    Ok(())
}

/// All so far. A piece that can't be read costs itself.
pub(crate) fn fold(db: &Connection, message: &str) -> Result<Folded> {
    let sql = "SELECT text, reasoning, ids, fingerprint FROM chunk WHERE message = ?1 ORDER BY n";
    let mut statement = db.prepare_cached(sql)?;
    let mut rows = statement.query([message])?;
    let mut folded = Folded::default();
    let mut is_whole = true;
    while let Some(row) = rows.next()? {
        folded.text.push_str(&row.get::<_, String>(0).unwrap_or_default());
        folded.reasoning.push_str(&row.get::<_, String>(1).unwrap_or_default());
        match (row.get::<_, Option<Vec<u8>>>(2), row.get::<_, Option<String>>(3)) {
            (Ok(Some(ids)), Ok(Some(fingerprint))) => {
                folded.ids.extend(token_log::from_bytes(&ids));
                folded.fingerprint = fingerprint;
            }
            _ => is_whole = false,
        }
    }
    if !is_whole {
        folded.ids.clear();
    }
    Ok(folded)
}

pub(crate) fn clear(db: &Connection, message: &str) -> Result<()> {
    db.execute("DELETE FROM chunk WHERE message = ?1", [message])?;
    Ok(())
}
