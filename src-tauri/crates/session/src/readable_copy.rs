//! A private copy of a damaged database, in which one table at a time can be read although page 1 or the schema is damaged.

use std::path::{Path, PathBuf};

use io::{Io, RandomFile};
use rusqlite::{Connection, OpenFlags};

use crate::error::{Result, SessionError};
use crate::header::{self, HEADER_BYTES, PAGE_BYTES};
use crate::schema::PlainTable;
use crate::step_limit;

/// Bytes that are copied at once.
const COPY_BYTES: usize = 1 << 20;

/// The copy. Its files are removed with it.
pub(crate) struct ReadableCopy<'a> {
    path: PathBuf,
    file: Box<dyn RandomFile>,
    n_pages: u32,
    io: &'a dyn Io,
}

impl<'a> ReadableCopy<'a> {
    /// Copies the damaged file with its WAL, puts the header right and takes over what the WAL has.
    pub fn make(damaged: &Path, io: &'a dyn Io) -> Result<Self> {
        let name = damaged.file_name().unwrap_or_default().to_string_lossy();
        let path = damaged.with_file_name(format!("restoring-{name}.tmp"));
        for suffix in ["", "-wal"] {
            let from = with_suffix(damaged, suffix);
            if io.exists(&from)? {
                copy_file(&from, &with_suffix(&path, suffix), io)?;
            }
        }
        let file = io.open_random(&path)?;
        let mut copy = Self { path, file, n_pages: 0, io };
        copy.repair_header()?;
        copy.take_over_wal();
        copy.file = io.open_random(&copy.path)?;
        copy.repair_header()?;
        Ok(copy)
    }

    fn repair_header(&mut self) -> Result<()> {
        self.n_pages = u32::try_from(self.file.len()? / PAGE_BYTES as u64).unwrap_or(u32::MAX);
        let mut header = [0; HEADER_BYTES];
        if self.file.read_at(0, &mut header)? == HEADER_BYTES {
            header::repair(&mut header, self.n_pages);
            if self.has_wal() {
                header::use_wal(&mut header);
            }
            self.file.write_at(0, &header)?;
        }
        Ok(())
    }

    fn has_wal(&self) -> bool {
        self.io.len(&with_suffix(&self.path, "-wal")).is_ok_and(|bytes| bytes > 0)
    }

    /// Where it fails, the pages of the main file are read.
    fn take_over_wal(&self) {
        if self.has_wal()
            && let Ok(db) = Connection::open(&self.path)
        {
            let _ = db.pragma_update(None, "writable_schema", true);
            let _ = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
            let _ = db.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()));
        }
        for suffix in ["-wal", "-shm"] {
            // These files may not exist.
            let _ = self.io.remove_file(&with_suffix(&self.path, suffix));
        }
    }

    fn n_bytes(&self) -> u64 {
        u64::from(self.n_pages) * PAGE_BYTES as u64
    }

    /// Opens it with the schema as it is, as far as it can be read.
    pub fn open_as_is(&self) -> Result<Connection> {
        open_tolerantly(&self.path, self.n_bytes())
    }

    /// Opens it with this table alone, which begins at page `root`.
    pub fn open_table(&self, table: &PlainTable, root: u32) -> Result<Connection> {
        if root < 2 || root > self.n_pages {
            return Err(SessionError::new("session.damaged", "The table begins outside the file.", ""));
        }
        let mut page = first_page(table, root)?;
        header::repair(&mut page, self.n_pages);
        self.file.write_at(0, &page)?;
        open_tolerantly(&self.path, self.n_bytes())
    }
}

impl Drop for ReadableCopy<'_> {
    fn drop(&mut self) {
        for suffix in ["", "-wal", "-shm", "-journal"] {
            // These files may not exist.
            let _ = self.io.remove_file(&with_suffix(&self.path, suffix));
        }
    }
}

/// Page 1 of a database that has only this table, at page `root`.
fn first_page(table: &PlainTable, root: u32) -> Result<Vec<u8>> {
    let mut db = Connection::open_in_memory()?;
    db.pragma_update(None, "page_size", PAGE_BYTES as i64)?;
    db.execute_batch(&table.sql)?;
    db.pragma_update(None, "writable_schema", true)?;
    db.execute("UPDATE sqlite_schema SET rootpage = ?1", [root])?;
    let bytes = db.serialize("main")?;
    Ok(bytes.get(..PAGE_BYTES).unwrap_or_default().to_vec())
}

/// Opens for reading, and takes of a damaged schema what can be taken. Reading ends after the steps that a file of `n_bytes` needs.
pub(crate) fn open_tolerantly(path: &Path, n_bytes: u64) -> Result<Connection> {
    let mut db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    db.pragma_update(None, "writable_schema", true)?;
    db.pragma_update(None, "trusted_schema", false)?;
    db.pragma_update(None, "cell_size_check", true)?;
    step_limit::set(&mut db, n_bytes)?;
    Ok(db)
}

fn copy_file(from: &Path, to: &Path, io: &dyn Io) -> Result<()> {
    let (from, to) = (io.open_to_read(from)?, io.open_random(to)?);
    let mut buffer = vec![0; COPY_BYTES];
    let mut at = 0;
    loop {
        let n = from.read_at(at, &mut buffer)?;
        if n == 0 {
            return Ok(to.truncate(at)?);
        }
        to.write_at(at, buffer.get(..n).unwrap_or_default())?;
        at += n as u64;
    }
}

/// Size of a database with its log. What can't be measured has no bytes: the limit of steps has a minimum.
pub(crate) fn bytes_with_wal(path: &Path, io: &dyn Io) -> u64 {
    io.len(path).unwrap_or(0) + io.len(&with_suffix(path, "-wal")).unwrap_or(0)
}

pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
