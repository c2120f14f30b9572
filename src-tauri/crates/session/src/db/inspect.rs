//! Database files that are read and checked, not written.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use crate::error::{Result, SessionError};
use crate::table::{self, lossy_text};

/// File name of the database in the data folder.
pub const FILE_NAME: &str = "inglenook.db";

/// Opens a damaged file or a backup for reading only.
pub(crate) fn open_to_read(path: &Path) -> Result<Connection> {
    let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    db.pragma_update(None, "trusted_schema", false)?;
    Ok(db)
}

/// Checks the whole file. If only the full-text index is inconsistent, rebuilds the index instead of failing.
pub(crate) fn quick_check(db: &Connection) -> Result<()> {
    let Err(error) = check(db, "quick_check(1)") else { return Ok(()) };
    let tables = |is_index: bool| -> Result<Vec<String>> {
        let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND (name LIKE 'search%') = ?1 AND name != 'search'";
        let mut statement = db.prepare(sql)?;
        let names = statement.query_map([is_index], |row| lossy_text(row, 0))?;
        Ok(names.collect::<rusqlite::Result<_>>()?)
    };
    let index = tables(true)?;
    if index.is_empty() {
        return Err(error);
    }
    // If any page is damaged, nothing is changed.
    for table in tables(false)?.iter().chain(&index) {
        check(db, &format!("quick_check('{table}')")).map_err(|_| error.clone())?;
    }
    db.execute_batch(table::search::ADD_SEARCH_FORM)?;
    check(db, "quick_check(1)")
}

/// Checks the whole file, and that indexes fit their tables.
pub(crate) fn full_check(db: &Connection) -> Result<()> {
    check(db, "integrity_check(1)")
}

fn check(db: &Connection, pragma: &str) -> Result<()> {
    let verdict = db.query_row(&format!("PRAGMA {pragma}"), [], |row| lossy_text(row, 0))?;
    if verdict == "ok" {
        return Ok(());
    }
    Err(SessionError::damaged(&verdict))
}
