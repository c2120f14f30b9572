//! Compaction of conversations: the strategy of each, and its compactions. Messages themselves never change.

use crate::conversation::Session;
use crate::error::Result;
use crate::table::compaction::{self, CompactionRow};
use crate::table::compaction_strategy;

impl Session {
    /// Name of the conversation's strategy; None if it follows the setting.
    pub fn compaction_strategy(&self, conversation: &str) -> Result<Option<String>> {
        compaction_strategy::get(self.db(), conversation)
    }

    /// Sets the conversation's strategy; None follows the setting.
    pub fn set_compaction_strategy(&mut self, conversation: &str, strategy: Option<&str>) -> Result<()> {
        self.conversation(conversation)?;
        match strategy {
            Some(strategy) => compaction_strategy::put(self.db(), conversation, strategy),
            None => compaction_strategy::remove(self.db(), conversation),
        }
    }

    /// Compactions of a branch, oldest first. `branch` holds the ids of its messages.
    pub fn compactions(&self, conversation: &str, branch: &[&str]) -> Result<Vec<CompactionRow>> {
        let mut rows = compaction::of_conversation(self.db(), conversation)?;
        rows.retain(|row| branch.contains(&row.message.as_str()));
        Ok(rows)
    }

    /// Stores a compaction.
    pub fn add_compaction(&mut self, row: &CompactionRow) -> Result<()> {
        compaction::insert(self.db(), row)
    }

    /// Removes compactions, so that prompts include the covered messages again.
    pub fn remove_compactions(&mut self, rows: &[CompactionRow]) -> Result<()> {
        rows.iter().try_for_each(|row| compaction::remove(self.db(), &row.id))
    }
}
