//! Recovery from a damaged database: copies every readable row, so that a bad page loses only its own rows.

use std::path::Path;

use io::Io;
use rusqlite::types::Value;
use rusqlite::{Connection, Statement, params_from_iter};

use crate::readable_copy::{ReadableCopy, bytes_with_wal, open_tolerantly};
use crate::schema;

/// Places after a bad page where reading is tried again, at growing distances: enough to pass every page of a table.
const MAX_PROBES: u32 = 2048;

/// Rows of a page at most, in steps of one: beyond them the distance doubles.
const NEAR_PROBES: u32 = 256;

/// What is missing although everything readable was copied.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MissingRows {
    /// Chats whose title and folder are lost.
    pub n_titles: u32,
    /// Messages that others refer to.
    pub n_messages: u32,
    /// Places of the file that could not be read.
    pub n_bad_places: u32,
}

/// Tables in an order that satisfies references. Turns are not recovered.
const TABLES: &[&str] = &[
    "folder",
    "project",
    "conversation",
    "message",
    "chunk",
    "token_log",
    "document",
    "attachment",
    "passage",
    "project_file",
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
    "preset",
    "note",
    "download",
    "file_hash",
    "api_object",
];

/// Restores consistency. A message without a conversation gets one; a branch whose last message was lost ends at the
/// newest one left. A folder without its parent, or in a cycle after two files were merged, moves to the top level.
const REPAIR_REFERENCES: &str = "
INSERT INTO conversation (id, title, model, leaf, activity, created_ms, updated_ms)
    SELECT conversation, 'Recovered conversation', COALESCE(MAX(model), ''), NULL, 0, MIN(created_ms), MAX(created_ms)
    FROM message WHERE conversation NOT IN (SELECT id FROM conversation) GROUP BY conversation;
UPDATE message SET parent = NULL WHERE parent NOT IN (SELECT id FROM message);
UPDATE message SET parent = NULL WHERE id NOT IN (
    WITH RECURSIVE held(id) AS (SELECT id FROM message WHERE parent IS NULL
        UNION SELECT message.id FROM message JOIN held ON message.parent = held.id) SELECT id FROM held);
UPDATE folder SET parent = NULL WHERE parent NOT IN (SELECT id FROM folder);
UPDATE folder SET parent = NULL WHERE id NOT IN (
    WITH RECURSIVE held(id) AS (SELECT id FROM folder WHERE parent IS NULL
        UNION SELECT folder.id FROM folder JOIN held ON folder.parent = held.id) SELECT id FROM held);
UPDATE conversation SET folder = NULL WHERE folder NOT IN (SELECT id FROM folder);
UPDATE message SET gone = NULL, gone_ms = NULL WHERE gone NOT IN (SELECT id FROM message);
DELETE FROM chunk WHERE message NOT IN (SELECT id FROM message);
DELETE FROM attachment WHERE message NOT IN (SELECT id FROM message) OR document NOT IN (SELECT sha256 FROM document);
DELETE FROM passage WHERE message NOT IN (SELECT id FROM message) OR attachment NOT IN (SELECT id FROM attachment);
DELETE FROM project WHERE folder NOT IN (SELECT id FROM folder);
DELETE FROM project_file WHERE folder NOT IN (SELECT id FROM folder) OR document NOT IN (SELECT sha256 FROM document);
DELETE FROM document WHERE sha256 NOT IN (SELECT document FROM attachment UNION SELECT document FROM project_file);
DELETE FROM token_log WHERE message NOT IN (SELECT id FROM message);
UPDATE conversation SET leaf =
    (SELECT id FROM message WHERE message.conversation = conversation.id AND gone IS NULL ORDER BY position DESC LIMIT 1)
    WHERE leaf IS NULL OR leaf NOT IN (SELECT id FROM message);
";

/// Copies every readable row of `from` that `into` lacks, in four ways, so that damage to page 1 or the schema costs no
/// table. `expected` is an empty database of this version. Returns the number of places that could not be read.
pub(crate) fn copy_damaged(from: &Path, into: &Connection, expected: &Connection, io: &dyn Io) -> u32 {
    let _ = into.pragma_update(None, "foreign_keys", false);
    let mut n_bad = 0;
    // Without space for a copy, the schema has to do as it is.
    if let Ok(copy) = ReadableCopy::make(from, io) {
        let plain =
            copy.open_as_is().map(|db| schema::plain_tables(&db, expected, TABLES)).unwrap_or_default();
        for table in &plain {
            let mut n_fewest = None;
            for root in &table.roots {
                let Ok(db) = copy.open_table(table, *root) else { continue };
                let n = copy_table(&db, into, &table.name).unwrap_or(1);
                n_fewest = Some(n_fewest.map_or(n, |fewest: u32| fewest.min(n)));
            }
            n_bad += n_fewest.unwrap_or(1);
        }
    } else {
        n_bad = 1;
    }
    copy_readable_rows(from, into, io);
    n_bad
}

/// Copies every readable row of `from` that `into` lacks. Returns the number of conversations in `into`.
pub(crate) fn copy_readable_rows(from: &Path, into: &Connection, io: &dyn Io) -> u32 {
    if let Ok(from) = open_tolerantly(from, bytes_with_wal(from, io)) {
        copy_tables(&from, into);
    }
    n_conversations(into)
}

