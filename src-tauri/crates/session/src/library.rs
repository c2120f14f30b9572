//! The model library as it is kept: entries, folders that are looked through, what runs took.

use crate::conversation::Session;
use crate::error::Result;
use crate::table::model::{self, ModelRow};
use crate::table::model_folder;
use crate::table::model_run::{self, ModelRunRow};

impl Session {
    /// Those that were not removed.
    pub fn models(&self) -> Result<Vec<ModelRow>> {
        let mut rows = model::list(&self.db)?;
        rows.retain(|row| row.removed_ms.is_none());
        Ok(rows)
    }

    /// Removed ones too.
    pub fn all_models(&self) -> Result<Vec<ModelRow>> {
        model::list(&self.db)
    }

    pub fn put_model(&mut self, row: &ModelRow) -> Result<()> {
        model::put(&self.db, row)
    }

    /// For good, with what is known of its runs. Whether there was one.
    pub fn remove_model(&mut self, id: &str) -> Result<bool> {
        model_run::remove(&self.db, id)?;
        model::remove(&self.db, id)
    }

    /// No other process used the data when this one began.
    pub fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// Folders that the user added.
    pub fn model_folders(&self) -> Result<Vec<String>> {
        model_folder::list(&self.db)
    }

    pub fn add_model_folder(&mut self, path: &str) -> Result<()> {
        model_folder::put(&self.db, path, self.clock.now_utc_ms())
    }

    /// Whether there was one.
    pub fn remove_model_folder(&mut self, path: &str) -> Result<bool> {
        model_folder::remove(&self.db, path)
    }

    /// The best run of a model with that precision of its context.
    pub fn model_run(&self, model: &str, kv: &str) -> Result<Option<ModelRunRow>> {
        model_run::get(&self.db, model, kv)
    }

    pub fn put_model_run(&mut self, row: &ModelRunRow) -> Result<()> {
        model_run::put(&self.db, row)
    }
}
