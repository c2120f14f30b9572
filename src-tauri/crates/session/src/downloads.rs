//! Queued downloads, and hashes of downloaded files.

use crate::conversation::Session;
use crate::error::Result;
use crate::table::download::{self, DownloadRow, FileHashRow};

impl Session {
    /// Lists downloads, oldest first.
    pub fn downloads(&self) -> Result<Vec<DownloadRow>> {
        download::list(self.db())
    }

    /// A number that differs from the last one if another connection has written to the database since. Costs
    /// microseconds where a query would cost half a millisecond.
    pub fn version_for_others(&self) -> Result<i64> {
        Ok(self.db().prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?)
    }

    /// Reads a download.
    pub fn download(&self, id: &str) -> Result<DownloadRow> {
        download::get(self.db(), id)
    }

    /// Inserts or replaces a download.
    pub fn put_download(&mut self, row: &DownloadRow) -> Result<()> {
        download::put(self.db(), row)
    }

    /// Removes a download. Errors if there is none.
    pub fn remove_download(&mut self, id: &str) -> Result<()> {
        download::get(self.db(), id)?;
        download::remove(self.db(), id)
    }

    /// The recorded hash of a file.
    pub fn file_hash(&self, path: &str) -> Result<Option<FileHashRow>> {
        download::hash(self.db(), path)
    }

    /// Records the hash of a file.
    pub fn put_file_hash(&mut self, row: &FileHashRow) -> Result<()> {
        download::put_hash(self.db(), row)
    }

    /// Forgets the hash of a file.
    pub fn remove_file_hash(&mut self, path: &str) -> Result<()> {
        download::remove_hash(self.db(), path)
    }
}