/// Copies every readable row of an open database.
pub(crate) fn copy_tables(from: &Connection, into: &Connection) {
    // Rows come in any order here. If these statements fail, nothing could be repaired anyway.
    let _ = into.pragma_update(None, "foreign_keys", false);
    for table in TABLES {
        // An unreadable table does not stop the others.
        let _ = copy_table(from, into, table);
    }
    let _ = into.pragma_update(None, "foreign_keys", true);
}

/// Number of conversations.
pub(crate) fn n_conversations(db: &Connection) -> u32 {
    db.query_row("SELECT COUNT(*) FROM conversation", [], |row| row.get(0)).unwrap_or(0)
}

/// Repairs references once all readable rows are copied, and counts what they lead to in vain.
pub(crate) fn repair_references(db: &Connection) -> MissingRows {
    let count = |sql: &str| db.query_row(sql, [], |row| row.get(0)).unwrap_or(0);
    let missing = MissingRows {
        n_titles: count(
            "SELECT COUNT(DISTINCT conversation) FROM message WHERE conversation NOT IN (SELECT id FROM conversation)",
        ),
        n_messages: count(
            "SELECT COUNT(*) FROM (SELECT parent AS id FROM message WHERE parent IS NOT NULL
                 UNION SELECT leaf FROM conversation WHERE leaf IS NOT NULL)
             WHERE id NOT IN (SELECT id FROM message)",
        ),
        n_bad_places: 0,
    };
    let _ = db.pragma_update(None, "foreign_keys", false);
    // If it fails, nothing could be repaired anyway.
    let _ = db.execute_batch(REPAIR_REFERENCES);
    let _ = db.pragma_update(None, "foreign_keys", true);
    missing
}

/// Copies a table forwards, past bad pages where it has row numbers, then backwards from the end. Rows seen twice are
/// ignored. Returns the number of places that could not be read.
fn copy_table(from: &Connection, into: &Connection, table: &str) -> rusqlite::Result<u32> {
    let known = column_names(into, table)?;
    // Unknown columns of a newer version are skipped, and names that the damage made unreadable.
    let taken: Vec<_> = column_names(from, table)?.into_iter().filter(|name| known.contains(name)).collect();
    let marks: Vec<_> = (1..=taken.len()).map(|i| format!("?{i}")).collect();
    let columns = taken.join(", ");
    let insert = format!("INSERT OR IGNORE INTO {table} ({columns}) VALUES ({})", marks.join(", "));
    let mut insert = into.prepare(&insert)?;
    let n_bad = match from
        .prepare(&format!("SELECT rowid, {columns} FROM {table} WHERE rowid > ?1 ORDER BY rowid"))
    {
        Ok(mut rows) => copy_numbered_rows(&mut rows, &mut insert, taken.len()),
        Err(_) => {
            let mut rows = from.prepare(&format!("SELECT {columns} FROM {table}"))?;
            copy_rows(&mut rows, &mut insert, taken.len())
        }
    };
    if n_bad > 0 {
        let mut rows = from.prepare(&format!("SELECT {columns} FROM {table} ORDER BY 1 DESC"))?;
        copy_rows(&mut rows, &mut insert, taken.len());
    }
    Ok(n_bad)
}

/// Columns of a table whose names are text.
fn column_names(db: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = db.prepare("SELECT name FROM pragma_table_info(?1)")?;
    let mut rows = statement.query([table])?;
    let mut names = Vec::new();
    while let Some(row) = rows.next()? {
        // `Statement::column_names` panics where a name is not UTF-8.
        let name = row.get_ref(0)?.as_bytes().ok().and_then(|name| std::str::from_utf8(name).ok());
        names.extend(name.map(str::to_owned));
    }
    Ok(names)
}

/// Copies rows until one cannot be read; 1 if there was such a one.
fn copy_rows(rows: &mut Statement, insert: &mut Statement, n_columns: usize) -> u32 {
    let Ok(mut rows) = rows.query([]) else { return 1 };
    loop {
        match rows.next() {
            Ok(Some(row)) => insert_row(row, 0, n_columns, insert),
            Ok(None) => return 0,
            Err(_) => return 1,
        }
    }
}

/// Copies rows with numbers; after one that cannot be read it goes on behind it.
fn copy_numbered_rows(select: &mut Statement, insert: &mut Statement, n_columns: usize) -> u32 {
    let (mut last, mut n_bad, mut n_probes, mut is_in_bad) = (i64::MIN, 0, 0_u32, false);
    let mut distance = 1_i64;
    while n_probes < MAX_PROBES {
        let Ok(mut rows) = select.query([last]) else { return n_bad + 1 };
        let is_bad = loop {
            match rows.next() {
                Ok(Some(row)) => {
                    last = row.get(0).unwrap_or(last);
                    (is_in_bad, distance) = (false, 1);
                    insert_row(row, 1, n_columns, insert);
                }
                Ok(None) => break false,
                Err(_) => break true,
            }
        };
        if !is_bad {
            return n_bad;
        }
        n_bad += u32::from(!std::mem::replace(&mut is_in_bad, true));
        n_probes += 1;
        if n_probes % NEAR_PROBES == 0 {
            distance = distance.saturating_mul(2);
        }
        last = last.max(0).saturating_add(distance);
    }
    n_bad
}

/// A row that violates a constraint stays behind in the damaged file.
fn insert_row(row: &rusqlite::Row, first: usize, n_columns: usize, insert: &mut Statement) {
    let values: rusqlite::Result<Vec<Value>> = (first..first + n_columns).map(|at| row.get(at)).collect();
    if let Ok(values) = values {
        let _ = insert.execute(params_from_iter(values));
    }
}
