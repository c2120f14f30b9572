//! Appends records to the log's newest file, and begins a new file where that is full.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use contract::{Error, Result};
use io::{FileLock, Io};

use crate::chain::{ChainHead, parse_line};
use crate::record::AuditEntry;

/// Length at which a file is set aside and a new one begun.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Files that are kept, the newest included: 128 MiB. The oldest goes first.
const MAX_FILES: usize = 32;

/// Longest line that is read back: the text of a whole context may be in it.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// What is read of the newest file at first, from its end: most lines have some hundred bytes.
const TAIL_BYTES: u64 = 16 << 10;

/// Attempts to become the only writer, and the time between them: a writer needs the lock for milliseconds.
const MAX_ATTEMPTS: usize = 500;
const RETRY_DELAY: Duration = Duration::from_millis(4);

const NEWEST: &str = "audit.jsonl";
const LOCK: &str = "audit.lock";
const HEAD: &str = "head.json";

/// The log of one data folder.
pub struct AuditLog {
    folder: PathBuf,
    io: Arc<dyn Io>,
    max_file_bytes: u64,
}

impl AuditLog {
    /// The log in `folder`, which is made with the first record.
    pub fn new(folder: PathBuf, io: Arc<dyn Io>) -> Self {
        Self { folder, io, max_file_bytes: MAX_FILE_BYTES }
    }

    /// As `new`, with files of at most about `max_file_bytes`.
    pub fn with_file_size(folder: PathBuf, io: Arc<dyn Io>, max_file_bytes: u64) -> Self {
        Self { folder, io, max_file_bytes }
    }

    /// Appends a record. It is on disk on return.
    pub fn append(&self, record: impl Into<AuditEntry>) -> Result<()> {
        self.io.create_dir_all(&self.folder)?;
        let _lock = self.lock()?;
        let path = self.folder.join(NEWEST);
        let (head, is_cut_off) = self.head(&path)?;
        let (line, next) =
            head.append(record.into()).map_err(|error| Error::bug(format!("an audit record: {error}")))?;
        if self.io.exists(&path)? && self.io.len(&path)? >= self.max_file_bytes {
            self.set_aside(&path, head.seq)?;
        }
        // A line that a crash cut off is ended, so that it damages no other.
        let begins = if is_cut_off && self.io.exists(&path)? { "\n" } else { "" };
        self.io.append(&path, format!("{begins}{line}\n").as_bytes())?;
        let head =
            serde_json::to_vec(&next).map_err(|error| Error::bug(format!("an audit head: {error}")))?;
        Ok(self.io.write_atomic(&self.folder.join(HEAD), &head)?)
    }

    fn lock(&self) -> Result<FileLock> {
        let path = self.folder.join(LOCK);
        for _ in 0..MAX_ATTEMPTS {
            if let Some(lock) = FileLock::try_acquire(&path)? {
                return Ok(lock);
            }
            std::thread::sleep(RETRY_DELAY);
        }
        Err(Error::new(
            contract::ErrorKind::Conflict,
            "audit.locked",
            format!("Another process keeps {} locked.", path.display()),
            "Close other programs that use this data folder.",
        ))
    }

    /// The last line that was written, and whether the file ends in the middle of one. The file counts where a crash
    /// came between it and the note beside it.
    fn head(&self, path: &Path) -> Result<(ChainHead, bool)> {
        let noted = read_head(&*self.io, &self.folder)?.unwrap_or_default();
        if !self.io.exists(path)? {
            return Ok((noted, false));
        }
        let file = self.io.open_to_read(path)?;
        let file_bytes = file.len()?;
        let most = file_bytes.min(self.max_file_bytes.saturating_add(MAX_LINE_BYTES));
        let mut n_bytes = most.min(TAIL_BYTES);
        loop {
            let mut tail = vec![0; usize::try_from(n_bytes).unwrap_or(usize::MAX)];
            let n_read = file.read_at(file_bytes - n_bytes, &mut tail)?;
            tail.truncate(n_read);
            let is_cut_off = tail.last().is_some_and(|byte| *byte != b'\n');
            // The line in which the tail begins has another hash.
            let lines = String::from_utf8_lossy(&tail);
            let last = lines.lines().rev().find_map(|line| parse_line(line).ok()).map(|(_, head)| head);
            if last.is_some() || n_bytes == most {
                return Ok((last.filter(|last| last.seq > noted.seq).unwrap_or(noted), is_cut_off));
            }
            n_bytes = n_bytes.saturating_mul(8).min(most);
        }
    }

    /// Renames the full file after its last line, and removes the oldest beyond the limit.
    fn set_aside(&self, path: &Path, seq: u64) -> Result<()> {
        self.io.rename(path, &self.folder.join(format!("audit-{seq:012}.jsonl")))?;
        let old = older_files(&*self.io, &self.folder)?;
        let n_beyond = (old.len() + 1).saturating_sub(MAX_FILES);
        for path in &old[..n_beyond] {
            self.io.remove_file(path)?;
        }
        Ok(())
    }
}

/// The last line as noted beside the log. None: nothing was ever written.
pub(crate) fn read_head(io: &dyn Io, folder: &Path) -> Result<Option<ChainHead>> {
    let path = folder.join(HEAD);
    if !io.exists(&path)? {
        return Ok(None);
    }
    Ok(serde_json::from_slice(&io.read(&path)?).ok())
}

/// All files of a log, oldest first.
pub(crate) fn files(io: &dyn Io, folder: &Path) -> Result<Vec<PathBuf>> {
    if !io.exists(folder)? {
        return Ok(Vec::new());
    }
    let mut files = older_files(io, folder)?;
    let newest = folder.join(NEWEST);
    if io.exists(&newest)? {
        files.push(newest);
    }
    Ok(files)
}

/// Their names sort by the numbers of their lines.
fn older_files(io: &dyn Io, folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = io.list(folder)?;
    let is_old = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("audit-") && name.ends_with(".jsonl")
    };
    files.retain(is_old);
    files.sort();
    Ok(files)
}
