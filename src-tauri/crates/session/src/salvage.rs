//! What can still be read of a damaged database is carried over, row by row: one bad page takes its own
//! rows with it, not the rest.

use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use crate::db;

/// In an order that satisfies the references. Turns die with the file.
const TABLES: &[&str] =
    &["conversation", "message", "chunk", "token_log", "fold", "compression", "setting", "model"];

/// A message whose conversation's row was lost gets one; a branch whose last message was lost ends at the newest
/// that is left.
const MEND: &str = "
INSERT INTO conversation (id, title, model, leaf, activity, created_ms, updated_ms)
    SELECT conversation, 'Recovered conversation', COALESCE(MAX(model), ''), NULL, 0, MIN(created_ms), MAX(created_ms)
    FROM message WHERE conversation NOT IN (SELECT id FROM conversation) GROUP BY conversation;
UPDATE message SET parent = NULL WHERE parent NOT IN (SELECT id FROM message);
UPDATE conversation SET leaf =
    (SELECT id FROM message WHERE message.conversation = conversation.id ORDER BY position DESC LIMIT 1)
    WHERE leaf IS NULL OR leaf NOT IN (SELECT id FROM message);
";

/// Copies every readable row of `damaged` into the new database `into`; how many conversations it has then.
pub(crate) fn carry_over(damaged: &Path, into: &Connection) -> u32 {
    let Ok(from) = db::open_damaged(damaged) else { return 0 };
    // Rows come in any order here. These pragmas and statements fail only where nothing could be mended.
    let _ = into.pragma_update(None, "foreign_keys", false);
    for table in TABLES {
        // A table that can't be read at all leaves the others to be tried.
        let _ = copy(&from, into, table);
    }
    let _ = into.execute_batch(MEND);
    let _ = into.pragma_update(None, "foreign_keys", true);
    into.query_row("SELECT COUNT(*) FROM conversation", [], |row| row.get(0)).unwrap_or(0)
}

/// Reads forwards until the first bad page, then backwards from the end to it: rows seen twice are ignored.
fn copy(from: &Connection, into: &Connection, table: &str) -> rusqlite::Result<()> {
    for order in ["", " ORDER BY 1 DESC"] {
        let mut statement = from.prepare(&format!("SELECT * FROM {table}{order}"))?;
        let width = statement.column_count();
        let names = statement.column_names().collect::<Vec<_>>().join(", ");
        let marks: Vec<_> = (1..=width).map(|i| format!("?{i}")).collect();
        let insert = format!("INSERT OR IGNORE INTO {table} ({names}) VALUES ({})", marks.join(", "));
        let mut insert = into.prepare(&insert)?;
        let mut rows = statement.query([])?;
        while let Ok(Some(row)) = rows.next() {
            let values: rusqlite::Result<Vec<Value>> = (0..width).map(|i| row.get(i)).collect();
            if let Ok(values) = values {
                // A row that breaks a rule of its table is left behind in the damaged file.
                let _ = insert.execute(params_from_iter(values));
            }
        }
    }
    Ok(())
}
