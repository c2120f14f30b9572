//! Stored contexts (KV cache files): which conversation needs which file, eviction within a budget, the sweep at start.
//!
//! Named checkpoints pin their files.

use std::collections::{BTreeSet, HashSet};

use io::CheckpointDir;
use rusqlite::TransactionBehavior;

use crate::conversation::Session;
use crate::error::{Result, SessionError};
use crate::table::checkpoint::{self, CheckpointRow, KvFile, KvTotals};
use crate::table::{conversation, message};

impl Session {
    /// Removes files without a row and rows without a file, and returns the number of files removed. For the start; does
    /// nothing while another process uses the data.
    pub fn sweep_contexts(&mut self, folder: &CheckpointDir) -> Result<usize> {
        if !self.is_alone {
            return Ok(0);
        }
        let there = folder.names()?;
        let known = match self.keep_rows_of(&there) {
            // Contexts can be computed again: damaged rows cost no start.
            Err(error) if error.is_about_rows() => {
                // Where not even that can be written, the next salvage rebuilds the tables.
                let _ = checkpoint::clear(&self.db);
                HashSet::new()
            }
            known => known?,
        };
        Ok(folder.sweep(&known)?)
    }

    /// Removes rows that nothing needs and rows without a file; returns the names that stay.
    fn keep_rows_of(&mut self, there: &BTreeSet<String>) -> Result<HashSet<String>> {
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        checkpoint::unclaim_orphans(&transaction)?;
        for name in checkpoint::unclaimed(&transaction)? {
            checkpoint::remove(&transaction, &name)?;
        }
        let mut known = HashSet::new();
        for name in checkpoint::all(&transaction)? {
            match there.contains(&name) {
                true => _ = known.insert(name),
                false => checkpoint::remove(&transaction, &name)?,
            }
        }
        transaction.commit()?;
        Ok(known)
    }

    /// Records files that were written or read for a conversation or checkpoint as used now and needed by it.
    pub fn record_context_use(&mut self, owner: &str, written: &[KvFile], read: &[String]) -> Result<()> {
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let stamp = checkpoint::next_stamp(&transaction)?;
        for file in written {
            checkpoint::put(&transaction, file, stamp)?;
            checkpoint::claim(&transaction, owner, &file.name)?;
        }
        for name in read {
            checkpoint::touch(&transaction, name, stamp)?;
            checkpoint::claim(&transaction, owner, name)?;
        }
        transaction.commit()?;
        Ok(())
    }

    /// Removes the rows of files that no longer exist.
    pub fn remove_context_rows(&mut self, names: &[String]) -> Result<()> {
        names.iter().try_for_each(|name| checkpoint::remove(&self.db, name))
    }

    /// Evicts least recently used files until at most `max_bytes` are left, and returns the number removed. Files of named
    /// checkpoints stay.
    pub fn evict_contexts(&mut self, folder: &CheckpointDir, max_bytes: u64) -> Result<usize> {
        if self.is_read_only {
            return Ok(0);
        }
        // Files written for a conversation that was deleted meanwhile.
        let mut n_removed = self.remove_unclaimed(folder)?;
        let mut n_bytes = checkpoint::totals(&self.db)?.bytes;
        if n_bytes <= max_bytes {
            return Ok(n_removed);
        }
        for file in checkpoint::evictable(&self.db)? {
            if n_bytes <= max_bytes {
                break;
            }
            // The file first: a leftover row is retried, a file without a row only at the next start.
            folder.remove(&file.name)?;
            checkpoint::remove(&self.db, &file.name)?;
            n_bytes = n_bytes.saturating_sub(file.bytes);
            n_removed += 1;
        }
        Ok(n_removed)
    }

    /// Removes the files that only this conversation and its checkpoints need, and returns their number. Call it when a
    /// conversation is deleted permanently, before or after its row.
    pub fn remove_contexts_of(&mut self, folder: &CheckpointDir, conversation: &str) -> Result<usize> {
        checkpoint::remove_named_of(&self.db, conversation)?;
        checkpoint::unclaim(&self.db, conversation)?;
        self.remove_unclaimed(folder)
    }

    fn remove_unclaimed(&mut self, folder: &CheckpointDir) -> Result<usize> {
        let unclaimed = checkpoint::unclaimed(&self.db)?;
        for name in &unclaimed {
            folder.remove(name)?;
            checkpoint::remove(&self.db, name)?;
        }
        Ok(unclaimed.len())
    }

    /// Totals of the stored contexts.
    pub fn context_totals(&self) -> Result<KvTotals> {
        checkpoint::totals(&self.db)
    }

    /// Saves a named checkpoint at the end of the active branch. It pins `files`, or if unknown the files that the
    /// conversation used last.
    pub fn save_checkpoint(
        &mut self,
        conversation: &str,
        name: &str,
        files: Option<&[String]>,
    ) -> Result<CheckpointRow> {
        let row = self.conversation(conversation)?;
        let message = row.leaf.ok_or_else(|| {
            SessionError::new("session.empty", "This chat is still empty.", "Write a message first.")
        })?;
        let (id, created_ms) = (self.new_id(), self.now_ms());
        let conversation = conversation.to_owned();
        let row = CheckpointRow { id, name: name.into(), conversation, message, created_ms, bytes: 0 };
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        checkpoint::insert(&transaction, &row)?;
        match files {
            Some(files) => {
                files.iter().try_for_each(|file| checkpoint::claim(&transaction, &row.id, file))?
            }
            None => checkpoint::claim_newest_of(&transaction, &row.id, &row.conversation)?,
        }
        transaction.commit()?;
        checkpoint::get(&self.db, &row.id)
    }

    /// Lists named checkpoints, oldest first: of one conversation, or of all.
    pub fn checkpoints(&self, conversation: Option<&str>) -> Result<Vec<CheckpointRow>> {
        checkpoint::list(&self.db, conversation)
    }

    /// Makes a checkpoint the end of the active branch, so that the next message begins a new branch. Returns the
    /// conversation.
    pub fn open_checkpoint(&mut self, id: &str) -> Result<String> {
        let row = checkpoint::get(&self.db, id)?;
        self.conversation(&row.conversation)?;
        let message = message::get(&self.db, &row.message)?;
        conversation::set_leaf(&self.db, &row.conversation, Some(&message.id))?;
        Ok(row.conversation)
    }

    /// Removes a named checkpoint and the files that only it needed.
    pub fn remove_checkpoint(&mut self, folder: &CheckpointDir, id: &str) -> Result<()> {
        if !checkpoint::remove_named(&self.db, id)? {
            return Err(SessionError::missing("checkpoint", id));
        }
        checkpoint::unclaim(&self.db, id)?;
        self.remove_unclaimed(folder)?;
        Ok(())
    }
}
