//! The database opened for reading alone: where the disk is full, the folder cannot be written, or a newer version of the
//! program wrote the file, the history stays readable. Writes nothing anywhere, no lock and no shared memory of a WAL.

use std::io::Cursor;
use std::path::Path;

use io::Io;
use rusqlite::{Connection, OpenFlags};

use crate::db::{self, Notice};
use crate::error::{Result, SessionError};
use crate::readable_copy::with_suffix;
use crate::table::search;
use crate::{header, step_limit, wal};

/// Whether an error says that this place cannot be written, while what is there may be readable.
pub(crate) fn is_no_writing(error: &SessionError) -> bool {
    matches!(
        error.code(),
        "session.disk_full"
            | "session.disk_error"
            | "session.file"
            | "io.no_space"
            | "io.permission"
            | "io.failed"
    )
}

/// Whether a newer version of the program wrote the database: what is known of it can be read.
pub(crate) fn is_newer(error: &SessionError) -> bool {
    error.code() == "session.newer_schema"
}

/// Opens the file at `path`. `cause` is why it cannot be written.
pub(crate) fn open(path: &Path, cause: &SessionError, io: &dyn Io) -> Result<(Connection, Notice)> {
    let has_wal = io.len(&with_suffix(path, "-wal")).is_ok_and(|bytes| bytes > 0);
    let direct = if has_wal { None } else { open_current_file(path).ok() };
    let db = match direct {
        Some(db) => db,
        // Newer pages in a WAL, an older schema or damage: the whole is put together in memory.
        None => open_in_memory(path, io)?,
    };
    db.pragma_update(None, "query_only", true)?;
    if is_newer(cause) {
        return Ok((db, cause.clone()));
    }
    debug_assert!(is_no_writing(cause), "{cause}");
    let notice = SessionError::new(
        "session.read_only",
        "The disk is full or the data folder can't be written. Your chats can be read, but nothing new is saved.",
        "Free up disk space or check the permissions of the data folder, then restart Inglenook.",
    );
    Ok((db, notice))
}

/// Without a WAL no process writes, so that the file can be taken as unchanging: SQLite then needs no lock.
fn open_current_file(path: &Path) -> Result<Connection> {
    let db = open_file(path)?;
    db::check_current(&db)?;
    Ok(db)
}

/// The file alone, without its log.
pub(crate) fn open_file(path: &Path) -> Result<Connection> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut uri = String::from("file:");
    for byte in absolute.to_string_lossy().bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => uri.push(char::from(byte)),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let db = Connection::open_with_flags(uri, flags)?;
    db.pragma_update(None, "trusted_schema", false)?;
    Ok(db)
}

fn open_in_memory(path: &Path, io: &dyn Io) -> Result<Connection> {
    let mut bytes = io.read(path)?;
    if let Ok(log) = io.read(&with_suffix(path, "-wal")) {
        wal::apply(&mut bytes, &log);
    }
    let n_pages = u32::try_from(bytes.len() / header::PAGE_BYTES).unwrap_or(u32::MAX);
    header::repair(&mut bytes, n_pages);
    let mut db = Connection::open_in_memory()?;
    let n_bytes = bytes.len();
    step_limit::set(&mut db, n_bytes as u64)?;
    db.deserialize_read_exact("main", Cursor::new(bytes), n_bytes, false)?;
    let migrated = db::migrate_copy(&mut db, path).and_then(|()| db::check_current(&db));
    match migrated.and_then(|()| search::complete(&mut db)) {
        Ok(()) => {
            step_limit::remove(&mut db)?;
            Ok(db)
        }
        // Damaged, or of a newer version: what can be read of it.
        Err(_) => {
            step_limit::set(&mut db, n_bytes as u64)?;
            db::salvage_in_memory(&db)
        }
    }
}
