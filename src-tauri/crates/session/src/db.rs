//! The database file: opened with settings that survive power cuts, migrated with a backup.
//!
//! A damaged file is set aside, never emptied. Knows nothing of what the tables mean.

mod foreign_wal;
pub(crate) mod inspect;

use std::path::{Path, PathBuf};
use std::time::Duration;

use io::{Clock, Io, OperatingSystem};
use rusqlite::Connection;

use crate::error::{Result, SessionError};
use crate::header::{self, HEADER_BYTES};
use crate::readable_copy::{bytes_with_wal, with_suffix};
use crate::{backup, recover, schema, step_limit, table};
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
    &[table::api_object::CREATE],
    &[table::project::CREATE, table::attachment::ADD_FROM_PROJECT],
    &[table::note::CREATE],
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
    is_alone: bool,
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
    // SQLite would make it as the umask says; its log takes over the mode.
    if !io.exists(path)? {
        io.open_random(path)?;
    }
    let foreign = if is_alone { foreign_wal::set_aside(path, io, clock)? } else { None };
    // While another process writes, the header may change between two looks.
    let opened = match is_alone && has_damaged_header(path, io)? {
        true => Err(SessionError::damaged("its header has changed")),
        false => try_open(path, last, io, clock),
    };
    match opened {
        Ok(db) => Ok((db, foreign.into_iter().collect())),
        // A value that can't be read, or SQL that fails, is damage too: the schema was written by this program.
        Err(error) if error.is_damage() || is_alone && error.is_about_rows() => {
            let (db, notice) = replace_damaged(path, io, clock)?;
            Ok((db, foreign.into_iter().chain([notice]).collect()))
        }
        Err(error) => Err(error),
    }
}

/// Sets a damaged database aside and makes a new one of what can be read. Nothing has it open.
pub(crate) fn replace_damaged(path: &Path, io: &dyn Io, clock: &dyn Clock) -> Result<(Connection, Notice)> {
    let aside = set_aside(path, io, clock)?;
    let salvaged = salvage(path, &aside, io, clock);
    if salvaged.is_err() {
        // On a full disk the damaged file is all there is: it gets its name back.
        put_back(path, &aside, io);
    }
    salvaged
}

fn salvage(path: &Path, aside: &Path, io: &dyn Io, clock: &dyn Clock) -> Result<(Connection, Notice)> {
    io.open_random(path)?;
    let mut db = try_open(path, LastExit::Clean, io, clock)?;
    // The new file takes what the damaged one has.
    step_limit::remove(&mut db)?;
    let notice = recovered(&db, path, aside, io)?;
    schema::record(&db)?;
    Ok((db, notice))
}

fn put_back(path: &Path, aside: &Path, io: &dyn Io) {
    for suffix in ["", "-wal", "-shm"] {
        let (from, to) = (with_suffix(aside, suffix), with_suffix(path, suffix));
        // The file that was begun in its place has nothing that the damaged one lacks.
        let _ = io.remove_file(&to);
        if io.exists(&from).unwrap_or(false) {
            let _ = io.rename(&from, &to);
        }
    }
}

fn has_damaged_header(path: &Path, io: &dyn Io) -> Result<bool> {
    let header = io.read_start(path, HEADER_BYTES)?;
    let wal = with_suffix(path, "-wal");
    let has_wal = io.exists(&wal)? && io.len(&wal)? > 0;
    let file_bytes = if has_wal { None } else { Some(io.len(path)?) };
    Ok(header::is_damaged(&header, file_bytes))
}

/// Copies the readable rows of the damaged file, and then what only the newest backup has, into the new one. No backup
/// contains permanently deleted data, so anything that only the backup has was lost by the damage.
fn recovered(db: &Connection, path: &Path, aside: &Path, io: &dyn Io) -> Result<Notice> {
    let n_bad_places = recover::copy_damaged(aside, db, &empty()?, io);
    let from_file = recover::n_conversations(db);
    let folder = path.parent().unwrap_or(Path::new(""));
    let backup = backup::newest_readable(folder, io);
    if let Some(backup) = &backup {
        recover::copy_readable_rows(&backup.path, db, io);
    }
    let missing = recover::MissingRows { n_bad_places, ..recover::repair_references(db) };
    Ok(recovery_notice(
        recover::n_conversations(db),
        from_file,
        backup.map(|b| b.file_name()),
        missing,
        aside,
    ))
}

/// The page translates this text: `ui/src/i18n/localize.ts` knows its form.
fn recovery_notice(
    all: u32,
    from_file: u32,
    backup: Option<String>,
    missing: recover::MissingRows,
    aside: &Path,
) -> Notice {
    let from_backup = match backup {
        Some(backup) if all > from_file => {
            format!(" {} of them come from the backup {backup}.", all - from_file)
        }
        Some(_) | None => String::new(),
    };
    let recover::MissingRows { n_titles, n_messages, n_bad_places } = missing;
    SessionError::new(
        "session.damaged",
        format!(
            "The chat database was damaged. {all} chats were recovered.{from_backup} Missing: {n_titles} titles, at least \
             {n_messages} messages; {n_bad_places} places could not be read. The damaged file is kept as {}.",
            aside.display()
        ),
        "Nothing was deleted. Keep that file if something is missing.",
    )
}

/// Error if a database has not the schema of this version.
pub(crate) fn check_current(db: &Connection) -> Result<()> {
    match version(db)? == current_version() {
        true => schema::check(db, &empty()?),
        false => Err(SessionError::damaged("it has another version")),
    }
}

/// What can be read of a damaged database, in memory.
pub(crate) fn salvage_in_memory(from: &Connection) -> Result<Connection> {
    let mut into = empty()?;
    from.pragma_update(None, "writable_schema", true)?;
    recover::copy_tables(from, &into);
    recover::repair_references(&into);
    table::search::complete(&mut into)?;
    Ok(into)
}

