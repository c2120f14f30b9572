//! Backups of the database, made while it is in use and verified before they count.
//!
//! A rolling backup is made once per day of use; the newest few are kept. A partial one is never visible: it is written
//! under another name, checked, flushed and renamed.

use std::path::{Path, PathBuf};

use io::{Clock, Io};
use rusqlite::Connection;

use crate::db::inspect;
use crate::error::{Result, SessionError};
use crate::step_limit;

/// Time between two rolling backups.
const BACKUP_INTERVAL_MS: i64 = 24 * 3600 * 1000;

/// Rolling backups that are kept.
const MAX_ROLLING: usize = 4;

const ROLLING_PREFIX: &str = "inglenook-";
const MIGRATION_PREFIX: &str = "inglenook-schema";
const EXTENSION: &str = ".db";

/// A backup file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupFile {
    /// Its path.
    pub path: PathBuf,
    /// When it was made, by its name.
    pub made_ms: i64,
}

impl BackupFile {
    /// File name, for messages.
    pub(crate) fn file_name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// A backup that is due. Holds all that making it needs, so that another thread can make it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupJob {
    folder: PathBuf,
    now_ms: i64,
}

impl BackupJob {
    /// The next rolling backup of `folder`, if it is due. A clock that went backwards makes no extra backups: the newest
    /// file counts.
    pub(crate) fn due(folder: &Path, now_ms: i64, io: &dyn Io) -> Result<Option<Self>> {
        let newest = rolling(folder, io)?.into_iter().map(|backup| backup.made_ms).max();
        let is_due = newest.is_none_or(|newest| (now_ms - newest).abs() >= BACKUP_INTERVAL_MS);
        Ok(is_due.then(|| Self::new(folder, now_ms)))
    }

    /// A backup of `folder`, due or not.
    pub(crate) fn new(folder: &Path, now_ms: i64) -> Self {
        Self { folder: folder.to_owned(), now_ms }
    }

    /// Makes the backup over its own connection, so that writers need not wait, and returns its path.
    pub fn make(&self, io: &dyn Io) -> Result<PathBuf> {
        let folder = folder(&self.folder);
        io.create_dir_all(&folder)?;
        let path = folder.join(format!("{ROLLING_PREFIX}{}{EXTENSION}", self.now_ms));
        copy(&inspect::open_to_read(&self.folder.join(inspect::FILE_NAME))?, &path, io)?;
        let mut all = rolling(&self.folder, io)?;
        all.sort_by_key(|backup| std::cmp::Reverse(backup.made_ms));
        for old in all.into_iter().skip(MAX_ROLLING) {
            io.remove_file(&old.path)?;
        }
        Ok(path)
    }
}

/// Removes partial files that a killed process left. Call it only while no other process is alive.
pub(crate) fn remove_leftovers(data: &Path, io: &dyn Io) -> Result<()> {
    for path in io.list(data)? {
        // What cannot be listed is no folder.
        for inner in io.list(&path).unwrap_or_default() {
            remove_partial(&inner, io);
        }
        remove_partial(&path, io);
    }
    Ok(())
}

fn remove_partial(path: &Path, io: &dyn Io) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // `Io::write_atomic` writes to a hidden name before it renames.
    let is_half_written = name.starts_with('.') && name.ends_with(".tmp");
    let ends = [".half", ".half-journal"];
    if is_half_written || ends.iter().any(|end| name.ends_with(end)) || name.starts_with("restoring-") {
        // What cannot be removed costs only space; the next start tries again.
        let _ = io.remove_file(path);
    }
}

/// Folder of the backups in a data folder.
pub(crate) fn folder(data: &Path) -> PathBuf {
    data.join("backups")
}

/// Makes a copy before the schema changes.
pub(crate) fn before_migration(
    db: &Connection,
    data: &Path,
    version: u32,
    io: &dyn Io,
    clock: &dyn Clock,
) -> Result<()> {
    let folder = folder(data);
    io.create_dir_all(&folder)?;
    let path = folder.join(format!("{MIGRATION_PREFIX}{version}-{}{EXTENSION}", clock.now_utc_ms()));
    copy(db, &path, io)
}

/// Copies the whole database to one file at `path`, which must not exist.
pub(crate) fn copy(from: &Connection, path: &Path, io: &dyn Io) -> Result<()> {
    copy_with(from, path, io, &|_| Ok(()))
}

/// As `copy`; `complete` adds to the copy what the database has not.
pub(crate) fn copy_with(
    from: &Connection,
    path: &Path,
    io: &dyn Io,
    complete: &dyn Fn(&mut Connection) -> Result<()>,
) -> Result<()> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".half");
    let partial = PathBuf::from(partial);
    if io.exists(&partial)? {
        io.remove_file(&partial)?;
    }
    // SQLite would make it as the umask says.
    io.open_random(&partial)?;
    let copied = from
        .execute("VACUUM INTO ?1", [partial.to_string_lossy()])
        .map_err(SessionError::from)
        .and_then(|_| complete(&mut Connection::open(&partial)?))
        .and_then(|()| check_and_flush(&partial))
        .and_then(|()| Ok(io.rename(&partial, path)?));
    if copied.is_err() {
        // The first failure is the one to report; leftovers are worthless.
        let _ = io.remove_file(&partial);
    }
    copied
}

/// Verifies a copy and flushes it: rewriting its header with `synchronous = FULL` flushes the whole file.
fn check_and_flush(path: &Path) -> Result<()> {
    let db = Connection::open(path)?;
    inspect::quick_check(&db)?;
    db.pragma_update(None, "synchronous", "FULL")?;
    let version: u32 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    db.pragma_update(None, "user_version", version)?;
    Ok(())
}

/// Daily backups, without those made before migrations.
fn rolling(data: &Path, io: &dyn Io) -> Result<Vec<BackupFile>> {
    all(data, io).map(|all| all.into_iter().filter(|backup| !is_migration_copy(&backup.path)).collect())
}

fn is_migration_copy(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(MIGRATION_PREFIX))
}

fn all(data: &Path, io: &dyn Io) -> Result<Vec<BackupFile>> {
    let folder = folder(data);
    if !io.exists(&folder)? {
        return Ok(Vec::new());
    }
    let made_ms = |path: &Path| -> Option<i64> {
        let name = path.file_name()?.to_str()?;
        name.strip_prefix(ROLLING_PREFIX)?.strip_suffix(EXTENSION)?.rsplit('-').next()?.parse().ok()
    };
    let files = io.list(&folder)?.into_iter();
    Ok(files.filter_map(|path| Some(BackupFile { made_ms: made_ms(&path)?, path })).collect())
}

/// The newest backup that passes a check.
pub(crate) fn newest_readable(data: &Path, io: &dyn Io) -> Option<BackupFile> {
    let mut all = all(data, io).ok()?;
    all.sort_by_key(|backup| std::cmp::Reverse(backup.made_ms));
    all.into_iter().find(|backup| {
        let checked = inspect::open_to_read(&backup.path).and_then(|mut db| {
            step_limit::set(&mut db, io.len(&backup.path)?)?;
            inspect::quick_check(&db)
        });
        checked.is_ok()
    })
}
