//! The stored model library: entries, scanned folders, figures of runs.

use crate::conversation::Session;
use crate::error::Result;
use crate::table::message;
use crate::table::model::{self, ModelRow};
use crate::table::model_folder;
use crate::table::model_run::{self, ModelRunRow};

/// Figures that `newest_stats` returns.
const MAX_STATS: u32 = 32;

/// Messages that it looks at: a few milliseconds' worth.
const MAX_STATS_MESSAGES: u32 = 4_096;

impl Session {
    /// Lists entries that were not removed.
    pub fn models(&self) -> Result<Vec<ModelRow>> {
        let mut rows = model::list(&self.db)?;
        rows.retain(|row| row.removed_ms.is_none());
        Ok(rows)
    }

    /// Lists all entries, removed ones included.
    pub fn all_models(&self) -> Result<Vec<ModelRow>> {
        model::list(&self.db)
    }

    /// Inserts or replaces an entry.
    pub fn put_model(&mut self, row: &ModelRow) -> Result<()> {
        model::put(&self.db, row)
    }

    /// Deletes an entry permanently, with its runs; false if there was none.
    pub fn remove_model(&mut self, id: &str) -> Result<bool> {
        model_run::remove(&self.db, id)?;
        model::remove(&self.db, id)
    }

    /// Whether no other process used the data when this one opened it.
    pub fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// Folders that the user added for scanning.
    pub fn model_folders(&self) -> Result<Vec<String>> {
        model_folder::list(&self.db)
    }

    /// Adds a folder to scan.
    pub fn add_model_folder(&mut self, path: &str) -> Result<()> {
        model_folder::put(&self.db, path, self.clock.now_utc_ms())
    }

    /// Removes a folder; false if there was none.
    pub fn remove_model_folder(&mut self, path: &str) -> Result<bool> {
        model_folder::remove(&self.db, path)
    }

    /// Figures of the newest answers of a model, newest first: JSON of the layer above. Answers behind many of other
    /// models are not looked for.
    pub fn newest_stats(&self, model: &str) -> Result<Vec<String>> {
        message::newest_stats(&self.db, model, MAX_STATS, MAX_STATS_MESSAGES)
    }

    /// The best run of a model with this KV precision.
    pub fn model_run(&self, model: &str, kv: &str) -> Result<Option<ModelRunRow>> {
        model_run::get(&self.db, model, kv)
    }

    /// Inserts or replaces the best run.
    pub fn put_model_run(&mut self, row: &ModelRunRow) -> Result<()> {
        model_run::put(&self.db, row)
    }
}
