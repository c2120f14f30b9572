//! The tables, one file each: SQL, row type and queries. `MIGRATIONS` in db.rs lists the SQL that creates them.
#![allow(missing_docs)] // SQL constants and columns; the session's methods are the documented interface

pub mod api_object;
pub mod attachment;
pub mod checkpoint;
pub mod chunk;
pub mod compaction;
pub mod compaction_strategy;
pub mod connection;
pub mod conversation;
pub mod document;
pub mod download;
pub mod endpoint;
pub mod folder;
pub mod message;
pub mod model;
pub mod model_folder;
pub mod model_run;
pub mod note;
pub mod preset;
pub mod project;
pub mod role;
pub mod search;
pub mod setting;
mod text_enum;
pub mod token_log;
pub mod tool_server;
pub mod turn;

/// A text that damage may have left without valid UTF-8: it then equals no expected one.
pub(crate) fn lossy_text(row: &rusqlite::Row, column: usize) -> rusqlite::Result<String> {
    let bytes = row.get_ref(column)?.as_bytes()?;
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

/// Collects rows. One that cannot be read is skipped: damage to it costs no other.
pub(crate) fn readable_rows<T>(
    rows: impl Iterator<Item = rusqlite::Result<T>>,
) -> crate::error::Result<Vec<T>> {
    let mut readable = Vec::new();
    for row in rows {
        match row {
            Ok(row) => readable.push(row),
            // No error of SQLite, but a value that has another type or is no text.
            Err(error) if error.sqlite_error_code().is_none() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(readable)
}
