//! How conversations are made to fit: the strategy of each, and its folds. The messages themselves are not touched.

use crate::conversation::Session;
use crate::error::Result;
use crate::table::compaction::{self, CompactionRow};
use crate::table::compaction_strategy;

impl Session {
    /// The strategy's name; None: as the setting says.
    pub fn compaction_strategy(&self, conversation: &str) -> Result<Option<String>> {
        compaction_strategy::get(self.db(), conversation)
    }

    pub fn set_compaction_strategy(&mut self, conversation: &str, strategy: Option<&str>) -> Result<()> {
        self.conversation(conversation)?;
        match strategy {
            Some(strategy) => compaction_strategy::put(self.db(), conversation, strategy),
            None => compaction_strategy::remove(self.db(), conversation),
        }
    }

    /// The folds of a branch, oldest first. `branch`: the ids of its messages.
    pub fn compactions(&self, conversation: &str, branch: &[&str]) -> Result<Vec<CompactionRow>> {
        let mut rows = compaction::of_conversation(self.db(), conversation)?;
        rows.retain(|row| branch.contains(&row.message.as_str()));
        Ok(rows)
    }

    pub fn add_compaction(&mut self, row: &CompactionRow) -> Result<()> {
        compaction::insert(self.db(), row)
    }

    /// Prompts begin before them again.
    pub fn remove_compactions(&mut self, rows: &[CompactionRow]) -> Result<()> {
        rows.iter().try_for_each(|row| compaction::remove(self.db(), &row.id))
    }
}
