//! Queued downloads, and hashes of downloaded files. Stores what to request, not how, so rows outlive program versions.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::{Result, SessionError};

pub const CREATE: &str = "
CREATE TABLE download (
    id         TEXT PRIMARY KEY NOT NULL,
    repository TEXT NOT NULL,
    revision   TEXT NOT NULL,
    branch     TEXT,
    path       TEXT NOT NULL,
    files      TEXT NOT NULL,
    root       TEXT NOT NULL,
    layout     TEXT NOT NULL,
    trust      TEXT NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('queued', 'paused', 'failed', 'done')),
    detail     TEXT,
    bytes      INTEGER NOT NULL,
    total      INTEGER NOT NULL,
    fetched    INTEGER NOT NULL,
    created_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE file_hash (
    path   TEXT PRIMARY KEY NOT NULL,
    bytes  INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    trust  TEXT NOT NULL,
    at_ms  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
";

/// Stage of a download, as needed to resume it after a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DownloadStage {
    /// Waiting or running.
    Queued,
    Paused,
    Failed,
    Done,
}

impl DownloadStage {
    fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Paused => "paused",
            Self::Failed => "failed",
            Self::Done => "done",
        }
    }

    fn of(name: &str) -> Self {
        match name {
            "paused" => Self::Paused,
            "failed" => Self::Failed,
            "done" => Self::Done,
            _ => Self::Queued,
        }
    }
}

/// A download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DownloadRow {
    pub id: String,
    /// `owner/name`
    pub repository: String,
    /// Commit of the repository.
    pub revision: String,
    /// Branch whose newest commit `revision` was.
    pub branch: Option<String>,
    /// The first file.
    pub path: String,
    /// JSON of the layer above: files, lengths, hashes.
    pub files: String,
    /// Target folder.
    pub root: String,
    /// Layout of the target folder.
    pub layout: String,
    /// JSON of the layer above.
    pub trust: String,
    pub stage: DownloadStage,
    /// JSON of an error, or the library's id.
    pub detail: Option<String>,
    pub bytes: u64,
    pub total: u64,
    pub fetched: u64,
    pub created_ms: i64,
}

/// Hash of a file when it was downloaded or first examined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileHashRow {
    pub path: String,
    pub bytes: u64,
    pub sha256: String,
    /// JSON of the layer above.
    pub trust: String,
    pub at_ms: i64,
}

const COLUMNS: &str = "id, repository, revision, branch, path, files, root, layout, trust, state, detail, bytes, total, fetched, created_ms";

fn from_row(row: &Row) -> rusqlite::Result<DownloadRow> {
    let size = |index| row.get::<_, i64>(index).map(|n| u64::try_from(n).unwrap_or(0));
    Ok(DownloadRow {
        id: row.get(0)?,
        repository: row.get(1)?,
        revision: row.get(2)?,
        branch: row.get(3)?,
        path: row.get(4)?,
        files: row.get(5)?,
        root: row.get(6)?,
        layout: row.get(7)?,
        trust: row.get(8)?,
        stage: DownloadStage::of(&row.get::<_, String>(9)?),
        detail: row.get(10)?,
        bytes: size(11)?,
        total: size(12)?,
        fetched: size(13)?,
        created_ms: row.get(14)?,
    })
}

fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// Inserts or replaces a download.
pub(crate) fn put(db: &Connection, row: &DownloadRow) -> Result<()> {
    let sql = format!(
        "INSERT OR REPLACE INTO download ({COLUMNS})
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)"
    );
    db.prepare_cached(&sql)?.execute(params![
        row.id,
        row.repository,
        row.revision,
        row.branch,
        row.path,
        row.files,
        row.root,
        row.layout,
        row.trust,
        row.stage.name(),
        row.detail,
        signed(row.bytes),
        signed(row.total),
        signed(row.fetched),
        row.created_ms
    ])?;
    Ok(())
}

/// Lists downloads, oldest first.
pub(crate) fn list(db: &Connection) -> Result<Vec<DownloadRow>> {
    let sql = format!("SELECT {COLUMNS} FROM download ORDER BY created_ms, id");
    let mut statement = db.prepare_cached(&sql)?;
    let rows = statement.query_map([], from_row)?;
    super::readable_rows(rows)
}

pub(crate) fn get(db: &Connection, id: &str) -> Result<DownloadRow> {
    let sql = format!("SELECT {COLUMNS} FROM download WHERE id = ?1");
    let row = db.prepare_cached(&sql)?.query_row([id], from_row).optional()?;
    row.ok_or_else(|| SessionError::missing("download", id))
}

pub(crate) fn remove(db: &Connection, id: &str) -> Result<()> {
    db.execute("DELETE FROM download WHERE id = ?1", [id])?;
    Ok(())
}

pub(crate) fn put_hash(db: &Connection, row: &FileHashRow) -> Result<()> {
    db.execute(
        "INSERT OR REPLACE INTO file_hash (path, bytes, sha256, trust, at_ms) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![row.path, signed(row.bytes), row.sha256, row.trust, row.at_ms],
    )?;
    Ok(())
}

pub(crate) fn remove_hash(db: &Connection, path: &str) -> Result<()> {
    db.execute("DELETE FROM file_hash WHERE path = ?1", [path])?;
    Ok(())
}

pub(crate) fn hash(db: &Connection, path: &str) -> Result<Option<FileHashRow>> {
    let sql = "SELECT path, bytes, sha256, trust, at_ms FROM file_hash WHERE path = ?1";
    let from_row = |row: &Row| {
        let bytes = u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0);
        Ok(FileHashRow {
            path: row.get(0)?,
            bytes,
            sha256: row.get(2)?,
            trust: row.get(3)?,
            at_ms: row.get(4)?,
        })
    };
    Ok(db.prepare_cached(sql)?.query_row([path], from_row).optional()?)
}
