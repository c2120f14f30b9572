//! Recovery from a damaged database: copies every readable row, so that a bad page loses only its own rows.

use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use crate::db::inspect;

/// Tables in an order that satisfies references. Turns are not recovered.
const TABLES: &[&str] = &[
    "folder",
    "conversation",
    "message",
    "chunk",
    "token_log",
    "document",
    "attachment",
    "passage",
    "fold",
    "compression",
    "setting",
    "model",
    "model_folder",
    "model_run",
    "kv_file",
    "kv_use",
    "checkpoint",
    "endpoint",
    "tool_server",
    "connection",
];

/// Restores consistency. A message without a conversation gets one; a branch whose last message was lost ends at the
/// newest one left. A folder without its parent, or in a cycle after two files were merged, moves to the top level.
const REPAIR_REFERENCES: &str = "
INSERT INTO conversation (id, title, model, leaf, activity, created_ms, updated_ms)
    SELECT conversation, 'Recovered conversation', COALESCE(MAX(model), ''), NULL, 0, MIN(created_ms), MAX(created_ms)
    FROM message WHERE conversation NOT IN (SELECT id FROM conversation) GROUP BY conversation;
UPDATE message SET parent = NULL WHERE parent NOT IN (SELECT id FROM message);
UPDATE folder SET parent = NULL WHERE parent NOT IN (SELECT id FROM folder);
UPDATE folder SET parent = NULL WHERE id NOT IN (
    WITH RECURSIVE held(id) AS (SELECT id FROM folder WHERE parent IS NULL
        UNION SELECT folder.id FROM folder JOIN held ON folder.parent = held.id) SELECT id FROM held);
UPDATE conversation SET folder = NULL WHERE folder NOT IN (SELECT id FROM folder);
UPDATE message SET gone = NULL, gone_ms = NULL WHERE gone NOT IN (SELECT id FROM message);
DELETE FROM chunk WHERE message NOT IN (SELECT id FROM message);
DELETE FROM attachment WHERE message NOT IN (SELECT id FROM message) OR document NOT IN (SELECT sha256 FROM document);
DELETE FROM passage WHERE message NOT IN (SELECT id FROM message) OR attachment NOT IN (SELECT id FROM attachment);
DELETE FROM document WHERE sha256 NOT IN (SELECT document FROM attachment);
DELETE FROM token_log WHERE message NOT IN (SELECT id FROM message);
UPDATE conversation SET leaf =
    (SELECT id FROM message WHERE message.conversation = conversation.id AND gone IS NULL ORDER BY position DESC LIMIT 1)
    WHERE leaf IS NULL OR leaf NOT IN (SELECT id FROM message);
";

/// Copies every readable row of `from` that `into` lacks. Returns the number of conversations in `into`.
pub(crate) fn copy_readable_rows(from: &Path, into: &Connection) -> u32 {
    let count = || into.query_row("SELECT COUNT(*) FROM conversation", [], |row| row.get(0)).unwrap_or(0);
    let Ok(from) = inspect::open_to_read(from) else { return count() };
    // Rows come in any order here. If these statements fail, nothing could be repaired anyway.
    let _ = into.pragma_update(None, "foreign_keys", false);
    for table in TABLES {
        // An unreadable table does not stop the others.
        let _ = copy_table(&from, into, table);
    }
    let _ = into.pragma_update(None, "foreign_keys", true);
    count()
}

/// Repairs references once all readable rows are copied.
pub(crate) fn repair_references(db: &Connection) {
    let _ = db.pragma_update(None, "foreign_keys", false);
    // If it fails, nothing could be repaired anyway.
    let _ = db.execute_batch(REPAIR_REFERENCES);
    let _ = db.pragma_update(None, "foreign_keys", true);
}

/// Copies a table forwards to the first bad page, then backwards from the end. Rows seen twice are ignored.
fn copy_table(from: &Connection, into: &Connection, table: &str) -> rusqlite::Result<()> {
    for order in ["", " ORDER BY 1 DESC"] {
        let mut statement = from.prepare(&format!("SELECT * FROM {table}{order}"))?;
        let known = into.prepare(&format!("SELECT * FROM {table} LIMIT 0"))?;
        let known: Vec<String> = known.column_names().map(str::to_owned).collect();
        let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
        // Unknown columns of a newer version are skipped.
        let taken: Vec<usize> = (0..names.len()).filter(|&at| known.contains(&names[at])).collect();
        let marks: Vec<_> = (1..=taken.len()).map(|i| format!("?{i}")).collect();
        let columns: Vec<_> = taken.iter().map(|&at| names[at].as_str()).collect();
        let (columns, marks) = (columns.join(", "), marks.join(", "));
        let insert = format!("INSERT OR IGNORE INTO {table} ({columns}) VALUES ({marks})");
        let mut insert = into.prepare(&insert)?;
        let mut rows = statement.query([])?;
        while let Ok(Some(row)) = rows.next() {
            let values: rusqlite::Result<Vec<Value>> = taken.iter().map(|&at| row.get(at)).collect();
            if let Ok(values) = values {
                // A row that violates a constraint stays behind in the damaged file.
                let _ = insert.execute(params_from_iter(values));
            }
        }
    }
    Ok(())
}
