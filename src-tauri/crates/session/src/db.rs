//! The database file: opened with settings that survive power cuts, migrated with a backup.
//!
//! A damaged file is set aside, never emptied. Knows nothing of what the tables mean.

pub(crate) mod inspect;

use std::path::{Path, PathBuf};
use std::time::Duration;

use io::{Clock, Io};
use rusqlite::Connection;

use crate::error::{Result, SessionError};
use crate::{backup, recover, table};
use inspect::quick_check;

/// Earlier SQLite versions could corrupt a database in WAL mode.
const MIN_SQLITE_VERSION: i32 = 3_051_003;

/// How long a write waits for another process (a second window, a backup program).
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Each entry raises the schema by one version. A released entry never changes.
const MIGRATIONS: &[&[&str]] = &[
    &[
        table::conversation::CREATE,
        table::message::CREATE,
        table::chunk::CREATE,
        table::token_log::CREATE,
        table::turn::CREATE,
        table::setting::CREATE,
        table::model::CREATE,
    ],
    &[table::message::ADD_TOOL_CALLS],
    &[table::compaction::CREATE, table::compaction_strategy::CREATE],
    &[
        table::folder::CREATE,
        table::conversation::ADD_TREE,
        table::message::ADD_TREE,
        table::chunk::ADD_IDS,
        table::token_log::ADD_WHOLE,
        table::search::CREATE,
    ],
    &[table::checkpoint::CREATE],
    &[table::preset::CREATE],
    &[table::download::CREATE],
    &[table::connection::CREATE, table::endpoint::CREATE],
    &[table::model::ADD_LIBRARY, table::model_folder::CREATE, table::model_run::CREATE],
    &[table::tool_server::CREATE],
    &[table::document::CREATE, table::attachment::CREATE],
    &[table::attachment::ADD_TOKENS],
    &[table::folder::ADD_PARENT, table::model::ADD_SKILLS],
    &[table::search::ADD_SEARCH_FORM],
];

/// A message for the user although nothing failed.
pub type Notice = SessionError;

/// How the previous run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastExit {
    Clean,
    /// By a crash, a kill or a power cut: the file is checked before use.
    Unclean,
}

/// Opens the database, or makes it. A damaged one is set aside and its readable rows are copied; a notice reports that.
/// Errors leave the file unchanged.
pub(crate) fn open(
    path: &Path,
    last: LastExit,
    io: &dyn Io,
    clock: &dyn Clock,
) -> Result<(Connection, Vec<Notice>)> {
    if rusqlite::version_number() < MIN_SQLITE_VERSION {
        return Err(SessionError::new(
            "session.sqlite_too_old",
            format!(
                "This program was built with SQLite {}, which can damage databases.",
                rusqlite::version()
            ),
            "Build it with the bundled SQLite.",
        ));
    }
    match try_open(path, last, io, clock) {
        Ok(db) => Ok((db, Vec::new())),
        Err(error) if error.is_damage() => {
            let aside = set_aside(path, io, clock)?;
            let db = try_open(path, LastExit::Clean, io, clock)?;
            let notice = recovered(&db, path, &aside, io);
            Ok((db, vec![notice]))
        }
        Err(error) => Err(error),
    }
}

/// Copies the readable rows of the damaged file, and then what only the newest backup has, into the new one. No backup
/// contains permanently deleted data, so anything that only the backup has was lost by the damage.
fn recovered(db: &Connection, path: &Path, aside: &Path, io: &dyn Io) -> Notice {
    let from_file = recover::copy_readable_rows(aside, db);
    let folder = path.parent().unwrap_or(Path::new(""));
    let backup = backup::newest_readable(folder, io);
    let all = backup.as_ref().map_or(from_file, |backup| recover::copy_readable_rows(&backup.path, db));
    recover::repair_references(db);
    let all: u32 = db.query_row("SELECT COUNT(*) FROM conversation", [], |row| row.get(0)).unwrap_or(all);
    let from_backup = match &backup {
        Some(backup) if all > from_file => {
            format!(" {} of them come from the backup {}.", all - from_file, backup.file_name())
        }
        Some(_) | None => String::new(),
    };
    SessionError::new(
        "session.damaged",
        format!(
            "The chat database was damaged. {all} chats were recovered.{from_backup} The damaged file is kept as {}.",
            aside.display()
        ),
        "Nothing was deleted. Keep that file if something is missing.",
    )
}

