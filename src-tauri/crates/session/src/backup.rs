//! Copies of the database, made while it is in use and looked through before they count.
//!
//! A rolling backup is made once a day of use; the newest few stay. A half one is never seen: it is written under
//! another name, checked, flushed and renamed.

use std::path::{Path, PathBuf};

use io::{Clock, Io};
use rusqlite::Connection;

use crate::conversation::Session;
use crate::db;
use crate::error::{Result, SessionError};

/// Time between two rolling backups.
const EVERY_MS: i64 = 24 * 3600 * 1000;

/// Rolling backups that stay, and copies made before migrations that stay.
const KEPT: usize = 4;

const ROLLING: &str = "inglenook-";
const MIGRATION: &str = "inglenook-schema";
const EXTENSION: &str = ".db";

/// A backup file that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupFile {
    pub path: PathBuf,
    pub made_ms: i64,
}

impl BackupFile {
    /// Its name, for people.
    pub(crate) fn said(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// A backup that is due: everything that making it needs, so that another thread can.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupJob {
    folder: PathBuf,
    now_ms: i64,
}

impl Session {
    /// Whether it is time for another one. A clock that went back makes none too many: the newest file counts.
    pub fn backup_due(&self, io: &dyn Io) -> Result<Option<BackupJob>> {
        let now_ms = self.clock.now_utc_ms();
        let newest = rolling(&self.folder, io)?.into_iter().map(|backup| backup.made_ms).max();
        let is_due = newest.is_none_or(|newest| (now_ms - newest).abs() >= EVERY_MS);
        let has_something = !self.conversations()?.is_empty();
        let due = BackupJob { folder: self.folder.clone(), now_ms };
        Ok((is_due && has_something).then_some(due))
    }
}

impl Session {
    /// For tests: from now on the database can't grow, as on a full disk; or it can again.
    #[doc(hidden)]
    pub fn set_disk_full(&self, is_full: bool) -> Result<()> {
        let n_pages: i64 = self.db.pragma_query_value(None, "page_count", |row| row.get(0))?;
        let most = if is_full { n_pages } else { i64::from(u32::MAX - 1) };
        let _: i64 = self.db.query_row(&format!("PRAGMA max_page_count = {most}"), [], |row| row.get(0))?;
        Ok(())
    }
}

impl BackupJob {
    /// Due or not.
    pub(crate) fn now(folder: &Path, now_ms: i64) -> Self {
        Self { folder: folder.to_owned(), now_ms }
    }

    /// Makes it by a connection of its own; writers need not wait. Its path.
    pub fn make(&self, io: &dyn Io) -> Result<PathBuf> {
        let folder = folder(&self.folder);
        io.create_dir_all(&folder)?;
        let path = folder.join(format!("{ROLLING}{}{EXTENSION}", self.now_ms));
        copy(&db::open_to_read(&self.folder.join(db::FILE))?, &path, io)?;
        let mut all = rolling(&self.folder, io)?;
        all.sort_by_key(|backup| std::cmp::Reverse(backup.made_ms));
        for old in all.into_iter().skip(KEPT) {
            io.remove_file(&old.path)?;
        }
        Ok(path)
    }
}

/// Removes what a program that was killed has left half done. Call it while no other one is alive.
pub(crate) fn remove_leftovers(data: &Path, io: &dyn Io) -> Result<()> {
    for place in [data.to_owned(), folder(data)] {
        if !io.exists(&place)? {
            continue;
        }
        for path in io.list(&place)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_half =
                name.ends_with(".half") || name.ends_with(".half-journal") || name.starts_with("restoring-");
            if is_half {
                io.remove_file(&path)?;
            }
        }
    }
    Ok(())
}

/// Where they lie in a data folder.
pub(crate) fn folder(data: &Path) -> PathBuf {
    data.join("backups")
}

/// A copy as it was before the schema changes.
pub(crate) fn before_migration(
    db: &Connection,
    data: &Path,
    version: u32,
    io: &dyn Io,
    clock: &dyn Clock,
) -> Result<()> {
    let folder = folder(data);
    io.create_dir_all(&folder)?;
    let path = folder.join(format!("{MIGRATION}{version}-{}{EXTENSION}", clock.now_utc_ms()));
    copy(db, &path, io)
}

/// The whole database as one file at `path`, which must be new.
pub(crate) fn copy(from: &Connection, path: &Path, io: &dyn Io) -> Result<()> {
    let mut half = path.as_os_str().to_owned();
    half.push(".half");
    let half = PathBuf::from(half);
    if io.exists(&half)? {
        io.remove_file(&half)?;
    }
    let copied = from
        .execute("VACUUM INTO ?1", [half.to_string_lossy()])
        .map_err(SessionError::from)
        .and_then(|_| check_and_flush(&half))
        .and_then(|()| Ok(io.rename(&half, path)?));
    if copied.is_err() {
        // What is left of it is worth nothing; the failure that counts is the first one.
        let _ = io.remove_file(&half);
    }
    copied
}

/// A copy that can't be read is none; one that is not on the disk is none either: writing its header again flushes all
/// of it.
fn check_and_flush(path: &Path) -> Result<()> {
    let db = Connection::open(path)?;
    db::quick_check(&db)?;
    db.pragma_update(None, "synchronous", "FULL")?;
    let version: u32 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    db.pragma_update(None, "user_version", version)?;
    Ok(())
}

/// Those made day by day.
fn rolling(data: &Path, io: &dyn Io) -> Result<Vec<BackupFile>> {
    all(data, io).map(|all| all.into_iter().filter(|backup| !is_of_migration(&backup.path)).collect())
}

fn is_of_migration(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(MIGRATION))
}

fn all(data: &Path, io: &dyn Io) -> Result<Vec<BackupFile>> {
    let folder = folder(data);
    if !io.exists(&folder)? {
        return Ok(Vec::new());
    }
    let made_ms = |path: &Path| -> Option<i64> {
        let name = path.file_name()?.to_str()?;
        name.strip_prefix(ROLLING)?.strip_suffix(EXTENSION)?.rsplit('-').next()?.parse().ok()
    };
    let files = io.list(&folder)?.into_iter();
    Ok(files.filter_map(|path| Some(BackupFile { made_ms: made_ms(&path)?, path })).collect())
}

/// The newest backup that can be read wholly.
pub(crate) fn newest_readable(data: &Path, io: &dyn Io) -> Option<BackupFile> {
    let mut all = all(data, io).ok()?;
    all.sort_by_key(|backup| std::cmp::Reverse(backup.made_ms));
    all.into_iter().find(|backup| {
        let checked = db::open_to_read(&backup.path).and_then(|db| db::quick_check(&db));
        checked.is_ok()
    })
}
