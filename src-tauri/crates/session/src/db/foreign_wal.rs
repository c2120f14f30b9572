//! A write-ahead log that belongs to another database: copied, restored or synchronized beside ours. SQLite would apply it.
//!
//! Each database has a random identity. Where the file says another one than the file with its log, the log is set aside.

use std::path::{Path, PathBuf};

use io::{Clock, Io};
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use uuid::Uuid;

use crate::db::Notice;
use crate::error::{Result, SessionError};
use crate::read_only::open_file;
use crate::readable_copy::with_suffix;
use crate::schema::is_nearly_equal;
use crate::table::setting;

const IDENTITY: &str = "internal.identity";

/// Gives the database its identity, if it has none.
pub(super) fn ensure_identity(db: &Connection) -> Result<()> {
    match setting::internal(db, IDENTITY)? {
        Some(_) => Ok(()),
        None => setting::put(db, IDENTITY, &Uuid::now_v7().to_string()),
    }
}

/// Sets the log at `path` aside if it is another database's, with its index. Nothing has the database open.
pub(super) fn set_aside(path: &Path, io: &dyn Io, clock: &dyn Clock) -> Result<Option<Notice>> {
    let wal = with_suffix(path, "-wal");
    if !io.exists(&wal)? || io.len(&wal)? == 0 || !is_foreign(path) {
        return Ok(None);
    }
    let aside = with_suffix(path, &format!(".foreign-{}", clock.now_utc_ms()));
    let moved = |suffix: &str| -> Result<PathBuf> {
        let (from, to) = (with_suffix(path, suffix), with_suffix(&aside, suffix));
        if io.exists(&from)? {
            io.rename(&from, &to)?;
        }
        Ok(to)
    };
    moved("-shm")?;
    let kept = moved("-wal")?;
    Ok(Some(SessionError::new(
        "session.foreign_log",
        format!(
            "The log beside the chat database belonged to another database. It was not used, and is kept as {}.",
            kept.display()
        ),
        "If chats are missing, restore a backup. Do not copy files of the data folder while Inglenook runs.",
    )))
}

/// What can't be read says nothing: it is looked at as damage later.
fn is_foreign(path: &Path) -> bool {
    let alone = open_file(path).and_then(|db| setting::internal(&db, IDENTITY));
    let with_log = open_without_checkpoint(path).and_then(|db| setting::internal(&db, IDENTITY));
    let (Ok(Some(alone)), Ok(with_log)) = (alone, with_log) else { return false };
    // A few other bytes are damage, not another database.
    with_log.is_none_or(|other| !is_nearly_equal(alone.as_bytes(), other.as_bytes()))
}

/// The log is read, and neither carried over into the database nor removed.
fn open_without_checkpoint(path: &Path) -> Result<Connection> {
    let db = Connection::open(path)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    db.pragma_update(None, "query_only", true)?;
    Ok(db)
}