fn try_open(path: &Path, last: LastExit, io: &dyn Io, clock: &dyn Clock) -> Result<Connection> {
    let mut db = Connection::open(path)?;
    configure(&db)?;
    if last == LastExit::Unclean {
        quick_check(&db)?;
    }
    migrate(&mut db, path, io, clock)?;
    Ok(db)
}

fn configure(db: &Connection) -> Result<()> {
    db.busy_timeout(BUSY_TIMEOUT)?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    db.pragma_update(None, "synchronous", "FULL")?;
    db.pragma_update(None, "foreign_keys", true)?;
    db.pragma_update(None, "trusted_schema", false)?;
    db.pragma_update(None, "secure_delete", true)?;
    db.pragma_update(None, "cell_size_check", true)?;
    if cfg!(target_os = "macos") {
        // On macOS fsync alone leaves data in the drive's cache.
        db.pragma_update(None, "fullfsync", true)?;
        db.pragma_update(None, "checkpoint_fullfsync", true)?;
    }
    Ok(())
}

/// Schema version of this program.
fn current_version() -> u32 {
    MIGRATIONS.len() as u32
}

fn migrate(db: &mut Connection, path: &Path, io: &dyn Io, clock: &dyn Clock) -> Result<()> {
    let version: u32 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version > current_version() {
        return Err(newer(path, version));
    }
    if version == current_version() {
        return Ok(());
    }
    if version > 0 {
        let folder = path.parent().unwrap_or(Path::new(""));
        backup::before_migration(db, folder, version, io, clock)?;
    }
    run_migrations(db).map_err(|error| match error.code() {
        "session.database" | "session.row" => SessionError::new(
            "session.migration",
            format!("The chats could not be upgraded to this version: {error} They are unchanged."),
            "Go back to the previous version, or move what blocks the upgrade aside. A copy is in the backups folder.",
        ),
        _ => error,
    })
}

/// Migrates a private copy of a database.
pub(crate) fn migrate_copy(db: &mut Connection, path: &Path) -> Result<()> {
    let version: u32 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version > current_version() {
        return Err(newer(path, version));
    }
    run_migrations(db)
}

fn newer(path: &Path, version: u32) -> SessionError {
    SessionError::new(
        "session.newer_schema",
        format!(
            "{} was written by a newer Inglenook (schema {version}; this one knows {}). It was not touched.",
            path.display(),
            current_version()
        ),
        "Update Inglenook, or choose another data folder with --data-dir.",
    )
}

/// Runs all missing migrations in one transaction.
fn run_migrations(db: &mut Connection) -> Result<()> {
    let transaction = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    // Another process may have migrated while this one waited.
    let version: u32 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    for statements in MIGRATIONS.iter().skip(version as usize) {
        for sql in *statements {
            transaction.execute_batch(sql)?;
        }
    }
    transaction.pragma_update(None, "user_version", current_version())?;
    transaction.commit()?;
    Ok(())
}

/// Renames the damaged database with its WAL and returns the new name.
fn set_aside(path: &Path, io: &dyn Io, clock: &dyn Clock) -> Result<PathBuf> {
    let aside = with_suffix(path, &format!(".damaged-{}", clock.now_utc_ms()));
    for suffix in ["", "-wal", "-shm"] {
        let from = with_suffix(path, suffix);
        if io.exists(&from)? {
            io.rename(&from, &with_suffix(&aside, suffix))?;
        }
    }
    Ok(aside)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