/// An empty database of this version, in memory.
fn empty() -> Result<Connection> {
    let mut db = Connection::open_in_memory()?;
    run_migrations(&mut db, |_| Ok(()))?;
    Ok(db)
}

fn try_open(path: &Path, last: LastExit, io: &dyn Io, clock: &dyn Clock) -> Result<Connection> {
    let mut db = reopen(path)?;
    step_limit::set(&mut db, bytes_with_wal(path, io))?;
    if last == LastExit::Unclean {
        quick_check(&db)?;
    }
    if is_unwritten(&db)? {
        run_migrations(&mut db, describe)?;
        return Ok(db);
    }
    repair_version(&db)?;
    let was_current = version(&db)? == current_version();
    migrate(&mut db, path, io, clock)?;
    check_schema(&db, was_current)?;
    foreign_wal::ensure_identity(&db)?;
    Ok(db)
}

/// Opens a database that was open before.
pub(crate) fn reopen(path: &Path) -> Result<Connection> {
    let db = Connection::open(path)?;
    configure(&db)?;
    Ok(db)
}

/// Whether the file is new: all it has is the header page that journaling wrote. A damaged one has more pages.
fn is_unwritten(db: &Connection) -> Result<bool> {
    let n_pages: u32 = db.pragma_query_value(None, "page_count", |row| row.get(0))?;
    Ok(n_pages <= 1 && version(db)? == 0)
}

/// What a database tells about itself.
fn describe(db: &Connection) -> Result<()> {
    schema::record(db)?;
    foreign_wal::ensure_identity(db)
}

fn version(db: &Connection) -> Result<u32> {
    // A flipped sign bit reads as a negative number.
    Ok(db.pragma_query_value(None, "user_version", |row| row.get::<_, i32>(0))?.cast_unsigned())
}

/// Puts back a version number in which one bit was flipped.
fn repair_version(db: &Connection) -> Result<()> {
    let version = version(db)?;
    let is_one_bit_off = (version ^ current_version()).count_ones() == 1;
    // A newer version of the program would have changed the schema.
    if is_one_bit_off && schema::has_all(db, &empty()?)? {
        db.pragma_update(None, "user_version", current_version())?;
    }
    Ok(())
}

/// Checks the whole file where schema or root pages are not those of the last start: one of them may be damaged.
fn check_schema(db: &Connection, was_current: bool) -> Result<()> {
    if schema::is_as_recorded(db).map_err(|error| SessionError::damaged(&error.to_string()))? {
        return Ok(());
    }
    schema::check(db, &empty()?)?;
    if was_current {
        quick_check(db)?;
    }
    schema::record(db)
}

fn configure(db: &Connection) -> Result<()> {
    db.busy_timeout(BUSY_TIMEOUT)?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    db.pragma_update(None, "synchronous", "FULL")?;
    db.pragma_update(None, "foreign_keys", true)?;
    db.pragma_update(None, "trusted_schema", false)?;
    db.pragma_update(None, "secure_delete", true)?;
    db.pragma_update(None, "cell_size_check", true)?;
    for pragma in flush_pragmas(OperatingSystem::HERE) {
        db.pragma_update(None, pragma, true)?;
    }
    Ok(())
}

/// What is switched on beside `synchronous`: on macOS fsync alone leaves data in the drive's cache.
fn flush_pragmas(system: OperatingSystem) -> &'static [&'static str] {
    match system {
        OperatingSystem::MacOs => &["fullfsync", "checkpoint_fullfsync"],
        OperatingSystem::Linux | OperatingSystem::Windows => &[],
    }
}

/// Schema version of this program.
fn current_version() -> u32 {
    MIGRATIONS.len() as u32
}

fn migrate(db: &mut Connection, path: &Path, io: &dyn Io, clock: &dyn Clock) -> Result<()> {
    let version = version(db)?;
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
    run_migrations(db, |_| Ok(())).map_err(|error| match error.code() {
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
    run_migrations(db, |_| Ok(()))
}

fn newer(path: &Path, version: u32) -> SessionError {
    SessionError::new(
        "session.newer_schema",
        format!(
            "{} was written by a newer Inglenook (schema {version}; this one knows {}). Your chats can be read and \
             exported, but nothing new is saved.",
            path.display(),
            current_version()
        ),
        "Update Inglenook, or choose another data folder with --data-dir.",
    )
}

/// Runs all missing migrations, and then `finish`, in one transaction.
fn run_migrations(db: &mut Connection, finish: impl FnOnce(&Connection) -> Result<()>) -> Result<()> {
    let transaction = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    // Another process may have migrated while this one waited.
    let version: u32 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    for statements in MIGRATIONS.iter().skip(version as usize) {
        for sql in *statements {
            transaction.execute_batch(sql)?;
        }
    }
    transaction.pragma_update(None, "user_version", current_version())?;
    finish(&transaction)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn macos_flushes_the_drive_too() {
        assert_eq!(flush_pragmas(OperatingSystem::MacOs), ["fullfsync", "checkpoint_fullfsync"]);
        for system in [OperatingSystem::Linux, OperatingSystem::Windows] {
            assert!(flush_pragmas(system).is_empty(), "{system:?}");
        }
        // SQLite knows them on every system.
        let db = Connection::open_in_memory().unwrap();
        for pragma in flush_pragmas(OperatingSystem::MacOs) {
            db.pragma_update(None, pragma, true).unwrap();
            let value: bool = db.pragma_query_value(None, pragma, |row| row.get(0)).unwrap();
            assert!(value, "{pragma}");
        }
    }
}
