//! The queue of downloads, and what files were when they arrived.

use crate::conversation::Session;
use crate::error::Result;
use crate::table::download::{self, DownloadRow, FileHashRow};

impl Session {
    /// Oldest first.
    pub fn downloads(&self) -> Result<Vec<DownloadRow>> {
        download::list(self.db())
    }

    pub fn download(&self, id: &str) -> Result<DownloadRow> {
        download::get(self.db(), id)
    }

    pub fn put_download(&mut self, row: &DownloadRow) -> Result<()> {
        download::put(self.db(), row)
    }

    pub fn remove_download(&mut self, id: &str) -> Result<()> {
        download::get(self.db(), id)?;
        download::remove(self.db(), id)
    }

    /// What is recorded of a file.
    pub fn file_hash(&self, path: &str) -> Result<Option<FileHashRow>> {
        download::hash(self.db(), path)
    }

    pub fn put_file_hash(&mut self, row: &FileHashRow) -> Result<()> {
        download::put_hash(self.db(), row)
    }
}
