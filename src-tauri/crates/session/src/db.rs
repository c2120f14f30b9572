//! The database file: opened with settings that survive power cuts, migrated with a backup, and set
//! aside, never emptied, when it is damaged. Knows nothing of what the tables mean.

use std::path::{Path, PathBuf};
use std::time::Duration;

use io::{Clock, Io};
use rusqlite::{Connection, OpenFlags};

use crate::error::{Result, SessionError};
use crate::{backup, recover, table};

/// The database's name in the data folder.
pub(crate) const FILE: &str = "inglenook.db";

/// SQLite before this could corrupt a database in WAL mode.
const MIN_SQLITE_VERSION: i32 = 3_051_003;

/// How long a write waits for another process (a second window, a backup program).
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Each entry takes the schema one version up. An entry that has been released never changes.
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
];

/// Something the user should know though nothing failed.
pub type Notice = SessionError;

/// How the last run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastExit {
    Clean,
    /// The file is looked through before it is used.
    Unclean,
}

/// Opens (or makes) the database. A damaged one is set aside and what can be read is carried over; the
/// notice says so. Errors leave the file as it is.
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

/// Brings what can be had of the damaged file, and what only the newest backup has, into the new one. Whatever was
/// deleted for good is in no backup: what a backup has beside the file was lost by the damage.
fn recovered(db: &Connection, path: &Path, aside: &Path, io: &dyn Io) -> Notice {
    let from_file = recover::copy_readable_rows(aside, db);
    let folder = path.parent().unwrap_or(Path::new(""));
    let backup = backup::newest_readable(folder, io);
    let all = backup.as_ref().map_or(from_file, |backup| recover::copy_readable_rows(&backup.path, db));
    recover::repair_references(db);
    let all: u32 = db.query_row("SELECT COUNT(*) FROM conversation", [], |row| row.get(0)).unwrap_or(all);
    let from_backup = match &backup {
        Some(backup) if all > from_file => {
            format!(" {} of them come from the backup {}.", all - from_file, backup.said())
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
        // There, fsync alone leaves data in the drive's cache.
        db.pragma_update(None, "fullfsync", true)?;
        db.pragma_update(None, "checkpoint_fullfsync", true)?;
    }
    Ok(())
}

/// Looks through the whole file. An index of words that says something else than it should, in a file that is whole, is
/// made again: that costs nothing but time.
pub(crate) fn quick_check(db: &Connection) -> Result<()> {
    let Err(error) = check(db, "quick_check(1)") else { return Ok(()) };
    let tables = |is_index: bool| -> Result<Vec<String>> {
        let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND (name LIKE 'search%') = ?1 AND name != 'search'";
        let mut statement = db.prepare(sql)?;
        let names = statement.query_map([is_index], |row| row.get(0))?;
        Ok(names.collect::<rusqlite::Result<_>>()?)
    };
    let index = tables(true)?;
    if index.is_empty() {
        return Err(error);
    }
    // Pages that are damaged anywhere are not touched.
    for table in tables(false)?.iter().chain(&index) {
        check(db, &format!("quick_check('{table}')")).map_err(|_| error.clone())?;
    }
    db.execute_batch(&format!("DROP TABLE search; {}", table::search::CREATE))?;
    check(db, "quick_check(1)")
}

fn check(db: &Connection, pragma: &str) -> Result<()> {
    let answer: String = db.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get(0))?;
    if answer == "ok" {
        return Ok(());
    }
    Err(SessionError::new("session.damaged", format!("The chat database is damaged: {answer}."), ""))
}

/// The schema version a file of this program has.
fn newest() -> u32 {
    MIGRATIONS.len() as u32
}

fn migrate(db: &mut Connection, path: &Path, io: &dyn Io, clock: &dyn Clock) -> Result<()> {
    let version: u32 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version > newest() {
        return Err(newer(path, version));
    }
    if version == newest() {
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
            "Go back to the version you had, or move what stands in the way aside; a copy lies in the backups folder.",
        ),
        _ => error,
    })
}

/// A copy that nobody else uses, brought into this version's form.
pub(crate) fn migrate_copy(db: &mut Connection, path: &Path) -> Result<()> {
    let version: u32 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version > newest() {
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
            newest()
        ),
        "Update Inglenook, or choose another data folder with --data-dir.",
    )
}

/// All of them or none.
fn run_migrations(db: &mut Connection) -> Result<()> {
    let transaction = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    // Another process may have done it while this one waited.
    let version: u32 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    for statements in MIGRATIONS.iter().skip(version as usize) {
        for sql in *statements {
            transaction.execute_batch(sql)?;
        }
    }
    transaction.pragma_update(None, "user_version", newest())?;
    transaction.commit()?;
    Ok(())
}

/// Renames the database with its WAL; the new name.
fn set_aside(path: &Path, io: &dyn Io, clock: &dyn Clock) -> Result<PathBuf> {
    let aside = beside(path, &format!(".damaged-{}", clock.now_utc_ms()));
    for suffix in ["", "-wal", "-shm"] {
        let from = beside(path, suffix);
        if io.exists(&from)? {
            io.rename(&from, &beside(&aside, suffix))?;
        }
    }
    Ok(aside)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// For reading what is left of a damaged file, or a backup.
pub(crate) fn open_to_read(path: &Path) -> Result<Connection> {
    let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    db.pragma_update(None, "trusted_schema", false)?;
    Ok(db)
}
