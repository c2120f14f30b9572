//! Speed and memory of each model's best run on this computer, beside the prediction. `foretold` means predicted.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::Result;

pub const CREATE: &str = "
CREATE TABLE model_run (
    model            TEXT NOT NULL,
    kv               TEXT NOT NULL,
    tok_s            REAL NOT NULL,
    foretold_tok_s   REAL,
    memory_bytes     INTEGER,
    foretold_bytes   INTEGER NOT NULL,
    tokens           INTEGER NOT NULL,
    at_ms            INTEGER NOT NULL,
    PRIMARY KEY (model, kv)
) STRICT, WITHOUT ROWID;
";

/// The best run of a model with one KV precision.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelRunRow {
    /// Library id of the model.
    pub model: String,
    /// Precision of the KV cache.
    pub kv: String,
    pub tok_s: f64,
    pub foretold_tok_s: Option<f64>,
    /// Measured memory; None if other models were loaded.
    pub memory_bytes: Option<i64>,
    pub foretold_bytes: i64,
    /// Length of the conversation in tokens.
    pub tokens: u32,
    pub at_ms: i64,
}

fn from_row(row: &Row) -> rusqlite::Result<ModelRunRow> {
    Ok(ModelRunRow {
        model: row.get(0)?,
        kv: row.get(1)?,
        tok_s: row.get(2)?,
        foretold_tok_s: row.get(3)?,
        memory_bytes: row.get(4)?,
        foretold_bytes: row.get(5)?,
        tokens: row.get(6)?,
        at_ms: row.get(7)?,
    })
}

/// Inserts or replaces a run.
pub(crate) fn put(db: &Connection, row: &ModelRunRow) -> Result<()> {
    db.execute(
        "INSERT OR REPLACE INTO model_run
         (model, kv, tok_s, foretold_tok_s, memory_bytes, foretold_bytes, tokens, at_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            row.model,
            row.kv,
            row.tok_s,
            row.foretold_tok_s,
            row.memory_bytes,
            row.foretold_bytes,
            row.tokens,
            row.at_ms,
        ],
    )?;
    Ok(())
}

pub(crate) fn get(db: &Connection, model: &str, kv: &str) -> Result<Option<ModelRunRow>> {
    let mut statement = db.prepare_cached(
        "SELECT model, kv, tok_s, foretold_tok_s, memory_bytes, foretold_bytes, tokens, at_ms
         FROM model_run WHERE model = ?1 AND kv = ?2",
    )?;
    Ok(statement.query_row([model, kv], from_row).optional()?)
}

pub(crate) fn remove(db: &Connection, model: &str) -> Result<()> {
    db.execute("DELETE FROM model_run WHERE model = ?1", [model])?;
    Ok(())
}
